#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The library by which comm.topology() knows a machine: installed where we are root and there is apt;
# else one sentence says what is missing, and the test that asks it skips.
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin" # a plain user's may lack them

complete() {
  grep -q 'libhwloc\.so\.15 ' < <(ldconfig -p)
}

install_package() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends libhwloc15
}

if ! complete && ((EUID == 0)) && command -v apt-get >/dev/null; then
  echo "setup: installing the Debian package libhwloc15" >&2
  install_package >/dev/null || true # without a network: the sentence below
fi
complete || echo "setup: a test of hwloc will skip, for lack of its library: install the package libhwloc15." >&2
