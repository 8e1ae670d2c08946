#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What makes the hosts of tests/hosts: installed where we are root and there is apt; else one
# sentence says what is missing, and those tests skip.
set -euo pipefail
PATH="$PATH:/usr/sbin:/sbin" # a plain user's may lack them

complete() {
  local program
  for program in ip tc ss bridge; do
    command -v "$program" >/dev/null || return 1
  done
}

install_package() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends iproute2
}

if ! complete && ((EUID == 0)) && command -v apt-get >/dev/null; then
  echo "setup: installing the Debian package iproute2" >&2
  install_package >/dev/null || true # without a network: the sentence below
fi
complete || echo "setup: tests/hosts will skip, for lack of ip, tc, ss or bridge: install the package iproute2." >&2
