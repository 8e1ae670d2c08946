# SPDX-License-Identifier: Apache-2.0
"""Tables that are kept for later runs: where, when they are found, and what may be wrong."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.machine_costs import usual_costs
from collectives.tuning.host_kind import host_fingerprint
from collectives.tuning.kept import folder, may_be_kept
from collectives.tuning.table import Choice, TunedTable, TuningWarning
from tests.processes.jobs import collrun
from tests.python.ranks import on_ranks

SHORT = 0.3  # seconds: some sizes are raced


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of the test's own."""
    monkeypatch.setenv("COLLECTIVES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _tuned(comm: cl.Communicator) -> TunedTable:
    return comm.tune(SHORT)


def test_the_second_call_finds_what_the_first_has_kept(cache: Path) -> None:
    first = on_ranks(2, _tuned)[0]
    (kept,) = cache.glob("tuned-*.json")
    assert TunedTable.load(kept) == first
    assert len(list(cache.iterdir())) == 2  # and the costs of the machine
    written = kept.stat().st_mtime_ns

    def later(comm: cl.Communicator) -> None:
        assert comm.tune(SHORT) == first
        shown = comm.explain("allreduce", 8)
        assert shown.source == "measured"
        won = first.of("allreduce", 8)
        assert won is not None
        assert shown.choice.algorithm == won.algorithm
        assert shown.measured is not None
        assert shown.measured_at == 8
        with comm.dup() as other:
            assert other.explain("allreduce", 8).choice == shown.choice
            assert other.explain("allreduce", 8).source == "measured"
        assert comm._known_costs != usual_costs()

    on_ranks(2, later)
    assert kept.stat().st_mtime_ns == written

    def again(comm: cl.Communicator) -> TunedTable:
        return comm.tune(SHORT, again=True)

    raced = on_ranks(2, again)[0]
    assert kept.stat().st_mtime_ns > written
    assert TunedTable.load(kept) == raced
    on_ranks(3, _tuned)  # another number of ranks has a table of its own
    assert len(list(cache.glob("tuned-*.json"))) == 2


def test_a_cache_that_others_have_written_into(cache: Path, tmp_path: Path) -> None:
    on_ranks(2, _tuned)
    (kept,) = cache.glob("tuned-*.json")
    (costs,) = cache.glob("costs-*.json")
    notes = tmp_path / "notes"
    notes.write_text("my notes")
    for path in (kept, costs):
        path.unlink()
    kept.symlink_to(notes)
    os.mkfifo(costs)

    def work(comm: cl.Communicator) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the notes are no table
            comm.tune(SHORT)

    on_ranks(2, work)
    assert notes.read_text() == "my notes"
    assert TunedTable.load(kept).ranks == 2
    assert costs.is_file()
    assert not kept.is_symlink()


def test_a_damaged_table_is_raced_again(cache: Path) -> None:
    on_ranks(2, _tuned)
    (kept,) = cache.glob("tuned-*.json")
    kept.write_text("{")
    with pytest.warns(TuningWarning, match="is not JSON") as caught:
        raced = on_ranks(2, _tuned)[0]
    assert len(caught) == 2
    assert TunedTable.load(kept) == raced
    (costs,) = cache.glob("costs-*.json")
    costs.write_text("{")

    def work(comm: cl.Communicator) -> bool:
        assert comm.tune(SHORT) == raced
        return comm._known_costs == usual_costs()

    with pytest.warns(TuningWarning, match="costs.*is not JSON.*usual ones"):
        assert on_ranks(2, work) == [True, True]


def test_it_is_taken_without_a_race(cache: Path) -> None:
    def source(comm: cl.Communicator, found: TunedTable | None) -> str:
        assert comm.use_kept_table() == found
        return comm.explain("allreduce", 8).source

    assert "measured" not in on_ranks(2, lambda comm: source(comm, None))
    kept = on_ranks(2, _tuned)[0]
    assert on_ranks(2, lambda comm: source(comm, kept)) == ["measured"] * 2
    assert "measured" not in on_ranks(3, lambda comm: source(comm, None))
    (path,) = cache.glob("tuned-*.json")
    path.write_text("{")
    with pytest.warns(TuningWarning, match="is not JSON.*chooses by itself") as caught:
        assert "measured" not in on_ranks(2, lambda comm: source(comm, None))
    assert len(caught) == 2
    refused = cl.InvalidArgumentError
    with cl.local(1)[0] as comm:
        with comm.force(allreduce="ring"), pytest.raises(refused, match=r"block of force\(\)"):
            comm.use_kept_table()
        with comm.group(), pytest.raises(refused, match=r"block of group\(\)"):
            comm.use_kept_table()


def test_whether_one_may_be_kept(cache: Path) -> None:
    assert not may_be_kept(2)
    on_ranks(2, _tuned)
    assert may_be_kept(2)
    assert not may_be_kept(3)
    (path,) = cache.glob("tuned-*.json")
    path.write_text("{")
    assert not may_be_kept(2)


def test_collrun_asks_for_one_that_is_kept(cache: Path) -> None:
    program = """
import os, sys, collectives as cl
source = cl.init().explain("allreduce", 8).source
sys.stdout.write(f"{os.environ.get('COLLECTIVES_TUNE')} {source}\\n")
"""
    words = {"COLLECTIVES_CACHE": str(cache)}

    def run(ranks: int, **more: str) -> list[str]:
        done = collrun("-n", ranks, "--no-prefix", sys.executable, "-c", program, env=words | more)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run(2, COLLECTIVES_TUNE=str(SHORT)) == [f"{SHORT} measured"] * 2
    assert run(2) == ["kept measured"] * 2
    assert run(2, COLLECTIVES_TUNE="") == ["kept measured"] * 2
    assert run(2, COLLECTIVES_TUNE="model") == ["model predicted"] * 2
    assert "measured" not in "".join(found := run(3))
    assert all(line.startswith("None ") for line in found)
    assert run(2, COLLECTIVES_CACHE="off")[0].startswith("None ")
    assert run(2, COLLECTIVES_CACHE="off", COLLECTIVES_TUNE="")[0].startswith(" ")


def test_what_was_asked_for_by_name_is_not_kept(cache: Path) -> None:
    on_ranks(2, lambda comm: comm.tune(0.1, kinds=["allreduce"]))
    on_ranks(2, lambda comm: comm.tune(0.1, sizes=[8]))
    assert not cache.exists()


def test_nothing_is_kept_where_it_is_switched_off(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTIVES_CACHE", "off")
    on_ranks(1, lambda comm: comm.tune(0.1))
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_warns_on_rank_0(cache: Path) -> None:
    cache.write_text("a file")
    with pytest.warns(TuningWarning, match=r"is not kept.*COLLECTIVES_CACHE") as caught:
        on_ranks(2, lambda comm: comm.tune(0.1))
    assert len(caught) == 1


@pytest.mark.parametrize(
    "arguments",
    [{"budget_s": 0.2}, {"sizes": [8]}, {"kinds": ["allreduce"]}, {"again": True}],
)
def test_ranks_that_ask_for_different_things_are_told(arguments: dict[str, Any]) -> None:
    def work(comm: cl.Communicator) -> float:
        with pytest.raises(cl.InvalidArgumentError, match="tune: the arguments of rank 1"):
            comm.tune(**({"budget_s": 0.1} | (arguments if comm.rank == 1 else {})))
        return float(comm.allreduce(np.ones(1))[0])

    assert on_ranks(3, work) == [3.0] * 3


def test_the_host_has_a_name() -> None:
    assert host_fingerprint() == host_fingerprint()
    assert len(host_fingerprint()) == 16
    assert int(host_fingerprint(), 16) >= 0


def test_where_tables_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder({"COLLECTIVES_CACHE": "/x"}) == Path("/x")
    assert folder({"COLLECTIVES_CACHE": "off", "XDG_CACHE_HOME": "/x"}) is None
    assert folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/collectives")
    assert folder({"XDG_CACHE_HOME": "x"}) == Path.home() / ".cache" / "collectives"

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    assert folder({}) is None


@pytest.mark.parametrize("name", ["~nosuchuser/x", "x" * 300])
def test_a_folder_that_cannot_be_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_CACHE", name)
    assert not may_be_kept(2)

    def work(comm: cl.Communicator) -> tuple[str, TunedTable | None, TunedTable]:
        source = comm.explain("allreduce", 8).source
        return source, comm.use_kept_table(), comm.tune(0.1)

    with pytest.warns(TuningWarning, match=name[:60]) as caught:
        (source, none, table), other = on_ranks(2, work)
    assert (source, none, table) == other
    assert (source, none) == ("rule", None)
    assert table.choices
    told = sorted(str(one.message)[:40] for one in caught)
    assert len(told) == 3  # all ranks look, and rank 0 keeps
    assert told[0] == told[1] == "no tuned table can be looked for: [Errno"[:40]
    assert not Path("~nosuchuser").exists()


@pytest.mark.parametrize("name", ["~nosuchuser/x", "x" * 300])
@pytest.mark.parametrize("wish", [None, "kept", "0.1"])
def test_programs_go_on_where_nothing_can_be_kept(name: str, wish: str | None) -> None:
    program = "import collectives as cl; cl.init().barrier()"
    words = {"COLLECTIVES_CACHE": name} | ({} if wish is None else {"COLLECTIVES_TUNE": wish})
    done = collrun("-n", 2, "--no-prefix", sys.executable, "-c", program, env=words)
    assert done.returncode == 0, done.stderr
    warned = done.stderr.count("TuningWarning: ")
    assert warned == {None: 0, "kept": 2, "0.1": 1}[wish], done.stderr
    assert wish is None or name in done.stderr


def test_a_program_that_is_not_to_be_changed(cache: Path) -> None:
    program = "import collectives as cl; print(cl.init().explain('allreduce', 8).source)"
    words = {"COLLECTIVES_CACHE": str(cache), "COLLECTIVES_TUNE": str(SHORT)}
    one_rank = "import os; r = os.environ['COLLECTIVES_RANK']; os.environ['COLLECTIVES_TUNE'] = "
    one_rank += "'nope' if r == '1' else '0.3'; import collectives as cl; cl.init(timeout=20)"
    done = collrun("-n", 2, sys.executable, "-c", one_rank, timeout=19)
    assert done.returncode != 0
    assert done.stderr.count("errors.InvalidArgumentError: ") == 2, done.stderr
    assert done.stderr.count("COLLECTIVES_TUNE='nope'") >= 2, done.stderr
    for wrong in ("0", "ten", "nan", "1e9"):
        done = collrun(
            "-n", 2, sys.executable, "-c", program, env=words | {"COLLECTIVES_TUNE": wrong}
        )
        assert done.returncode != 0
        assert f"COLLECTIVES_TUNE={wrong}" in done.stderr.replace("'", "")
        assert "above 0 and at most 1e+06, or 'kept', or 'refine', or 'model'" in done.stderr


def test_a_variable_that_some_ranks_lack_is_named(cache: Path) -> None:
    program = """
import os
if os.environ["COLLECTIVES_RANK"] == "1":
    del os.environ["COLLECTIVES_TUNE"]
import collectives as cl
cl.init(timeout=20).barrier()
"""
    words = {"COLLECTIVES_CACHE": str(cache), "COLLECTIVES_TUNE": str(SHORT)}
    done = collrun("-n", 2, sys.executable, "-c", program, env=words)
    assert done.returncode != 0
    assert "MismatchError: COLLECTIVES_TUNE is set on rank 0, so" in done.stderr, done.stderr


def test_not_within_a_group(cache: Path) -> None:
    def work(comm: cl.Communicator) -> float:
        with comm.group():
            for refused in (lambda: comm.tune(0.1), lambda: comm.use_table(None)):
                with pytest.raises(cl.InvalidArgumentError, match="block of group"):
                    refused()
        return float(comm.allreduce(np.ones(1))[0])

    assert on_ranks(2, work) == [2.0, 2.0]


def test_the_least_budget_there_is(cache: Path) -> None:
    tables = on_ranks(2, lambda comm: comm.tune(1e-6))
    assert tables[0] == tables[1]


def test_what_runs_on_far_cores_is_told_beside(cache: Path) -> None:
    plans = [
        Choice("allreduce", 0, "direct_two_shot", "staged", 1, 65536),
        Choice("allreduce", 0, "ring", "staged", 1, 65536, far=True),
    ]

    def work(comm: cl.Communicator) -> None:
        told = comm.tune(1e-6)
        comm.use_table(replace(told, choices=tuple(plans), races=()))
        shown = comm.explain("allreduce", 1 << 20)
        assert shown.choice.algorithm == "direct_two_shot"
        assert shown.far is not None
        assert shown.far.algorithm == "ring"
        assert shown.far.far
        assert "on cores that share no cache: ring" in str(shown)
        comm.use_table(replace(told, choices=(plans[0], replace(plans[0], far=True)), races=()))
        assert comm.explain("allreduce", 1 << 20).far is None

    on_ranks(2, work)


def test_what_is_explained_where_no_race_is_known(cache: Path) -> None:
    on_ranks(2, _tuned)

    def work(comm: cl.Communicator) -> None:
        told = comm.tune(SHORT)
        assert "times as long" in str(comm.explain("allreduce", 8))
        comm.use_table(replace(told, races=None))  # of an older version of the library
        text = str(comm.explain("allreduce", 8))
        assert "does not say by how much" in text
        comm.tune(0.1, kinds=["allreduce"], sizes=[64])
        far_beyond = comm.explain("allreduce", 1 << 26)
        assert far_beyond.source == "rule"
        assert all(rival.measured is None for rival in far_beyond.rivals)
        assert "times as long" not in str(far_beyond)

    on_ranks(2, work)


def test_who_meets_a_tune_is_told_of_it_by_that_name() -> None:
    def work(comm: cl.Communicator) -> None:
        if comm.rank == 0:
            comm.tune(0.01)
        else:
            comm.allreduce(np.ones(3))

    with pytest.raises(
        cl.MismatchError, match=r"rank 0 calls allgather of .* for tune\(\), rank 1"
    ):
        on_ranks(2, work)
