# SPDX-License-Identifier: Apache-2.0
"""The cost of calls is measured for every collective, and shown in the unit of the same run."""

from __future__ import annotations

import pytest

from bench import call_cost
from collectives.names import KINDS


def test_all_collectives_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    found = call_cost.measured(2, blocks=2)
    assert set(found) == {"unit", *KINDS}
    assert all(seconds > 0 for row in found.values() for seconds in row.values())
    call_cost.show(2, {"unit": {"": 1e-7}, "scan": {"new or in place": 4e-7, "persistent": 3e-7}})
    line = next(text for text in capsys.readouterr().out.splitlines() if "scan" in text)
    assert "0.40 µs = 4.0" in line
    assert "0.30 µs = 3.0" in line


def test_ranks_measure_what_they_are_asked_for_and_as_often_as_they_are_asked() -> None:
    with call_cost.Callers(2) as callers:
        for kind in ("scan", "barrier"):
            found = callers.measure(1, [kind], ["persistent"])
            assert set(found) == {"unit", kind}
            assert set(found[kind]) == {"persistent"}


def test_a_rank_that_fails_is_told_and_none_is_left_behind() -> None:
    with pytest.raises(RuntimeError, match="exit codes"), call_cost.Callers(2) as callers:
        callers.measure(1, ["no such collective"])
    assert [one.poll() for one in callers._ranks] != [None, None]
