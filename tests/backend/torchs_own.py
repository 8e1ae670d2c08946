# SPDX-License-Identifier: Apache-2.0
"""torch's own tests of backends, out of the wheel that is installed, on this one.

    python -m tests.backend.torchs_own [pattern]

Those that are for gloo or MPI on CPUs run, with four ranks. Fails where a test fails that ALLOWED
does not have, and where one of those passes.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
import time
import unittest
from typing import Any
from unittest import mock

MODULE = "torch.testing._internal.distributed.distributed_test"
RANKS, SECONDS = 4, 40  # of one test
_WORDS = "asks for the words of gloo's error; ours are others"
_ONE = (
    "asks for gloo's words, and for the first of the missing ranks; ours names all that it knows of"
)
ALLOWED = {
    "test_barrier_timeout_full_group": _WORDS,
    "test_barrier_timeout_group": _WORDS,
    "test_monitored_barrier_gloo": _WORDS,
    "test_monitored_barrier_gloo_rank_0_timeout": "a time-out of 0 is none, not one at once",
    "test_monitored_barrier_gloo_subgroup": _WORDS,
    "test_monitored_barrier_failure_order": _ONE,
    "test_monitored_barrier_wait_all_ranks": _ONE,
}


class AnyBackend(str):
    """The name of ours, which is also that of those whose tests are to run."""

    __slots__ = ("likes",)
    likes: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        """Whether it is ours or another whose tests run."""
        return str.__eq__(self, other) or other in self.likes

    def __ne__(self, other: object) -> bool:
        """Whether it is neither."""
        return not self == other

    def __hash__(self) -> int:
        """Return that of the first other one, so that sets find it."""
        return hash(self.likes[0])


def tests_of(*likes: str) -> Any:
    """Return torch's class of tests as it is for some backends."""
    os.environ.update(BACKEND="collectives", WORLD_SIZE=str(RANKS), OMP_NUM_THREADS="1")
    import torch
    from torch import distributed as dist

    import collectives.torch as ours

    common: Any = importlib.import_module("torch.testing._internal.common_distributed")
    importlib.import_module("torch._dynamo")  # once, instead of in each rank
    torch.set_num_threads(1)
    for feature in common.DistTestCases.backend_feature.values():
        feature.add(ours.NAME)
    common.TIMEOUT_DEFAULT = SECONDS
    common.TIMEOUT_OVERRIDE.clear()
    common.skip_if_small_worldsize = lambda test: test  # it wants eight ranks; three do
    dist.monitored_barrier = ours.monitored_barrier
    name = AnyBackend(ours.NAME)
    name.likes = likes
    with mock.patch.object(os, "environ", {**os.environ, "BACKEND": name}):
        theirs: Any = importlib.import_module(MODULE)
    for supported in ("PROFILING_SUPPORTED_BACKENDS", "SEND_RECV_PROFILING_SUPPORTED_BACKENDS"):
        getattr(theirs, supported).append(ours.NAME)
    _let_calls_be_made_at_once(theirs)
    return _with_forks(theirs, torch.multiprocessing.get_context("fork").Process)


def _let_calls_be_made_at_once(theirs: Any) -> None:
    """Say that events end on other threads: here a call that is waited for needs none."""
    find = theirs.get_profiling_event

    def found(*arguments: Any, **options: Any) -> Any:
        events = find(*arguments, **options)
        for event in events:
            event.is_async = True
        return events

    theirs.get_profiling_event = found


def _with_forks(theirs: Any, process: Any) -> Any:
    """Return the class; its ranks are forks, which have torch from the start."""
    base = theirs.TestDistBackend

    def set_up(self: Any) -> None:
        base.setUp(self)
        self._start_processes(process)

    bases = (base, theirs.DistributedTest._DistTestBase)
    return type("TorchsOwn", bases, {"setUp": set_up})


def outcome_of(test: unittest.TestCase) -> tuple[str, str]:
    """Run a test, with its output in a file; return how it has ended and what it has told."""
    result = unittest.TestResult()
    with tempfile.TemporaryFile("w+") as told:
        sys.stdout.flush()
        kept = os.dup(1), os.dup(2)
        os.dup2(told.fileno(), 1)
        os.dup2(told.fileno(), 2)
        try:
            test.run(result)
        finally:
            sys.stdout.flush()
            for stream, copy in enumerate(kept, 1):
                os.dup2(copy, stream)
                os.close(copy)
        told.seek(0)
        text = told.read()
    if result.skipped:
        return "skipped", result.skipped[0][1]
    wrong = result.failures + result.errors
    return ("failed", text + wrong[0][1]) if wrong else ("passed", "")


def main(pattern: str = "") -> int:
    """Run the tests whose names have the pattern; return how many are not as expected."""
    tests = tests_of("gloo", "mpi")
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    begin, surprises = time.monotonic(), 0
    for name in dir(tests):
        if not name.startswith("test_") or not re.search(pattern, name):
            continue
        ended, text = outcome_of(tests(name))
        counts[ended] += 1
        if ended == "failed" and name not in ALLOWED:
            print(f"{name} fails:\n{text}", flush=True)
            surprises += 1
        elif ended == "passed" and name in ALLOWED:
            print(f"{name} passes, and is in ALLOWED: {ALLOWED[name]}", flush=True)
            surprises += 1
    seconds = time.monotonic() - begin
    print(f"torch's own tests, {RANKS} ranks: {counts}, {surprises} not expected, {seconds:.0f} s")
    return surprises


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]) > 0)
