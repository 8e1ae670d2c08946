# SPDX-License-Identifier: Apache-2.0
"""The rank's side: what is filled and read, and how ranks line up."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from bench.peers.channel import Channel
from bench.peers.ranks.lineup import LineUp, size
from bench.peers.ranks.work import DTYPES, IN_PLACE, KINDS, Array, Buffers, Work


def collective(kind: str, given: list[Array]) -> list[Array]:
    """Do what the libraries do, with NumPy."""
    ranks = len(given)
    total = np.sum([x.astype(np.float64) for x in given], axis=0).astype(given[0].dtype)
    if kind == "allreduce":
        return [total] * ranks
    if kind == "reduce_scatter":
        return list(np.split(total, ranks))
    if kind == "allgather":
        return [np.concatenate(given)] * ranks
    if kind == "broadcast":
        return [given[0]] * ranks
    parts = [np.split(x, ranks) for x in given]
    return [np.concatenate([part[rank] for part in parts]) for rank in range(ranks)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nbytes", [8, 1 << 10, (1 << 20) + 64])
def test_right_results_pass_and_any_wrong_element_is_seen(
    kind: str, dtype: str, nbytes: int
) -> None:
    works = [Work(kind, dtype, nbytes, 3, rank) for rank in range(3)]
    arrays = [work.arrays() for work in works]
    buffers = [Buffers(work, *pair) for work, pair in zip(works, arrays, strict=True)]
    assert all((x is out) == (kind in IN_PLACE) for x, out in arrays)
    for turn in (0, 5, 21):
        for one in buffers:
            one.fill(turn)
        results = collective(works[0].does, [x.copy() for x, _ in arrays])
        for (_, out), result in zip(arrays, results, strict=True):
            out[...] = result
        assert [one.wrong(turn) for one in buffers] == [0, 0, 0]
        for (_, out), one in zip(arrays, buffers, strict=True):
            assert len(out) < 64 or one.wrong(turn + 1) > 0  # what an earlier turn left
            for place in (0, len(out) // 2, -1):
                kept = out[place]
                out[place] = 100
                assert one.wrong(turn) == 1
                out[place] = kept


@pytest.mark.parametrize("shared_cores", [False, True])
def test_nobody_begins_before_all_have_come(tmp_path: Path, shared_cores: bool) -> None:
    path, ranks, turns = tmp_path / "lineup", 3, 20
    path.write_bytes(bytes(size(ranks)))
    came = np.zeros((turns, ranks))
    began = np.zeros((turns, ranks))

    def play(rank: int) -> None:
        lineup = LineUp(str(path), rank, ranks, shared_cores)
        generator = np.random.default_rng(rank)
        for turn in range(turns):
            time.sleep(generator.uniform(0, 1e-4))
            came[turn, rank] = time.perf_counter()
            lineup.wait()
            began[turn, rank] = time.perf_counter()

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (began.min(axis=1) >= came.max(axis=1)).all()
    assert (came[1:].min(axis=1) >= began[:-1].min(axis=1)).all()


def test_messages_arrive_whole_and_an_end_is_told() -> None:
    ends = [Channel(end) for end in socket.socketpair()]
    payload = np.arange(100_000.0).tobytes()
    thread = threading.Thread(target=ends[0].send, args=({"wrong": 0}, payload))
    thread.start()
    assert ends[1].receive() == ({"wrong": 0}, payload)
    thread.join()
    ends[0].close()
    assert ends[1].receive() is None
    ends[1].close()
