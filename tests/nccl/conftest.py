# SPDX-License-Identifier: Apache-2.0
"""A stand-in for libnccl, and communicators of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collectives import nccl
from tests.nccl.standin import Standin


@pytest.fixture(scope="session")
def _standin(tmp_path_factory: pytest.TempPathFactory) -> Standin:
    return Standin(tmp_path_factory.mktemp("nccl") / "libstandin.so")


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No libnccl in the process; a torch for CUDA that a test has imported brings NVIDIA's."""
    monkeypatch.setattr("collectives.nccl.find.loaded", lambda: [])


@pytest.fixture
def standin(_standin: Standin, monkeypatch: pytest.MonkeyPatch, nothing_loaded: None) -> Standin:
    """The stand-in as the libnccl of the process, with nothing in its log."""
    monkeypatch.setattr("collectives.nccl.library._opened", _standin.library)
    _standin.log()
    return _standin


@pytest.fixture
def comm(standin: Standin) -> Iterator[nccl.Communicator]:
    """A communicator of one rank."""
    with nccl.init_rank(1, nccl.unique_id(), 0) as made:
        standin.log()
        yield made


@pytest.fixture
def third(standin: Standin) -> Iterator[nccl.Communicator]:
    """Rank 2 of four, which are not there: calls are noted, and do nothing."""
    with nccl.init_rank(4, nccl.unique_id(), 2) as made:
        standin.log()
        yield made
