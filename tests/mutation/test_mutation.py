# SPDX-License-Identifier: Apache-2.0
"""No mutant of a schedule or plan that is wrong gets past the provers.

The native program makes the mutants and asks the provers (tests/native/mutation_test.cc). What they
let pass is judged here by running it; so are the originals, and a sample of what they rejected.
About 1,200 schedules and as many plans, the same in every run, and about 7,000 of each in
`make test-extras`. With ``RECORD_MUTATION=1`` all that can be made, in some minutes; the scores and
the survivors go to bench/results/mutation.json.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.mutation.report import Mutant, Report, faults, load, merged

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "package" / "mutation_test"
LEVELS = ("schedule", "plan", "mixed_plan")
CHECKS = {
    "schedule": ("structure", "matching", "defined", "result", "input", "cost", "tree"),
    "plan": ("structure", "matching", "defined", "result", "input", "tree"),
    # Of these only the waits are damaged: what moves is that of other plans.
    "mixed_plan": ("structure", "matching", "defined", "result", "tree"),
}
RECORD = "RECORD_MUTATION" in os.environ
Sample = dict[str, int]
SAMPLE: Sample = {"schedule": 1_200, "plan": 1_200, "mixed_plan": 600}
MORE: Sample = {"schedule": 7_000, "plan": 7_000, "mixed_plan": 2_000}
SEEDS = 20 if RECORD else 8
# Enough to see that the interpreter runs what is right; what is not right it sees at once.
SEEDS_OF_ORIGINALS = 2
SHARE_OF_ORIGINALS = 16  # of the sample's one of so many is run
LIMIT = 1800 if RECORD else 240  # seconds for an attack

pytestmark = pytest.mark.timeout(3 * LIMIT if RECORD else 300)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SAMPLE, id="sample"),
        pytest.param(MORE, id="more", marks=pytest.mark.extras),
    ],
)
def mutants(request: pytest.FixtureRequest) -> Sample:
    """Return how many mutants of each level to make."""
    wanted: Sample = request.param
    return wanted


@pytest.fixture(scope="module")
def report(mutants: Sample, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Attack the provers."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM.relative_to(ROOT)} is missing: `make test` builds it")
    folder = tmp_path_factory.mktemp("mutation")
    with ThreadPoolExecutor() as pool:
        paths = (folder / f"{level}.jsonl" for level in LEVELS)
        reports = list(pool.map(attack, paths, (mutants[level] for level in LEVELS)))
    return merged(reports)


def attack(path: Path, number: int) -> Report:
    """Attack the prover of the level that the path is named after."""
    mutants = "0" if RECORD else str(number)  # 0: all
    environment = {**os.environ, "MUTATION_MUTANTS": mutants, "MUTATION_REPORT": str(path)}
    command = [str(PROGRAM), f"mutants_of_{path.stem}s"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return load(path)


@pytest.fixture(scope="module")
def survivors(report: Report) -> list[tuple[Mutant, str | None]]:
    """Every mutant that was proved, and what is wrong with it."""
    return list(zip(report.survivors, faults(report.survivors, SEEDS), strict=True))


def test_originals_are_right(mutants: Sample, report: Report) -> None:
    few = [original for original in report.originals if " p 8 " not in original.subject]
    assert len(few) > 200
    few = few[:: SHARE_OF_ORIGINALS if mutants is SAMPLE else 1]
    found = zip(few, faults(few, SEEDS_OF_ORIGINALS), strict=True)
    assert [f"{original}: {fault}" for original, fault in found if fault] == []


def test_survivors_are_right(survivors: list[tuple[Mutant, str | None]]) -> None:
    holes = [f"{mutant}: proved, but {fault}" for mutant, fault in survivors if fault]
    assert holes == []
    print(*(f"equivalent: {mutant}" for mutant, _ in survivors), sep="\n")


def test_interpreter_sees_most_of_what_is_rejected(report: Report) -> None:
    found = faults(report.rejected, SEEDS)
    assert len(found) > 100
    assert sum(fault is not None for fault in found) > 0.8 * len(found)


@pytest.mark.parametrize("level", LEVELS)
def test_score(
    mutants: Sample, report: Report, survivors: list[tuple[Mutant, str | None]], level: str
) -> None:
    total = report.total(level)
    equivalent = sum(m.level == level and fault is None for m, fault in survivors)
    assert total.made > 0.8 * mutants[level]
    assert total.quiet >= total.made / 2
    assert total.rejected >= 0.99 * (total.made - equivalent)
    assert [check for check in CHECKS[level] if total.alone[check] == 0] == []


def test_every_mutator_has_a_score(
    report: Report, survivors: list[tuple[Mutant, str | None]]
) -> None:
    assert len(report.scores) > 54
    if RECORD:
        assert [score.mutator for score in report.scores if score.made < 20] == []
        from bench.record import RESULTS, save

        record = {
            "seeds": SEEDS,
            "scores": [asdict(score) for score in report.scores],
            "equivalent": [str(mutant) for mutant, fault in survivors if fault is None],
            "wrong": [f"{mutant}: {fault}" for mutant, fault in survivors if fault],
        }
        save(RESULTS / "mutation.json", record)
