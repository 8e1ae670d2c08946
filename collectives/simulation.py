# SPDX-License-Identifier: Apache-2.0
"""How long an algorithm would take on a network that need not be here: :func:`simulate`."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from collectives._ffi import check, ffi, lib, text
from collectives.defined import own_algorithm
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.names import algorithm_index, checked_ranks, checked_root, integer
from collectives.stopping import told
from collectives.topology.checked import shown
from collectives.topology.value import LEVELS, Link, Topology

ACTS = ("send", "receive", "fold", "copy")
MOST_MOMENTS = 1 << 20


@dataclass(frozen=True)
class Moment:
    """What a rank did from ``begin`` to ``end``, in seconds.

    ``act`` is "send" (until the message has arrived), "receive" (waiting included), "fold" or
    "copy"; ``peer`` is -1 for the last two.
    """

    begin: float
    end: float
    nbytes: float
    rank: int
    peer: int
    round: int
    tile: int
    act: str


@dataclass(frozen=True)
class Simulation:
    """What :func:`simulate` found.

    ``seconds`` until the last rank is done; ``link_bytes`` by kind of link, over all its links;
    ``busiest`` is the link that is taken for the longest, ``busiest_seconds`` of the time, by
    ``busiest_bytes``.
    """

    kind: str
    algorithm: str
    topology: str
    p: int
    nbytes: int
    tiles: int
    seconds: float
    rounds: int
    messages: int
    link_bytes: Mapping[str, float]
    busiest: str
    busiest_bytes: float
    busiest_seconds: float
    moments: tuple[Moment, ...] = field(default=(), repr=False)

    @property
    def algbw(self) -> float:
        """Bytes of the vector per second."""
        return self.nbytes / self.seconds if self.seconds else math.inf

    def draw(self, *, format: str = "svg") -> str:
        """Return the timeline as a drawing, ``"svg"`` or ``"text"``.

        Raises:
            InvalidArgumentError: no timeline was asked for, or there is no such format.
        """
        from collectives.timeline import drawing

        return drawing(self, format)


def simulate(
    algorithm: str,
    topology: str | Topology | os.PathLike[str],
    nbytes: int,
    p: int | None = None,
    *,
    kind: str = "allreduce",
    root: int = 0,
    tiles: int = 1,
    timeline: bool = False,
) -> Simulation:
    """Simulate every message of an algorithm on a network, link by link.

    ``topology`` is a text such as "fat-tree:1024,oversubscription=4" (docs/simulate.md lists all),
    a :class:`Topology`, or the path of one that was saved. ``nbytes`` is the size of the vector: a
    rank's longest buffer; a barrier has none, whatever is given. ``p`` ranks are the first of the
    network; None: all. Between two rounds the vector may travel in ``tiles``, one round behind the
    other. With ``timeline`` the first million of moments is kept, to be drawn.

    A message costs its sender and its receiver an overhead, each link its latency, and the slowest
    link its length; a link carries one message after another. Nobody waits for a receiver to be
    ready. After Alexandrov, Ionescu, Schauser and Scheiman, LogGP, SPAA 1995.

    Raises:
        InvalidArgumentError: there is no such algorithm or topology, its file cannot be read, it
            does not say what a link costs that is used, or a number is none.
        UnsupportedError: the algorithm is not defined for so many ranks.
        OutOfMemoryError: there are more than 2^28 messages.
    """
    network = _network(topology)
    try:
        ranks = int(lib.coll_network_ranks(network)) if p is None else _ranks(p)
        task, _alive = _task(
            algorithm, kind, ranks, checked_root("simulate", root, ranks), nbytes, tiles
        )
        return _simulated(network, task, algorithm, kind, _words(topology), timeline)
    finally:
        lib.coll_network_free(network)


def _words(topology: str | Topology | os.PathLike[str]) -> str:
    """Return what to call a network; letters of a file's name that are none are left out."""
    if isinstance(topology, Topology):
        return f"{topology.size} ranks"
    return os.fsdecode(topology).encode("utf-8", "replace").decode("utf-8")


def _whole(what: str, value: Any, least: int, most: int) -> int:
    number = integer(value)
    if number is None or not least <= number <= most:
        raise InvalidArgumentError(
            f"simulate: {what} is {shown(value)}: give a number from {least} to {most}"
        )
    return number


def _ranks(p: int) -> int:
    ranks = checked_ranks("simulate: p", p)
    if ranks < 1:
        raise InvalidArgumentError(f"simulate: p is {p}: give the number of ranks, 1 or more")
    return ranks


def _task(algorithm: str, kind: str, p: int, root: int, nbytes: int, tiles: int) -> tuple[Any, Any]:
    task = ffi.new("coll_task *")
    task.size = ffi.sizeof("coll_task")
    task.p, task.root = p, root
    length = _whole("nbytes", nbytes, 0, 1 << 62)
    task.bytes = 0 if kind == "barrier" else length
    task.tiles = _whole("tiles", tiles, 1, 1 << 20)
    own = own_algorithm(kind, algorithm)
    if own is None:
        task.algorithm = algorithm_index(kind, algorithm)
        return task, None
    if not own.fits(p):
        raise UnsupportedError(f"simulate: {algorithm} is for {own.restriction}, not for {p} ranks")
    encoded = own.proved(p, root)
    words = ffi.new("int32_t[]", encoded)
    task.algorithm, task.words, task.length = -1, words, len(encoded)
    return task, words


