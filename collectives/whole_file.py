# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, whoever reads them meanwhile."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, and the folders that it lies in; where that fails, leave nothing.

    Raises OSError.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False)  # noqa: SIM115
    try:
        with draft:
            draft.write(text)
        os.replace(draft.name, target)
    except BaseException:
        os.unlink(draft.name)
        raise
