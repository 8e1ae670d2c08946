# SPDX-License-Identifier: Apache-2.0
"""With CI set, a skipped test fails, unless tests/allowed-skips.txt gives a reason for it.

A test that quietly stops running proves nothing; on a contributor's machine it may skip.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from collectives import default

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Threads that NumPy's BLAS starts for each process take longer than what the tests compute.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What a test finds in the user's cache would change what it runs.
os.environ["COLLECTIVES_CACHE"] = "off"

ALLOWED = Path(__file__).with_name("allowed-skips.txt")


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass by thousands of tests, which stay to the end."""
    gc.freeze()


def allowed_prefixes(text: str) -> list[str]:
    """Return the node-id prefixes of lines ``prefix: reason``; ``#`` begins a comment."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.rpartition(": ") for line in lines if line and not line.startswith("#")]
    for prefix, _, reason in pairs:
        if not prefix or not reason:
            raise pytest.UsageError(f"{ALLOWED}: every line must be 'node-id-prefix: reason'")
    return [prefix for prefix, _, _ in pairs]


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn the report of a skip that nobody allowed into that of a failure."""
    if not os.environ.get("CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    if report.nodeid.startswith(tuple(allowed_prefixes(ALLOWED.read_text(encoding="utf-8")))):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = (
        f"{report.nodeid} was skipped ({reason}), and CI is set: make it run, or add a line "
        f"'{report.nodeid}: <reason>' to {ALLOWED.name}."
    )


@pytest.fixture(autouse=True)
def _no_default_left() -> Generator[None]:
    """Let no test meet the default communicator of another; fail one that leaves it open."""
    yield
    left, default._default = default._default, None
    if left is not None and not left.closed:
        left.close()
        pytest.fail("the default communicator was left open: close it in the test that made it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at every phase of every test."""
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Look at files that skip as a whole (``pytest.importorskip`` at their top)."""
    report = yield
    refuse_skip(report)
    return report
