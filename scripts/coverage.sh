#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which lines of native/ and collectives/ the tests run; fails below 90 % of either.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
least=90

# The native tests. Counts of an earlier run would add up.
find build/coverage -name '*.gcda' -delete 2>/dev/null || true
cmake --workflow --preset coverage
python -m gcovr --root . --filter native/ --object-directory build/coverage \
  --merge-mode-functions=merge-use-line-0 --exclude-throw-branches \
  --fail-under-line "$least" --print-summary --txt build/coverage/native.txt

# The Python tests, with what they start.
python -m coverage erase
python -m coverage run -m pytest -q tests/python tests/processes tests/cli tests/soak
python -m coverage combine --quiet
python -m coverage report --fail-under "$least"
