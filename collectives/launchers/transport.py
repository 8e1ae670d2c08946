# SPDX-License-Identifier: Apache-2.0
"""How data goes between the ranks: what the program or the environment says, equal on all ranks."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from collectives._ffi import check, ffi, lib, text
from collectives.environment import check_placement, tuning
from collectives.errors import (
    BootstrapError,
    CollectiveError,
    InvalidArgumentError,
    UnsupportedError,
)
from collectives.launchers.launch import LARGEST, RENDEZVOUS, Launch, shown, whole_number
from collectives.launchers.trusted import TRUSTED, Network, declared, outside
from collectives.tuning.forced import ALGORITHM, check_wishes

TRANSPORT, STREAMS = "COLLECTIVES_TRANSPORT", "COLLECTIVES_STREAMS"
SEND_BUFFER = "COLLECTIVES_SEND_BUFFER"  # which the native layer reads, once the ranks have met
AUTO, UCX = "auto", "ucx"
DEVICES = "UCX_NET_DEVICES"  # of UCX itself: what the user says there counts
MOST_STREAMS = 16  # as in the native layer
_ROOM = 64
_LONGEST_TERMS = 100  # characters


@dataclass(frozen=True)
class Wish:
    """What a rank wants: a transport, networks in which UCX may be used, streams for each pair.

    ``trusted``: None says nothing, and then only ``"ucx"`` is UCX, wherever the ranks meet.
    """

    transport: str = AUTO
    trusted: tuple[Network, ...] | None = None
    streams: int = 1

    @property
    def networks(self) -> str:
        """The networks as text, equal for equal ones."""
        if self.trusted is None:
            return "no networks, as none are said"
        return f"[{', '.join(map(str, self.trusted))}]"

    @property
    def terms(self) -> str:
        """The networks as ranks of one machine compare them: short, "" where none are said."""
        if self.trusted is None or len(self.networks) <= _LONGEST_TERMS:
            return "" if self.trusted is None else self.networks
        digest = hashlib.sha256(self.networks.encode()).hexdigest()[:16]
        return f"{self.networks[:_LONGEST_TERMS]}... ({len(self.trusted)} networks, {digest})"

    def __str__(self) -> str:
        """Return what is to be equal on all ranks, wherever they are: one line."""
        return f"{self.transport} {self.networks}"


def wished(
    transport: str | None,
    trusted: str | Iterable[str] | None,
    env: Mapping[str, str],
    size: int | None = None,
) -> Wish:
    """Return the wish: what the program says counts before the environment.

    Raises InvalidArgumentError for a transport or a placement that there is not, what is no
    network, or no number of streams or bytes, or no time to tune for; of ``size`` ranks also where
    COLLECTIVES_ALGORITHM names what they do not have.
    """
    tuning(env)
    check_placement(env)
    whole_number(env, SEND_BUFFER, 0, 0, LARGEST)
    if size is not None:
        check_wishes(env.get(ALGORITHM, ""), size)
    return Wish(_chosen(transport, env), declared(trusted, env), _streams(env))


def wished_or_why_not(
    transport: str | None,
    trusted: str | Iterable[str] | None,
    env: Mapping[str, str],
    size: int | None = None,
) -> tuple[Wish, CollectiveError | None]:
    """Return the wish; where it makes no sense, as much as leads to the others, and the error."""
    try:
        return wished(transport, trusted, env, size), None
    except CollectiveError as error:
        way = transport if transport is not None else env.get(TRANSPORT)
        return Wish(UCX if way == UCX else AUTO), error


def _chosen(given: str | None, env: Mapping[str, str]) -> str:
    name, value = ("transport", given) if given is not None else (TRANSPORT, env.get(TRANSPORT))
    if value is None:
        return AUTO
    if value not in (AUTO, UCX):
        quoted = shown(value) if isinstance(value, str) else f"{value!r:.60}"
        raise InvalidArgumentError(f"{name} is {quoted}: it must be 'auto' or 'ucx'")
    return value


def _streams(env: Mapping[str, str]) -> int:
    return whole_number(env, STREAMS, 1, 1, MOST_STREAMS)


def check_equal(rank: int, wishes: list[str]) -> None:
    """Raise InvalidArgumentError, on all ranks, where they do not want the same."""
    parted = [wish.partition(" ") for wish in wishes]
    _check_same(
        rank, "transport", [repr(one[0]) for one in parted], f"init(transport=...) or {TRANSPORT}"
    )
    _check_same(rank, "trusted", [one[2] for one in parted], f"init(trusted=...) or {TRUSTED}")


def _check_same(rank: int, name: str, values: list[str], how: str) -> None:
    different = [peer for peer, its in enumerate(values) if its != values[0]]
    if different:
        raise InvalidArgumentError(
            f"rank 0 has {name} {values[0]} and rank {different[0]} has "
            f"{values[different[0]]} (this is rank {rank}): give all ranks the same, by {how}"
        )


def check_streams(rank: int, numbers: list[str]) -> None:
    """Raise InvalidArgumentError, on all ranks, where they want different numbers of streams."""
    _check_same(rank, STREAMS, numbers, STREAMS)


def own_ucx(wish: Wish, door: str, devices: str) -> str:
    """Return what this rank says of UCX in trusted networks: "" it may not take it, or cannot.

    That is its version, which is looked for where several machines meet, or that it is wanted.
    ``devices``: those of this machine in trusted networks.
    """
    if not wish.trusted or outside([door], wish.trusted):
        return ""
    if not devices and DEVICES not in os.environ:
        return ""
    if wish.transport == UCX:
        return "wanted"
    try:
        return ucx_version(devices)
    except (UnsupportedError, BootstrapError):
        return ""  # transport="ucx" says why


def ucx_version(devices: str) -> str:
    """Begin with UCX, end it, and return its version.

    Raises UnsupportedError where it is not there, BootstrapError where it cannot use the devices.
    """
    room = ffi.new("char[]", _ROOM)
    check(lib.coll_ucx_version(os.fsencode(ucx_library()), os.fsencode(devices), room, _ROOM))
    return text(room)


def settled(wish: Wish, rank: int, doors: list[str], say: list[str]) -> str:
    """Return the transport, from what all ranks have told, so that all decide alike.

    ``doors``: where they listen; ``say``: :func:`own_ucx` of each. Raises InvalidArgumentError
    where UCX is wanted, and a rank is outside the trusted networks.
    """
    if wish.trusted is None:
        return wish.transport
    if wish.transport == AUTO:
        return UCX if "" not in say and len(set(say)) == 1 else AUTO
    stranger = outside(doors, wish.trusted)
    if stranger is not None:
        raise _outside(wish, rank, f"rank {stranger[0]} listens at {stranger[1]}, which is")
    if "" in say:
        what = "the first address of each interface is"
        raise _outside(wish, rank, f"rank {say.index('')} is on a machine where {what}")
    return wish.transport


def warn_outside(wish: Wish, doors: list[str]) -> None:
    """Warn where networks are trusted, and UCX is not taken as a rank is in none of them.

    Not an error: the variable may be set for a whole cluster, also for machines without such a
    network, and TCP, whose connections prove who they are, is right everywhere.
    """
    stranger = outside(doors, wish.trusted) if wish.transport == AUTO and wish.trusted else None
    if stranger is not None:
        warnings.warn(
            f"rank {stranger[0]} meets the others at {stranger[1]}, which is in none of the "
            f"networks that are trusted, {wish.terms}, so collectives go by TCP and not by UCX: "
            "let COLLECTIVES_INTERFACE name an interface in one of them, or correct "
            f"init(trusted=...) or {TRUSTED}",
            RuntimeWarning,
            stacklevel=2,
        )


def _outside(wish: Wish, rank: int, who: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"transport='ucx' in trusted networks only, and {who} in none of {wish.networks} (this is "
        f"rank {rank}): let COLLECTIVES_INTERFACE name an interface in one of them, or add the "
        f"network to init(trusted=...) or {TRUSTED}, if everybody in it is trusted"
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
