# SPDX-License-Identifier: Apache-2.0
"""Which GPU a number means, as CUDA's driver tells, and which host this is.

Ranks of other processes number GPUs otherwise.
"""

from __future__ import annotations

import ctypes
import hashlib

from collectives.errors import UnsupportedError
from collectives.launchers import meeting

BYTES = 16


def uuid_of(device: int) -> bytes:
    """Return what no other GPU has. Raises UnsupportedError where there is no driver to ask."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        tell = driver.cuDeviceGetUuid_v2  # of a part of a GPU (MIG) that part's; since CUDA 11.4
    except (OSError, AttributeError) as error:
        raise UnsupportedError(
            f"there is no driver of CUDA that tells GPUs apart: {error}"
        ) from None
    uuid, number = ctypes.create_string_buffer(BYTES), ctypes.c_int()
    for name, code in (
        ("cuInit", driver.cuInit(0)),
        ("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(number), device)),
        ("cuDeviceGetUuid", tell(uuid, number)),
    ):
        if code != 0:
            raise UnsupportedError(f"the driver of CUDA does not tell GPU {device}: {name}: {code}")
    return uuid.raw


def this_host() -> bytes:
    """Return what no other host has. Raises OSError where /proc does not tell."""
    return hashlib.blake2b(meeting.host().encode(), digest_size=BYTES).digest()
