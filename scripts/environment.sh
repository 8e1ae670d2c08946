# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts: the repository root, and an environment in which only .venv counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PATH="$PWD/.venv/bin:$PATH"
unset PYTHONHOME PYTHONPATH PYTHONSAFEPATH
# Tests start processes by the thousand: each would compile all that it imports, torch for 3 s.
unset PYTHONDONTWRITEBYTECODE
export CXX="${CXX:-g++}" # the one that prerequisites.sh has looked at
# Settings of the user's pip that would install elsewhere than into .venv. Index, cache,
# certificates and constraints stay as they are.
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON PIP_DRY_RUN PIP_REQUIRE_HASHES PIP_NO_DEPS
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"

# Runs "$3..." unless .venv/stamps/$1 says that it succeeded for the same key $2.
once() {
  local stamp=".venv/stamps/$1" key=$2
  shift 2
  if [[ -f $stamp && $(<"$stamp") == "$key" ]]; then
    return
  fi
  rm -f "$stamp"
  "$@"
  mkdir -p "${stamp%/*}"
  printf '%s\n' "$key" >"$stamp"
}

# A key for the names and contents of all files under the given paths.
key_of() {
  find "$@" -type f -not -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum |
    sha256sum | cut -d' ' -f1
}

# One at a time: a second make in the same checkout waits here. Held until the script ends.
lock() {
  mkdir -p build
  exec 9>build/.lock
  flock 9
}