def _simulated(
    network: Any, task: Any, algorithm: str, kind: str, topology: str, timeline: bool
) -> Simulation:
    classes = [
        text(lib.coll_network_class(network, i)) for i in range(lib.coll_network_classes(network))
    ]
    carried = ffi.new("double[]", len(classes))
    out = ffi.new("coll_simulated *")
    room = MOST_MOMENTS if timeline else 0
    moments = ffi.new("coll_moment[]", room) if timeline else ffi.NULL
    count = ffi.new("size_t *")
    if threading.current_thread() is threading.main_thread():
        task.stop = lib.asked_to_stop
    told(lib.coll_simulate(network, task, out, carried, moments, room, count))
    return Simulation(
        kind=kind,
        algorithm=algorithm,
        topology=topology,
        p=task.p,
        nbytes=int(task.bytes),
        tiles=task.tiles,
        seconds=out.seconds,
        rounds=out.rounds,
        messages=out.messages,
        link_bytes=MappingProxyType({name: carried[i] for i, name in enumerate(classes)}),
        busiest=text(out.busiest),
        busiest_bytes=out.busiest_bytes,
        busiest_seconds=out.busiest_seconds,
        moments=tuple(_moment(moments[i]) for i in range(count[0])),
    )


def _moment(m: Any) -> Moment:
    return Moment(m.begin, m.end, m.bytes, m.rank, m.peer, m.round, m.tile, ACTS[m.act])


# ---- networks ------------------------------------------------------------------------------------


def _network(topology: str | Topology | os.PathLike[str], p: int = 0) -> Any:
    """Return a ``coll_network``; ``p``: of the first ranks, where a topology has more."""
    made = ffi.new("coll_network **")
    if isinstance(topology, os.PathLike) or (
        isinstance(topology, str) and topology.endswith(".json")
    ):
        topology = _loaded(topology)
    if isinstance(topology, str):
        check(lib.coll_network_of_words(_encoded(topology), made))
    elif isinstance(topology, Topology):
        rooms, _alive = _rooms(_first(topology, p) if 0 < p < topology.size else topology)
        check(lib.coll_network_of_rooms(rooms, made))
    else:
        raise InvalidArgumentError(
            f"simulate: topology is a {type(topology).__name__}: give a text such as 'torus:8x8', "
            "a Topology, or the path of one"
        )
    return made[0]


def _first(topology: Topology, p: int) -> Topology:
    """Return the topology of the first ranks alone, who share cores with nobody else."""
    pairs = {pair: link for pair, link in topology.pairs.items() if max(pair) < p}
    return Topology(topology.places[:p], topology.links, pairs)


def _loaded(path: str | os.PathLike[str]) -> Topology:
    try:
        return Topology.load(path)
    except InvalidArgumentError:
        raise
    except OSError as error:
        why = error.strerror
    except ValueError:  # a zero, or half of a letter
        why = "no file has such a name"
    raise InvalidArgumentError(f"simulate: cannot read the topology {shown(path)}: {why}")


def _encoded(words: str) -> bytes:
    """Return words as the native layer reads them: to it a zero would be their end."""
    try:
        encoded = words.encode("utf-8")
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise InvalidArgumentError(
            f"simulate: topology is {shown(words)}: give a text such as 'torus:8x8'"
        )
    return encoded


def _rooms(topology: Topology) -> tuple[Any, Any]:
    """Return a ``coll_rooms``, and what must live as long."""
    rooms = ffi.new("coll_rooms *")
    rooms.size = ffi.sizeof("coll_rooms")
    rooms.p, rooms.levels = topology.size, len(LEVELS) - 1
    numbers = []
    for level in LEVELS[:-1]:
        room_of = {r: i for i, group in enumerate(topology.groups(level)) for r in group}
        numbers += [room_of[rank] for rank in range(topology.size)]
    names = [ffi.new("char[]", level.encode()) for level in LEVELS]
    pairs = sorted(topology.pairs.items())
    machines = topology.machines()
    machine_of = {rank: i for i, ranks in enumerate(machines) for rank in ranks}
    alive = (
        ffi.new("int32_t[]", numbers),
        names,
        ffi.new("char *[]", names),
        ffi.new("coll_link[]", [_costs(topology.links.get(level)) for level in LEVELS]),
        ffi.new("int32_t[]", [rank for pair, _ in pairs for rank in pair]),
        ffi.new("coll_link[]", [_costs(link) for _, link in pairs]),
        ffi.new("int32_t[]", [machine_of[rank] for rank in range(topology.size)]),
        ffi.new("int32_t[]", [topology.cores(ranks) for ranks in machines]),
    )
    rooms.groups, rooms.names, rooms.links = alive[0], alive[2], alive[3]
    rooms.pairs, rooms.pair_ranks, rooms.pair_links = len(pairs), alive[4], alive[5]
    rooms.machines, rooms.machine_of, rooms.cores = len(machines), alive[6], alive[7]
    return rooms, alive


def _costs(link: Link | None) -> tuple[float, float, float, float, float]:
    """Return a ``coll_link``; unknown ones matter where a message goes by them."""
    if link is None:
        return math.nan, 0.0, 0.0, 0.0, 0.0
    return link.alpha, link.beta, link.overhead, link.bucket, link.overhead_per_byte
