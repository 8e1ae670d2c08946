#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches NVIDIA's wheels of NCCL into build/nccl/VERSION, beside .venv, as torch may want another
# version there: nccl_wheels.sh [VERSION]..., by default the one that tests are pinned to.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

for version in "${@:-2.30.7}"; do
  folder=build/nccl/$version
  if [[ -e $folder/nvidia/nccl/lib/libnccl.so.2 ]]; then
    continue
  fi
  # For CUDA 13 they begin with 2.27.7.
  package=nvidia-nccl-cu13
  if [[ $(printf '%s\n' "$version" 2.27.7 | sort -V | head -n 1) != 2.27.7 ]]; then
    package=nvidia-nccl-cu12
  fi
  echo "nccl_wheels: fetching $package $version"
  .venv/bin/python -m pip install -qq --no-deps --target "$folder" "$package==$version"
done
