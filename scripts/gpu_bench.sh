#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures on a GPU: python -m bench.gpu, by .venv where that is, else by $PYTHON or
# python3, to which nothing is added: it works where no package can be fetched. Where that Python
# cannot import the compiled part of the package, it is built into the checkout, which takes CMake,
# ninja, cffi, NumPy and scikit-build-core; collectives/_native.abi3.so may also be brought along.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
if [[ -x .venv/bin/python ]]; then
  python=$PWD/.venv/bin/python
  export PATH="$PWD/.venv/bin:$PATH"
fi

build_extension() {
  echo "gpu: building the compiled part of the package"
  local folder
  folder=$(mktemp -d)
  "$python" -m pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir "$folder" .
  "$python" - "$folder" <<'PROGRAM'
import pathlib, sys, zipfile
[wheel] = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as opened:
    [name] = [name for name in opened.namelist() if name.startswith("collectives/_native.")
              and name.endswith(".so")]
    opened.extract(name)
PROGRAM
  rm -rf "$folder"
}

if ! "$python" -c 'import collectives._native' 2>/dev/null; then
  "$python" -c 'import cffi' || {
    echo "gpu: $python has no cffi, which the package needs: install it, or its wheel" >&2
    exit 2
  }
  build_extension
fi
# Of what the whole may take, what building has left.
left=$((SECONDS < 410 ? 470 - SECONDS : 60))
exec "$python" -m bench.gpu --seconds "$left" "$@"
