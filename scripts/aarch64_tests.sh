#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the library and its native tests for 64-bit Arm and runs them under qemu-user. What that
# needs is installed where we are root and there is apt; else, without it, all is skipped, which
# fails under CI unless tests/allowed-skips.txt has a reason for "aarch64".
set -euo pipefail
source "$(dirname "$0")/environment.sh"
# The toolchain file names the compilers.
unset CC CXX CFLAGS CXXFLAGS LDFLAGS
packages=(g++-aarch64-linux-gnu qemu-user)

# `command -v` of two names succeeds where only one is there.
complete() { command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; }

install_packages() {
  echo "aarch64: installing ${packages[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${packages[@]}" >/dev/null
}

skip() {
  echo "aarch64: skipped, for lack of a cross compiler and an emulator: install the Debian packages ${packages[*]}." >&2
  if [[ -n ${CI:-} ]] && ! grep -q '^aarch64: .' tests/allowed-skips.txt; then
    echo "aarch64: CI is set: install them, or add a line 'aarch64: <reason>' to tests/allowed-skips.txt." >&2
    exit 1
  fi
  exit 0
}

if ! complete && ((EUID == 0)) && command -v apt-get >/dev/null; then
  install_packages || true # without a network: the sentence below
fi
complete || skip
# From here it is what scripts/native_tests.sh does, but for the tests' own words on what the
# emulator lacks, which ctest keeps to itself.
cmake --preset aarch64 >/dev/null
cmake --build --preset aarch64
ctest --preset aarch64
grep -h '^LACKING' build/aarch64/Testing/Temporary/LastTest.log || true
