# SPDX-License-Identifier: Apache-2.0
"""Arrays that all ranks reach, with ranks that are processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.processes.jobs import found
from tests.shares import few, some_or_all

pytestmark = pytest.mark.processes


@some_or_all(40)
@few("p", [1, 2, 3, 4, 5], [2, 5])
def test_any_mixture_of_symmetric_and_ordinary_arrays(p: int, share: int, tmp_path: Path) -> None:
    for rank, wrong in enumerate(found(p, "symmetric.everything", tmp_path, share, timeout=100)):
        assert wrong == [], f"rank {rank}"


@pytest.mark.parametrize("p", [2, 5])
def test_the_library_chooses_for_any_array(p: int, tmp_path: Path) -> None:
    for right in found(p, "symmetric.chosen", tmp_path):
        assert right == [True] * 54


@pytest.mark.parametrize("p", [2, 3])
def test_stages_are_tried_even_so(p: int, tmp_path: Path) -> None:
    ranks = found(p, "symmetric.ran", tmp_path)
    assert ranks[0] == [["push", "staged"]] * 2
    assert all(modes == ranks[0] for modes in ranks)


def test_ranks_begin_to_tell_at_once(tmp_path: Path) -> None:
    for wrong in found(3, "symmetric.begun_late", tmp_path):
        assert wrong == 0


@pytest.mark.parametrize("p", [2, 3])
def test_however_far_another_rank_is_ahead(p: int, tmp_path: Path) -> None:
    for wrong in found(p, "symmetric.begun_while_another_is_far_ahead", tmp_path):
        assert wrong == 0


def test_they_are_made_beside_a_call_in_flight(tmp_path: Path) -> None:
    for right in found(2, "symmetric.beside_a_call_in_flight", tmp_path):
        assert right


def test_a_rank_that_cannot_map_them_says_so(tmp_path: Path) -> None:
    for text in found(2, "symmetric.without_room_to_map", tmp_path):
        assert "rank 1 cannot map the symmetric memory of the others for allreduce" in text


def test_they_take_a_wider_dtype_for_sums(tmp_path: Path) -> None:
    for sums in found(3, "symmetric.accumulated", tmp_path):
        assert sums == [2050.0] * 4  # 2048 + 1 is a tie in float16


def test_life_of_an_array(tmp_path: Path) -> None:
    for told in found(2, "symmetric.life", tmp_path):
        assert told == {
            "shape": [4, 5],
            "symmetric": True,
            "part": True,
            "ordinary": False,
            "strided": False,
            "none": [0, 3],
            "kept by a view": True,
            "used again": True,
            "outlives": 60.0,
            "in a forked child": 60,
        }


def test_threads_reach_all_memory() -> None:
    (comm,) = cl.local(1)
    assert comm.empty((2, 3), "bfloat16").shape == (2, 3)
    assert comm.is_symmetric(np.ones(3))
    shapes: list[Any] = [-1, (2, -1), "2", 1.5]
    for shape in shapes:
        with pytest.raises(cl.InvalidArgumentError, match="shape"):
            comm.empty(shape)
    for dtype in ("float33", object):
        with pytest.raises(cl.InvalidArgumentError, match="dtype"):
            comm.empty(3, dtype)
    comm.close()
    with pytest.raises(cl.ClosedError):
        comm.empty(3)
