#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the Python to build with; or names the first missing prerequisite in one sentence and
# ends with status 1. PYTHON, CC and CXX, where set, are the only ones considered.
set -euo pipefail

missing() {
  printf 'pycollectives: %s\n' "$1" >&2
  exit 1
}

probe='
import os, sys, sysconfig
def verdict():
    if sys.version_info < (3, 11):
        return "old"
    try:
        import ensurepip, venv
    except ImportError:
        return "venv"
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        return "headers"
    return "good"
# From inside a virtual environment: the Python that it was made from.
where = getattr(sys, "_base_executable", None) or sys.executable
print("%s %d.%d %s" % (verdict(), sys.version_info[0], sys.version_info[1], where))
'

# The first Python with all it takes; else the complaint about the best one: any that is new
# enough is better than an old one.
find_python() {
  local candidate verdict version path complaint=""
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    read -r verdict version path < <("$candidate" -c "$probe" 2>/dev/null) || continue
    case $verdict in
      good) printf '%s\n' "$path" && return ;;
      venv) complaint="Python $version ($path) lacks its venv module: install the package python$version-venv." ;;
      headers) complaint="Python $version ($path) lacks its header Python.h: install the package python$version-dev." ;;
      old) complaint=${complaint:-"Python 3.11 or newer is needed, and $path is $version: install a newer one or name it in PYTHON."} ;;
    esac
  done
  local absent="there is none: install it or name it in PYTHON."
  if [[ -n ${PYTHON:-} ]]; then
    absent="'$PYTHON', which PYTHON names, does not run: install it or name another."
  fi
  missing "${complaint:-Python 3.11 or newer is needed, and $absent}"
}

check_compiler() {
  local compiler version clang gnu
  compiler=${CXX:-g++}
  # shellcheck disable=SC2086  # CXX may hold options
  version=$($compiler -x c++ -E -P - 2>/dev/null <<<'__clang_major__ __GNUC__') ||
    missing "A C++ compiler is needed, and '$compiler' does not run: install g++ 12 or newer or name another in CXX."
  read -r clang gnu <<<"$version"
  if [[ $clang == __clang_major__ ]]; then
    ((gnu >= 12)) || missing "g++ 12 or newer is needed, and '$compiler' is $gnu: install a newer one or name it in CXX."
  else
    ((clang >= 15)) || missing "clang 15 or newer is needed, and '$compiler' is $clang: install a newer one or name it in CXX."
  fi
}

# CMake wants one, too, and looks for these names.
check_c_compiler() {
  local candidate candidates=(cc gcc clang)
  if [[ -n ${CC:-} ]]; then
    candidates=("$CC")
  fi
  for candidate in "${candidates[@]}"; do
    # shellcheck disable=SC2086  # CC may hold options
    $candidate -x c -E -P - </dev/null &>/dev/null && return
  done
  if [[ -n ${CC:-} ]]; then
    missing "A C compiler is needed, and '$CC', which CC names, does not run: install it or name another."
  fi
  missing "A C compiler is needed, too, and none of cc, gcc and clang runs: install gcc or name another in CC."
}

# gcc compiles C++, but leaves its library out.
check_linking() {
  local compiler=${CXX:-g++} folder good=yes
  folder=$(mktemp -d)
  # shellcheck disable=SC2086  # as above
  $compiler -x c++ -o "$folder/program" - &>/dev/null <<<'
namespace std { void terminate() noexcept; }
int main() { std::terminate(); }' || good=no
  rm -rf "$folder"
  [[ $good == yes ]] || missing "A C++ compiler is needed, and '$compiler' does not link C++ programs: name g++ or clang++ in CXX."
}

for tool in make git; do
  command -v "$tool" >/dev/null || missing "$tool is needed, and there is none: install the package $tool."
done
check_compiler
check_linking
check_c_compiler
find_python
