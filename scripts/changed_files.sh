#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the files that differ from where this branch left main (COLL_BASE names another commit),
# committed or not. On main itself: from the commit before the last. Without history: all files.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${COLL_BASE:-}
for main in origin/main main; do
  base=${base:-$(git merge-base HEAD "$main" 2>/dev/null || true)}
done
head=$(git rev-parse --verify --quiet HEAD || true)
if [[ -n $head && $base == "$head" ]]; then
  base=$(git rev-parse --verify --quiet HEAD~1 || true)
fi
# The empty tree, where there is nothing to compare with.
base=${base:-$(git hash-object -t tree /dev/null)}

{
  git diff --name-only --diff-filter=d "$base" --
  git ls-files --others --exclude-standard
} | LC_ALL=C sort -u
