# SPDX-License-Identifier: Apache-2.0
"""Where an object with DLPack says that its memory is."""

from __future__ import annotations

from typing import Any

from collectives.errors import InvalidArgumentError


def device_type(x: Any, what: str) -> int | None:
    """Return DLPack's number of a kind of memory; None for an object without DLPack.

    Raises InvalidArgumentError, whose sentence ``what`` opens, where it answers nonsense.
    """
    tell = getattr(x, "__dlpack_device__", None)
    if tell is None:
        return None
    try:
        return int(tell()[0])
    except (RuntimeError, TypeError, ValueError, LookupError) as error:
        raise InvalidArgumentError(f"{what} does not say by DLPack where it is: {error}") from error
