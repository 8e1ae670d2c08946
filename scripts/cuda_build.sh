#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the kernels for GPUs: build/cuda/libcollectives_cuda.so, for the architectures in
# CUDA_ARCHITECTURES (90-real unless it says more). The compiler is CUDACXX, nvcc, or that of
# /usr/local/cuda; where there is none, NVIDIA's from PyPI, which .venv gets. What the assembler says
# of each kernel (registers, spills) is kept in build/cuda/kernels.txt.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

# The packages are one tree whose libraries lie in lib, where nvcc looks in lib64.
from_packages() {
  .venv/bin/python -m pip install -qq --group cuda
  local root
  root=$(.venv/bin/python -c 'import nvidia.cu13 as found; print(list(found.__path__)[0])')
  export NVCC_APPEND_FLAGS="-L$root/lib ${NVCC_APPEND_FLAGS:-}"
  export CUDACXX="$root/bin/nvcc"
}

if [[ -z ${CUDACXX:-} ]]; then
  if command -v nvcc >/dev/null; then
    CUDACXX=$(command -v nvcc)
  elif [[ -x /usr/local/cuda/bin/nvcc ]]; then
    CUDACXX=/usr/local/cuda/bin/nvcc
  else
    echo "cuda: no nvcc here: taking the one of PyPI (the packages of group cuda)"
    from_packages
  fi
  export CUDACXX
fi
architectures=${CUDA_ARCHITECTURES:-90-real}

# All of it, so that what the assembler says is of all kernels.
build() {
  cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES="$architectures" >/dev/null
  if ! cmake --build --preset cuda --clean-first >build/cuda/log.txt 2>&1; then
    cat build/cuda/log.txt >&2
    exit 1
  fi
  mv build/cuda/log.txt build/cuda/kernels.txt
}

lock
once cuda "$("$CUDACXX" --version | tail -1) $architectures $(key_of CMakeLists.txt cmake native/cuda native/kernels native/plan native/schedule)" build
