# SPDX-License-Identifier: Apache-2.0
"""Tables of choices that are spoiled on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import collectives as cl
from collectives.tuning.table import TunedTable


def check_refused(
    table: TunedTable, change: Callable[[dict[str, Any]], None], sentence: str, folder: Path
) -> None:
    """Check that the file of a table is refused once it has been changed."""
    document = table.as_json()
    change(document)
    path = folder / "table.json"
    path.write_text(json.dumps(document))
    with pytest.raises(cl.InvalidArgumentError, match=sentence):
        TunedTable.load(path)
