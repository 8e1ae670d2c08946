# SPDX-License-Identifier: Apache-2.0
"""The seeds of a run at its end, so that a log of it says how to make it again."""

from __future__ import annotations

import pytest

REPLAY = "replay"  # the property of a test's report that holds the command


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the command of every soak that was run."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if isinstance(report, pytest.TestReport)
    ]
    lines = [
        f"{r.outcome}: {text}" for r in reports for key, text in r.user_properties if key == REPLAY
    ]
    if lines:
        terminalreporter.section("soak")
        for line in lines:
            terminalreporter.write_line(str(line))
