# SPDX-License-Identifier: Apache-2.0
"""Ranks are compared call by call, and a call that one of them makes otherwise is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import collectives as cl
from bench import agreement
from tests.python.ranks import on_ranks


def test_all_ranks_choose_alike(tmp_path: Path) -> None:
    files = [tmp_path / str(rank) for rank in range(3)]

    def body(comm: cl.Communicator) -> None:
        agreement.measure(comm, 1000, seed=4, output=files[comm.rank])

    on_ranks(3, body)
    found = json.loads(files[0].read_text())
    assert (found["calls"], found["disagreements"], found["wrong"]) == (1000, 0, 0)
    assert len(found["ways"]) > 10
    assert not files[1].exists()


def test_what_differs_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_says_otherwise(comm: cl.Communicator) -> str:
        return f"ring on rank {comm.rank // 2}"

    monkeypatch.setattr(agreement, "what_ran", one_says_otherwise)

    def body(comm: cl.Communicator) -> None:
        agreement.measure(comm, agreement.BATCH, seed=4, output=tmp_path / str(comm.rank))

    on_ranks(3, body)
    assert json.loads((tmp_path / "0").read_text())["disagreements"] == agreement.BATCH
