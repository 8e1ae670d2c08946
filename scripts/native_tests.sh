#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures, builds and runs the native tests of the given presets: package, dev, release, asan, tsan.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

for preset in "$@"; do
  cmake --workflow --preset "$preset"
done
