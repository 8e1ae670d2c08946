#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make test` leaves out of the preset `package`, around the same library: the programs that
# measure are compiled, and the native tests that take a part of their cases there take all.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

cmake --preset package -DCOLL_BENCH=ON >/dev/null
cmake --build --preset package
ALL_CASES=1 ctest --preset package -L long
