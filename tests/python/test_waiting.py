# SPDX-License-Identifier: Apache-2.0
"""A rank that is alone until its time is up says who did not come, and how to wait longer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collectives as cl
from collectives import errors
from collectives.launchers.detect import place
from collectives.launchers.directory import named
from collectives.start import join
from tests.python.test_launchers import PLAIN
from tests.python.test_meeting_by_hand import Stored, member, port, secret_file

__all__ = ["port", "secret_file"]  # fixtures

ADVICE = "this rank waited for 0.2 s: timeout=... or COLLECTIVES_TIMEOUT sets for how long"


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("way", ["memory", "folder", "tcp", "store"])
def test_who_did_not_come_is_named(
    way: str, rank: int, tmp_path: Path, port: int, secret_file: str
) -> None:
    plain = PLAIN | {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_PORT": str(port)}
    env = {
        "memory": plain,
        "folder": plain | {"COLLECTIVES_RENDEZVOUS": str(tmp_path / "in")},
        "tcp": member(rank, 3, port, COLLECTIVES_SECRET_FILE=secret_file),
    }

    def meet() -> cl.Communicator:
        if way == "store":
            return cl.Communicator.from_store(Stored(), rank, 3, timeout=0.2)
        return join(place(0.2, env[way]), 0.2)

    with pytest.raises(errors.CollectiveTimeoutError) as caught:
        meet()
    assert re.search("ranks 1, 2" if rank == 0 else "ranks? 0", str(caught.value))
    assert str(caught.value).endswith(ADVICE)


def test_of_many_ranks_some_are_named() -> None:
    assert named([4]) == "rank 4 has"
    assert named(list(range(16))).endswith("14, 15 have")
    assert named(list(range(1000))).endswith("14, 15 and 984 more have")
