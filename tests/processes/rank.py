# SPDX-License-Identifier: Apache-2.0
"""One rank of a test: ``python -m tests.processes.rank MODULE.FUNCTION FOLDER [ARGUMENTS]``.

Writes what the function returns to FOLDER/RANK.json.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path


def main(program: str, folder: str, *arguments: str) -> None:
    """Run one function and keep what it returns."""
    module, _, function = program.partition(".")
    work = getattr(importlib.import_module(f"tests.processes.{module}"), function)
    found = work(*arguments)
    rank = os.environ["COLLECTIVES_RANK"]
    Path(folder, f"{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
