# SPDX-License-Identifier: Apache-2.0
"""What a signal handler raises during a call is raised in the thread of that call."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

import collectives as cl
from collectives import stopping
from collectives._ffi import lib
from collectives.defined import unpacked
from collectives.machine_costs import usual_costs
from collectives.names import algorithm_index
from collectives.prediction import predict, predict_wire

LONG = 400  # ranks whose proof takes many looks


def test_a_call_of_another_thread_that_fails_meanwhile_does_not_raise_it() -> None:
    stopping._keep(None, KeyboardInterrupt(), None)
    try:
        with ThreadPoolExecutor(1) as another:
            assert another.submit(stopping.raise_what_came).exception() is None
    finally:
        with pytest.raises(KeyboardInterrupt):
            stopping.raise_what_came()
    stopping.raise_what_came()


class Interrupted(threading.Event):
    """What is asked whether to end sends Ctrl-C to its own process, the first time."""

    asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        if self.asked == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return False


ALONE: list[Callable[[], object]] = [
    lambda: cl.verify("ring", LONG),
    lambda: cl.verify("ring", 64, plans=True),
    lambda: cl.schedule("ring", LONG),
    lambda: predict(usual_costs(), "allreduce", "ring", 1 << 26, 64, tile_bytes=1024),
    lambda: predict_wire("hosts:8x1,gbit=1", "allreduce", "ring", 1 << 26, 8, lag=64, tile_bytes=1),
]


@pytest.mark.parametrize("work", ALONE)
def test_ctrl_c_ends_proofs_schedules_and_predictions_while_they_are_made(
    work: Callable[[], object],
) -> None:
    event = Interrupted()
    with stopping.ended_by(event), pytest.raises(KeyboardInterrupt):
        work()
    assert event.asked == 1
    assert cl.verify("ring", 2)[0].proved


@pytest.mark.parametrize("work", ALONE)
def test_another_thread_ends_by_an_event(work: Callable[[], object]) -> None:
    event = threading.Event()
    event.set()
    with stopping.ended_by(event), pytest.raises(cl.AbortedError):
        work()


def test_ctrl_c_ends_a_call_while_its_plan_is_made() -> None:
    event, x = Interrupted(), np.ones(LONG)
    with ExitStack() as stack:
        comms = cl.local(64, timeout=5)
        for comm in comms:
            stack.callback(comm.close)
        with stopping.ended_by(event), pytest.raises(KeyboardInterrupt):
            comms[0].allreduce(x, algorithm="ring")
        assert event.asked == 1
        with pytest.raises(cl.AbortedError, match="interrupted in allreduce by KeyboardInterrupt"):
            comms[1].allreduce(x)


def test_algorithms_of_the_program_end_too() -> None:
    words = unpacked(lib.coll_schedule, algorithm_index("allreduce", "ring"), LONG, 0)

    @cl.algorithm("allreduce", name="ring_that_is_interrupted")
    def own(b: cl.ScheduleBuilder) -> None:
        raise AssertionError

    event = Interrupted()
    with stopping.ended_by(event), pytest.raises(KeyboardInterrupt):
        own.prove(words, 0, False)
    assert event.asked == 1
