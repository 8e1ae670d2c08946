#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What transport="ucx" is built with and tested over: installed where we are root and there is apt;
# else one sentence says what is missing, and those tests skip.
set -euo pipefail

complete() {
  [[ -e /usr/include/ucp/api/ucp.h ]]
}

install_package() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends libucx-dev
}

if ! complete && ((EUID == 0)) && command -v apt-get >/dev/null; then
  echo "setup: installing the Debian package libucx-dev" >&2
  install_package >/dev/null || true # without a network: the sentence below
fi
complete || echo "setup: tests of UCX will skip, for lack of its headers: install the package libucx-dev." >&2
