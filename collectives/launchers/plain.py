# SPDX-License-Identifier: Apache-2.0
"""RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, set by a script or by a cluster's operator."""

from __future__ import annotations

from collections.abc import Mapping

from collectives.launchers.launch import (
    RENDEZVOUS,
    Launch,
    optional,
    rank_and_size,
    whole_number,
)

_LOOPBACK = ("localhost", "::1")
_LACK = (
    "RANK and WORLD_SIZE say who this process is, but not where the others are: set MASTER_ADDR "
    "and MASTER_PORT to where rank 0 is to meet the others, or set "
    f"{RENDEZVOUS} to a folder that all ranks reach"
)


def on_one_machine(env: Mapping[str, str]) -> bool:
    """Whether the variables say that all ranks are here: then they need no directory."""
    return bool(why_on_one_machine(env))


def why_on_one_machine(env: Mapping[str, str]) -> str:
    """Return which variables say that all ranks are here, in words; nothing where none do."""
    address = env.get("MASTER_ADDR", "")
    if not address or not env.get("MASTER_PORT"):
        return ""
    if address in _LOOPBACK or address.startswith("127."):
        return f"MASTER_ADDR is {address!r}"
    size = env.get("LOCAL_WORLD_SIZE", "")
    return f"LOCAL_WORLD_SIZE is WORLD_SIZE, {size}" if size == env.get("WORLD_SIZE") else ""


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that these variables give."""
    if "RANK" not in env and "WORLD_SIZE" not in env:
        return None
    rank, size = rank_and_size(env, "whoever starts ranks by hand", "RANK", "WORLD_SIZE")
    address, port = env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", "")
    meets = bool(address and port and not on_one_machine(env))
    return Launch(
        "environment",
        rank,
        size,
        directory="tcp" if meets else "none",
        how="RANK, WORLD_SIZE",
        local_rank=optional(env, "LOCAL_RANK"),
        job=f"{address.partition('%')[0]}:{port}",  # each host has its own names of interfaces
        lack=_LACK,
        master=(address, whole_number(env, "MASTER_PORT", 0, 1, 65535)) if meets else None,
    )
