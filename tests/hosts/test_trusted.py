# SPDX-License-Identifier: Apache-2.0
"""Hosts whose ranks take UCX by themselves, as they meet in networks that are trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hosts.jobs import jobs

pytestmark = pytest.mark.hosts

TRUSTED = {"COLLECTIVES_TRUSTED": "10.77.0.0/24, fd00::/8", "UCX_TLS": "tcp"}


def found(folder: Path, **settings: str) -> list[Any]:
    """Return what ranks on two hosts have found."""
    with jobs(2, folder, settings=TRUSTED | settings) as (_, job):
        return job.found("trusted.goes")


def ready(folder: Path) -> None:
    """Skip where there is no UCX."""
    try:
        told = found(folder / "ready", COLLECTIVES_TRANSPORT="ucx")
    except AssertionError as error:
        if "UnsupportedError" not in str(error):
            raise
        pytest.skip("there is no UCX: scripts/ucx.sh installs it")
    assert [one["alone"] for one in told] == ["ucx", "ucx"]


def test_ranks_in_trusted_networks_take_ucx_and_listen_nowhere_else(tmp_path: Path) -> None:
    ready(tmp_path)
    for rank, told in enumerate(found(tmp_path / "auto")):
        assert told["ways"] == ["ucx", "ucx"]
        assert told["alone"] == "memory"  # a group within a host
        assert told["wrong"] == []
        assert told["listens"] == [f"10.77.0.{rank + 1}"]
    for told in found(tmp_path / "all", UCX_NET_DEVICES="all"):
        assert "127.0.0.1" in told["listens"]  # so it is the networks that keep UCX from there


@pytest.mark.parametrize(
    "settings",
    [
        {"COLLECTIVES_TRUSTED": "10.77.0.1, 10.0.0.0/16"},
        {"COLLECTIVES_UCX": "/nowhere/libucp.so.0"},
    ],
    ids=["one outside", "no library"],
)
def test_others_take_tcp(settings: dict[str, str], tmp_path: Path) -> None:
    for told in found(tmp_path, **settings):
        assert told["ways"] == ["tcp", "tcp"]
        assert told["wrong"] == []


def test_ucx_outside_is_refused_on_all_ranks(tmp_path: Path) -> None:
    settings = {"COLLECTIVES_TRANSPORT": "ucx", "COLLECTIVES_TRUSTED": "10.77.0.1"}
    with jobs(2, tmp_path, settings=settings) as (_, job):
        with job.running("trusted.goes") as run:
            for rank in range(2):
                run.read(rank, "end")
        told = (job.folder / "errors").read_text()
    for rank in range(2):
        assert (
            "rank 1 listens at 10.77.0.2, which is in none of [10.77.0.1/32] "
            f"(this is rank {rank})" in told
        )
