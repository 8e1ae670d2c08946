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

installed=.venv/stamps/installed # a file, as what installs runs beside this shell

no_packages() {
  echo "setup: packages could not be had: it takes PyPI, or an index that pip finds (PIP_INDEX_URL)." >&2
  exit 1
}

make_environment() {
  echo "setup: .venv with $python"
  rm -rf .venv
  "$python" -m venv .venv
  mkdir -p .venv/stamps
  printf '%s\n' "$python" >.venv/stamps/python
  # Groups of dependencies need pip 25.1; Python 3.11 brings an older one.
  .venv/bin/python -m pip install -qq --no-compile --upgrade 'pip>=25.1' || no_packages
}

# Python compiles a module when it is first imported; most of those of large packages never are.
install_group() {
  echo "setup: installing the packages of group $1"
  .venv/bin/python -m pip install -qq --no-compile --group "$1" || no_packages
  touch "$installed"
}

install_package() {
  echo "setup: building the package"
  .venv/bin/python -m pip install -qq --no-build-isolation --no-deps --editable .
  touch "$installed"
}

# Before the package is built: it takes UCX in where there are headers.
if [[ " $* " == *" extras "* ]]; then
  scripts/ucx.sh
fi
ucx=$(ls /usr/include/ucp/api/ucp.h 2>/dev/null || true)

# Scripts in .venv hold its absolute path, and its python is a link: either may have moved.
once environment "$PWD $python $("$python" -V)" make_environment
once build "$(key_of pyproject.toml)" install_group build
# The package beside the packages that it does not need: one compiles, the other waits for the net.
# Not `once ... || ...`, in which nothing would end at its first error. An editable install is a list of modules.
modules=$(find collectives -name '*.py' | LC_ALL=C sort | sha256sum | cut -d' ' -f1)
once package "$(key_of pyproject.toml README.md LICENSE CMakeLists.txt cmake native) $modules $ucx" install_package &
package=$!
once packages "$(key_of pyproject.toml)" install_group dev &
packages=$!
failed=0
wait "$package" || failed=$?
wait "$packages" || failed=$?
if [[ $failed != 0 ]]; then
  exit "$failed"
fi
for group in "$@"; do
  once "$group" "$(key_of pyproject.toml)" install_group "$group"
  if [[ $group == extras ]]; then
    scripts/iproute2.sh
    scripts/hwloc.sh
  fi
done
if [[ -e $installed ]]; then
  rm "$installed"
  echo "setup: \`source .venv/bin/activate\` makes collrun and collbench available"
fi
