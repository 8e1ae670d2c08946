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
from collectives.words import check_equal

if TYPE_CHECKING:
    from collectives.communicator import Communicator

# Bytes. The rate is what the longest takes more than the middle one: the first some hundred KiB may
# pass at once, where a link is shaped by a bucket of tokens, as those of virtual machines are. A
# smaller share of the middle one than this is none.
SHORT, MIDDLE, LONG = 8, 1 << 20, 2 << 20
TIMES = {SHORT: 40, MIDDLE: 5, LONG: 5}
LEAST_BUCKET = 1 / 16
# Messages of a burst, by their bytes: buckets and the buffers of sockets have room for them.
BURST = {SHORT: 16, 16 << 10: 4}
BURSTS, PAUSE = 7, 1e-3  # how often, and the seconds before each, in which buckets fill
MOST_PAIRS = 12  # of a level: they are measured one after the other


def found(comm: Communicator, host: str | None, measure: bool) -> Topology:
    """Return the topology of a communicator, the same on all ranks. Every rank must call it.

    All that is sent goes by a communicator of its own, so that no message, receive or group() of
    the program meets it.
    """
    if host is not None:
        Place(host)  # refused, if need be, before anything is sent
    with comm.dup() as apart:
        check_equal(apart, "topology", f"measure={bool(measure)}")
        topology = Topology(_places(apart, host))
        if measure:
            topology = topology.edited(links=_measured(apart, topology))
    return topology


def _own_words(host: str | None) -> bytes:
    """Return this rank's place as text; its host as a name that was given, or with an identity."""
    cpus = own_cpus()
    here = rooms()
    package, numa = here.around(cpus)
    told_by_system = _own_identity()
    named = [host, ""] if host is not None else [own_host(), told_by_system]
    boot = told_by_system.partition(" ")[0]
    return json.dumps([*named, package, numa, cpus, here.source, boot]).encode()


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
    machines = machines_of(hosts, [one[-1] for one in told])
    return tuple(
        Place(name, package, numa, tuple(cpus), source, machine)
        for name, machine, (_, _, package, numa, cpus, source, _) in zip(
            hosts, machines, told, strict=True
        )
    )


def machines_of(hosts: list[str], boots: list[str]) -> list[str]:
    """Return the name of each rank's machine: that of the first host of one boot of a kernel.

    "" where no other host is on it, or nobody knows its boot.
    """
    hosts_of: dict[str, list[str]] = {}
    for name, boot in zip(hosts, boots, strict=True):
        hosts_of.setdefault(boot, []).append(name)
    return [hosts_of[boot][0] if boot and len(set(hosts_of[boot])) > 1 else "" for boot in boots]


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
        overheads = _overheads(comm, topology, of_level)
        short, middle, long = np.median(seconds[at : at + len(of_level)], axis=0).tolist()
        links[level] = _link(short, middle, long, overheads)
        at += len(of_level)
    return links


def _link(short: float, middle: float, long: float, overheads: list[float]) -> Link:
    beta = (long - middle) / (LONG - MIDDLE)
    if beta <= 0:  # the machine was busy while the middle one was on its way
        beta = max(long - short, 0.0) / LONG
    bucket = MIDDLE - (middle - short) / beta if beta > 0 else 0.0
    of_short, of_longer = overheads
    shorter, longer = BURST
    return Link(
        short,
        beta,
        min(of_short, short / 2),  # of a short message alone the ends do all at most
        bucket if bucket >= LEAST_BUCKET * MIDDLE else 0.0,
        max(of_longer - of_short, 0.0) / (longer - shorter),
    )


def _overheads(comm: Communicator, topology: Topology, pairs: list[tuple[int, int]]) -> list[float]:
    """Return the seconds that a message of each of BURST's lengths keeps either end busy.

    Every rank must call it. All are at work at one time, as in a collective; those count that a
    rank had a core. Ranks with a core each send many messages at once: else to wait for one would
    count. Where cores are shared it should, since a core that falls asleep, or changes to another
    rank, does nothing else meanwhile.
    """
    peers: dict[int, int] = {}
    for a, b in pairs:
        if a not in peers and b not in peers:
            peers[a], peers[b] = b, a
    comm.barrier()
    machine = next(ranks for ranks in topology.machines() if comm.rank in ranks)
    shared = 0 < topology.cores(machine) < len(machine)
    every = np.zeros((comm.size, len(BURST)))
    if comm.rank in peers:
        for i, nbytes in enumerate(BURST):
            at_once = 1 if shared else BURST[nbytes]
            every[comm.rank, i] = median(
                _burst(comm, peers[comm.rank], nbytes, at_once) for _ in range(BURSTS)
            )
    comm.allreduce(every)
    typical: list[float] = np.median(every[sorted(peers)], axis=0).tolist()
    return typical


def _burst(comm: Communicator, peer: int, nbytes: int, at_once: int) -> float:
    """Return the seconds of a core for a message, sent or received, of many in both directions."""
    buffer = np.zeros(nbytes, np.uint8)
    time.sleep(PAUSE)
    start = time.process_time()
    for _ in range(BURST[nbytes] // at_once):
        for _ in range(at_once):
            comm.send(buffer, peer)
        for _ in range(at_once):
            comm.recv(buffer, peer)
    return (time.process_time() - start) / (2 * BURST[nbytes])


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
        # Long messages are few, and whatever else runs makes them longer only.
        typical = median if nbytes == SHORT else min
        times.append(typical(trips[1:]) / 2 if begins else 0.0)
    return times
