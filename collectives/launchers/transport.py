# SPDX-License-Identifier: Apache-2.0
"""How data goes between the ranks: what the program or the environment says, equal on all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.launchers.launch import RENDEZVOUS, Launch

TRANSPORT = "COLLECTIVES_TRANSPORT"
AUTO, UCX = "auto", "ucx"


def chosen(given: str | None, env: Mapping[str, str]) -> str:
    """Return the transport: what the program says counts before the environment.

    Raises InvalidArgumentError for any that there is not.
    """
    name, value = ("transport", given) if given is not None else (TRANSPORT, env.get(TRANSPORT))
    if value is None:
        return AUTO
    if value not in (AUTO, UCX):
        raise InvalidArgumentError(f"{name} is {value!r}: it must be 'auto' or 'ucx'")
    return value


def check_equal(rank: int, transports: list[str]) -> None:
    """Raise InvalidArgumentError, on all ranks, where they do not want the same one."""
    different = [peer for peer, its in enumerate(transports) if its != transports[0]]
    if different:
        raise InvalidArgumentError(
            f"rank 0 has transport {transports[0]!r} and rank {different[0]} has "
            f"{transports[different[0]]!r} (this is rank {rank}): give all ranks the same, by "
            f"init(transport=...) or {TRANSPORT}"
        )


def needs_channel(launch: Launch) -> UnsupportedError:
    """Return what to raise where ranks have no way to tell each other where they listen."""
    return UnsupportedError(
        f"transport='ucx' needs a channel by which ranks find each other, and here ({launch.how}) "
        f"there is none: set {RENDEZVOUS} to a folder that all ranks reach, or start the program "
        "with torchrun, mpiexec or srun"
    )


def ucx_library() -> str:
    """Return where the PyPI package libucx-cu12 or libucx-cu13 has its library, "" without it."""
    package = find_spec("libucx")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        library = Path(folder) / "lib" / "libucp.so.0"
        if library.is_file():
            return str(library)
    return ""
