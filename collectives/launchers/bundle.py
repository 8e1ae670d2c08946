# SPDX-License-Identifier: Apache-2.0
"""What a rank has put since the last fence, as one value: for stores that exchange one a rank."""

from __future__ import annotations

import json
from collections.abc import Mapping


def packed(values: Mapping[str, bytes]) -> bytes:
    """Return all of it as plain text: what is received is never unpickled."""
    return json.dumps({key: value.hex() for key, value in values.items()}).encode()


def unpacked(data: bytes) -> dict[str, bytes]:
    """Return what was packed."""
    return {key: bytes.fromhex(value) for key, value in json.loads(data).items()}
