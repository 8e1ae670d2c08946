# SPDX-License-Identifier: Apache-2.0
"""How a communicator finds its topology: places are gathered, links are measured."""

from __future__ import annotations

import json
import socket
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from collectives.launchers.meeting import host as identity
from collectives.launchers.meeting import told_apart
from collectives.topology.hwloc import PATIENCE
from collectives.topology.machine import own_cpus, rooms
from collectives.topology.value import LEVELS, Link, Place, Topology

if TYPE_CHECKING:
    from collectives.communicator import Communicator

# Bytes. The rate is what the longest takes more than the middle one: the first some hundred KiB may
# pass at once, where a link is shaped by a bucket of tokens, as those of virtual machines are.
SHORT, MIDDLE, LONG = 8, 1 << 20, 2 << 20
TIMES = {SHORT: 40, MIDDLE: 5, LONG: 5}
MOST_PAIRS = 12  # of a level: they are measured one after the other


def found(comm: Communicator, host: str | None, measure: bool) -> Topology:
    """Return the topology of a communicator, the same on all ranks. Every rank must call it.

    All that is sent goes by a communicator of its own, so that no message, receive or group() of
    the program meets it.
    """
    if host is not None:
        Place(host)  # refused, if need be, before anything is sent
    with comm.dup() as apart:
        topology = Topology(_places(apart, host))
        if measure:
            topology = topology.edited(links=_measured(apart, topology))
    return topology


def _own_words(host: str | None) -> bytes:
    """Return this rank's place as text; its host as a name that was given, or with an identity."""
    cpus = own_cpus()
    here = rooms()
    package, numa = here.around(cpus)
    named = [host, ""] if host is not None else [own_host(), _own_identity()]
    return json.dumps([*named, package, numa, cpus, here.source]).encode()


def own_host() -> str:
    """Return the name of this machine, which may hold any bytes, or none."""
    name = "".join(c if c.isprintable() else "?" for c in socket.gethostname())
    return name or "localhost"


def _own_identity() -> str:
    """Return what tells this host from others, as init() does; "" where /proc does not say."""
    try:
        return identity()
    except OSError:
        return ""


def _places(comm: Communicator, host: str | None) -> tuple[Place, ...]:
    words = _own_words(host)
    # Another rank may wait for hwloc as long as it may take: that is not this call's time.
    seconds = comm._handle.timeout + PATIENCE
    longest = comm.allreduce(np.array([len(words)]), op="max", timeout=seconds)[0]
    padded = np.frombuffer(words.ljust(int(longest)), np.uint8)
    gathered = np.empty(comm.size * padded.size, np.uint8)
    comm.allgather(padded, gathered)
    told = [json.loads(one.tobytes()) for one in gathered.reshape(comm.size, -1)]
    hosts = told_apart([one[0] for one in told], [one[1] for one in told])
    return tuple(
        Place(name, package, numa, tuple(cpus), source)
        for name, (_, _, package, numa, cpus, source) in zip(hosts, told, strict=True)
    )


def measured_pairs(topology: Topology) -> dict[str, list[tuple[int, int]]]:
    """Return which pairs stand for each level: of two rooms that meet on it, the first ranks."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    inner = [[rank] for rank in range(topology.size)]
    for level in LEVELS:
        heads = [group[0] for group in inner]
        of_level = [
            (a, b)
            for i, a in enumerate(heads)
            for b in heads[i + 1 :]
            if topology.level(a, b) == level
        ]
        if of_level:
            step = -(-len(of_level) // MOST_PAIRS)
            pairs[level] = of_level[::step]
        inner = topology.groups(level)
    return pairs


def _measured(comm: Communicator, topology: Topology) -> dict[str, Link]:
    """Return the median link of each level's pairs; the lower rank of a pair measures."""
    pairs = measured_pairs(topology)
    flat = [pair for of_level in pairs.values() for pair in of_level]
    seconds = np.zeros((len(flat), len(TIMES)))
    for i, (a, b) in enumerate(flat):
        comm.barrier()  # nothing else is under way meanwhile
        if comm.rank in (a, b):
            seconds[i] = _ways(comm, b if comm.rank == a else a, begins=comm.rank == a)
    comm.allreduce(seconds)
    links, at = {}, 0
    for level, of_level in pairs.items():
        of_pairs = [_link(*times) for times in seconds[at : at + len(of_level)]]
        links[level] = Link(
            median(link.alpha for link in of_pairs), median(link.beta for link in of_pairs)
        )
        at += len(of_level)
    return links


def _link(short: float, middle: float, long: float) -> Link:
    beta = max((long - middle) / (LONG - MIDDLE), 0.0)
    return Link(max(short - SHORT * beta, 0.0), beta)


def _ways(comm: Communicator, peer: int, begins: bool) -> list[float]:
    """Return the seconds of one way of a message of each length; zeros at the other end."""
    times = []
    for nbytes, count in TIMES.items():
        buffer = np.zeros(nbytes, np.uint8)
        trips = []
        for _ in range(count + 1):
            start = time.perf_counter()
            if begins:
                comm.send(buffer, peer)
            comm.recv(buffer, peer)
            if not begins:
                comm.send(buffer, peer)
            trips.append(time.perf_counter() - start)
        times.append(median(trips[1:]) / 2 if begins else 0.0)
    return times
