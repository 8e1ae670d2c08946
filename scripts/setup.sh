#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv: tools, dependencies, and the package itself as an editable install. What is there
# already, for the same sources, is left alone. `setup.sh extras coverage` adds these groups; extras
# also takes packages of Debian's, iproute2, libhwloc15 and libucx-dev.
set -euo pipefail
here=$(dirname "$0")

# The Python of an earlier set-up stays the choice until PYTHON names another, or it is gone.
chosen=$(cat "$here/../.venv/stamps/python" 2>/dev/null || true)
if [[ -z ${PYTHON:-} && -x $chosen ]]; then
  export PYTHON=$chosen
fi
python=$("$here/prerequisites.sh")
source "$here/environment.sh"
lock

installed=""

make_environment() {
  echo "setup: .venv with $python"
  rm -rf .venv
  "$python" -m venv .venv
  mkdir -p .venv/stamps
  printf '%s\n' "$python" >.venv/stamps/python
  # Groups of dependencies need pip 25.1; Python 3.11 brings an older one.
  .venv/bin/python -m pip install -qq --upgrade 'pip>=25.1'
}

install_group() {
  echo "setup: installing the packages of group $1"
  .venv/bin/python -m pip install -qq --group "$1"
  installed=yes
}

install_package() {
  echo "setup: building the package"
  .venv/bin/python -m pip install -qq --no-build-isolation --no-deps --editable .
  installed=yes
}

# Before the package is built: it takes UCX in where there are headers.
if [[ " $* " == *" extras "* ]]; then
  scripts/ucx.sh
fi
ucx=$(ls /usr/include/ucp/api/ucp.h 2>/dev/null || true)

# Scripts in .venv hold its absolute path, and its python is a link: either may have moved.
once environment "$PWD $python $("$python" -V)" make_environment
once packages "$(key_of pyproject.toml)" install_group dev
once package "$(key_of pyproject.toml README.md LICENSE CMakeLists.txt cmake native) $ucx" install_package
for group in "$@"; do
  once "$group" "$(key_of pyproject.toml)" install_group "$group"
  if [[ $group == extras ]]; then
    scripts/iproute2.sh
    scripts/hwloc.sh
  fi
done
if [[ -n $installed ]]; then
  echo "setup: \`source .venv/bin/activate\` makes collrun and collbench available"
fi
