# SPDX-License-Identifier: Apache-2.0
"""Finds out by trying whether an encoded schedule or plan is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.mutation.plans import PlanRun
from tests.mutation.schedules import ScheduleRun
from tests.mutation.values import Trees, WrongError
from tests.mutation.words import Schedule, read


def fault_of(words: Sequence[int], claimed: Trees, seeds: int) -> str | None:
    """Run it ``seeds`` times, in place and out of place; return what went wrong, None if nothing.

    Args:
        words: the encoding of the schedule or plan; its structure must be valid.
        claimed: the classes of summation tree that it must belong to.
        seeds: runs; each draws an interleaving, sizes or tiles, and the numbers to be summed.
    """
    subject = read(words)
    for seed in range(seeds):
        for in_place in (False, True):
            random = Random(2 * seed + in_place)
            try:
                if isinstance(subject, Schedule):
                    ScheduleRun(subject, in_place, random).run(claimed)
                else:
                    PlanRun(subject, in_place, random).run(claimed)
            except WrongError as wrong:
                return f"seed {seed}, {'in' if in_place else 'out of'} place: {wrong}"
    return None
