#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks, changes nothing: check.sh [ruff-format] [ruff] [mypy] [clang-format] [clang-tidy];
# without arguments all of them. `check.sh format` rewrites the files instead.
set -euo pipefail
source "$(dirname "$0")/environment.sh"

# Sources of C, C++ and CUDA, NUL-separated; new files count before they are added.
native_sources() {
  git ls-files -z --cached --others --exclude-standard -- ':!*/site-packages/*' '*.cc' '*.c' '*.h' '*.cu' |
    xargs -0 --no-run-if-empty ls -d 2>/dev/null | tr '\n' '\0'
}

clang_format() {
  native_sources | xargs -0 --no-run-if-empty clang-format "$@"
}

# Changed sources, and for each changed header one source that includes it.
sources_to_tidy() {
  local file
  scripts/changed_files.sh | while read -r file; do
    case $file in
      native/*.cc | tests/native/*.cc | tests/native/*.c) echo "$file" ;;
      native/include/*.h) grep -rlF --include='*.cc' "${file#native/include/}\"" native | head -n 1 || true ;;
      native/*.h) grep -rlF --include='*.cc' "\"${file#native/}\"" native tests/native | head -n 1 || true ;;
    esac
  done | LC_ALL=C sort -u
}

# Of these, what this machine compiles: with headers of UCX, say, or without.
compiled() {
  local file
  while read -r file; do
    if grep -qF "/$file\"" build/tidy/compile_commands.json; then echo "$file"; fi
  done
}

clang_tidy() {
  cmake --preset tidy >/dev/null # writes compile_commands.json
  sources_to_tidy | compiled | xargs --no-run-if-empty -n 1 -P "$(nproc)" clang-tidy --quiet -p build/tidy
}

run() {
  case $1 in
    format)
      ruff format .
      ruff check --fix-only --quiet .
      clang_format -i
      ;;
    ruff-format) ruff format --check . ;;
    ruff) ruff check . ;;
    mypy) mypy --strict ;;
    clang-format) clang_format --dry-run -Werror ;;
    clang-tidy) clang_tidy ;;
    *) echo "check.sh: there is no check called '$1'" >&2 && exit 2 ;;
  esac
}

if (($# == 0)); then
  failed=()
  for part in ruff-format ruff mypy clang-format clang-tidy; do
    "$PWD/scripts/check.sh" "$part" || failed+=("$part")
  done
  if ((${#failed[@]})); then
    echo "check: failed: ${failed[*]}" >&2
    exit 1
  fi
fi
for part in "$@"; do
  echo "check: $part"
  run "$part"
done
