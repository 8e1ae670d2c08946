# SPDX-License-Identifier: Apache-2.0
"""Measured choices: races, tables and their files, what calls run then, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.intervals import of_median
from collectives.tuning.candidates import built_in, candidates, distinct, parameters
from collectives.tuning.machine import fingerprint
from collectives.tuning.race import separate
from collectives.tuning.table import Choice, TunedTable, TuningWarning
from tests.python.ranks import last, on_ranks
from tests.python.tables import check_refused

RING = Choice("allreduce", 1000, "ring", "staged", 2, 65536)
TABLE = TunedTable(2, "here", "0.0", (RING, Choice("broadcast", 0, "chain", "inline", 0)))
TINY: dict[str, Any] = {"kinds": ("allreduce", "broadcast"), "sizes": (8, 8192)}


def test_a_table_is_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "table.json"
    TABLE.save(path)
    assert TunedTable.load(path) == TABLE
    assert [p.name for p in path.parent.iterdir()] == ["table.json"]
    (path.parent / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        TABLE.save(path.parent / "folder")
    assert {p.name for p in path.parent.iterdir()} == {"table.json", "folder"}
    assert TABLE.of("allreduce", 999) is None
    assert TABLE.of("allreduce", 10**9) == RING
    assert TABLE.of("allreduce", 10**9, far=True) is None
    assert str(RING) == "ring, staged, lag 2, tiles of 65536"


def _set(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update({key: value})


def _of_choice(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["choices"][0].update({key: value})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_set("format", "other"), "does not say that its format"),
        (_set("version", 2), "a newer version"),
        (_set("version", "1"), "no version that is known"),
        (_set("version", True), "no version that is known"),
        (_set("ranks", 0), "for how many ranks"),
        (_set("machine", 7), "which machine"),
        (_set("choices", {}), "no list of choices"),
        (_set("choices", [7]), "no choice at place 0"),
        (_of_choice("more", 7), "keys"),
        (_of_choice("kind", "allsum"), "tune again"),
        (_of_choice("algorithm", "rong"), "tune again"),
        (_of_choice("algorithm", ["ring"]), "tune again"),
        (_of_choice("nbytes", -1), "impossible"),
        (_of_choice("lag", 1.5), "impossible"),
        (_of_choice("tile_bytes", 1 << 63), "impossible"),
        (_of_choice("tile_bytes", (1 << 30) + 1), "impossible"),
        (_of_choice("mode", "push"), "impossible"),
        (_of_choice("far", 0), "near or far"),
    ],
)
def test_files_that_hold_no_table(
    change: Callable[[dict[str, Any]], None], sentence: str, tmp_path: Path
) -> None:
    check_refused(TABLE, change, sentence, tmp_path)


@pytest.mark.parametrize("content", [b"", b"[", b"7", b"\xff\xfe", b'{"format": "x"}', b"[" * 9999])
def test_files_that_are_something_else(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content)
    with pytest.raises(cl.InvalidArgumentError, match=r"table\.json"):
        TunedTable.load(path)

    def work(comm: cl.Communicator) -> bool:
        taken = comm.use_table(path)
        comm.allreduce(np.ones(5))
        return taken

    with pytest.warns(TuningWarning, match=r"table\.json") as caught:
        assert on_ranks(2, work) == [False, False]
    assert len(caught) == 2


def test_every_algorithm_has_several_sets_of_parameters() -> None:
    for nbytes in (8, 4096, 4097, 10_000, 1 << 20, 64 << 20):
        for shared in (True, False):
            assert len(set(parameters(nbytes, shared))) >= 4
    names = {a.name for a in built_in("allreduce", 6)}
    assert "ring" in names
    assert "circulant" in {choice.algorithm for choice in candidates("allreduce", 6, 8, True)}
    # Among two ranks most are one and the same.
    assert (
        len(distinct("allreduce", 2))
        < len(distinct("allreduce", 8))
        <= len(built_in("allreduce", 8))
    )


def test_when_a_race_is_decided() -> None:
    rng = np.random.default_rng(1)
    same, faster = rng.normal(0, 0.004, 40), rng.normal(0.3, 0.02, 40)
    assert separate(faster)
    assert separate(-faster)
    assert separate(same)
    assert not separate(rng.normal(0.01, 0.2, 40))
    assert not separate(faster[:3])  # too few to say
    assert of_median(np.arange(101.0)) == (39, 61)
    assert of_median(np.zeros(7)) == (-np.inf, np.inf)


def test_tuned_calls_run_what_won() -> None:
    def work(comm: cl.Communicator) -> TunedTable:
        table = comm.tune(0.5, **TINY)
        raced = [(cell.kind, cell.nbytes) for cell in comm._cells]  # as many as there was time for
        assert ("allreduce", 8) in raced
        for kind, nbytes in raced:
            shown = comm.explain(kind, nbytes)
            assert shown.source == "measured"
            chosen = table.of(kind, nbytes)
            assert chosen is not None
            assert shown.choice.algorithm == chosen.algorithm
            assert shown.measured is not None
            assert shown.predicted is not None
            assert 0 < shown.predicted < 1
            assert {r.algorithm for r in shown.rivals} | {shown.choice.algorithm} == {
                a.name for a in cl.algorithms(kind)
            }
        by_rule = comm.explain("reduce", 8)
        assert by_rule.source == "rule"
        assert "predicted" in str(by_rule)
        assert comm.explain("allreduce", 8192 * 4).source == "rule"  # far beyond what was raced
        for count in (1, 100, 5000):
            assert (comm.allreduce(np.full(count, comm.rank + 1.0)) == 6).all()
        again = comm.use_table(table)
        assert again
        assert comm.use_table(None) is False
        assert comm.explain("allreduce", 8).source == "rule"
        return table

    tables = on_ranks(3, work)
    assert tables[0] == tables[1] == tables[2]
    assert {c.kind for c in tables[0].choices} <= set(TINY["kinds"])


def test_a_table_of_elsewhere_is_not_used(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "table.json")

    def work(comm: cl.Communicator) -> bool:
        return comm.use_table(tmp_path / "table.json" if comm.rank == 0 else None)

    for ranks, words in ((2, "another machine"), (3, "2 ranks, not for 3")):
        with pytest.warns(TuningWarning, match=words) as caught:
            assert not any(on_ranks(ranks, work))
        assert len(caught) == ranks


@pytest.mark.parametrize(
    "table",
    [
        "a\0b",
        "/",
        "/dev/null",
        7,
        TunedTable(2, "\ud800", "", ()),
        TunedTable(2, "here", "", (Choice("allreduce", np.int64(7), "ring"),)),  # type: ignore[arg-type]
        TunedTable(2, "here", "", "abc"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_table_warns_on_all_ranks(table: Any) -> None:
    def work(comm: cl.Communicator) -> bool:
        taken = comm.use_table(table if comm.rank == 0 else None)
        return taken or comm.allreduce(np.ones(1))[0] != 2

    with pytest.warns(TuningWarning) as caught:
        assert on_ranks(2, work) == [False, False]
    assert len(caught) == 2


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice("allreduce", 0, "ring", "staged", 99), "a lag of 99"),
        (Choice("allreduce", 0, "ring", "inline", 1), "a lag of 1"),
        (Choice("allreduce", 0, "ring", "staged", 1 << 31), "impossible"),
        (Choice("allreduce", 0, "ring", "wire"), "mode 'wire'"),
        (Choice("allgather", 0, "recursive_doubling"), "among 3 ranks"),
    ],
)
def test_tables_that_were_edited_warn(choice: Choice, words: str) -> None:
    def work(comm: cl.Communicator) -> bool:
        table = TunedTable(3, fingerprint(comm), "", (choice,))
        taken = comm.use_table(table)
        return taken or comm.allreduce(np.ones(1))[0] != 3

    with pytest.warns(TuningWarning, match=words):
        assert on_ranks(3, work) == [False] * 3


def test_wishes_count_for_more_than_races(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_ALGORITHM", "broadcast:chain")

    def work(comm: cl.Communicator) -> None:
        table = comm.tune(0.3, **TINY)
        assert {c.kind for c in table.choices} == {"allreduce"}
        assert comm.explain("broadcast", 8).source == "wished for"
        before = comm.explain("allreduce", 8)
        with comm.force(allreduce="ring"):
            assert comm.explain("allreduce", 8).choice.algorithm == "ring"
            with pytest.raises(cl.InvalidArgumentError, match="force"):
                comm.tune(0.1)
        assert comm.explain("allreduce", 8) == before
        assert comm.explain("broadcast", 8).choice.algorithm == "chain"
        comm.use_table(None)
        assert comm.explain("broadcast", 8).choice.algorithm == "chain"

    on_ranks(3, work)


def test_wished_for_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_ALGORITHM", "allreduce:ring,reduce:chain")

    def work(comm: cl.Communicator) -> None:
        for kind, name in (("allreduce", "ring"), ("reduce", "chain")):
            shown = comm.explain(kind, 100)
            assert (shown.choice.algorithm, shown.source) == (name, "wished for")
        assert "wished for" in str(comm.explain("allreduce"))
        assert comm.explain("broadcast").source == "rule"
        assert (comm.allreduce(np.ones(9)) == 3).all()
        part = comm.split(0 if comm.rank < 2 else 1)
        assert part is not None
        with part:
            assert (part.allreduce(np.ones(9)) == part.size).all()

    on_ranks(3, work)
    for words, error in (
        ("allreduce:rong", cl.InvalidArgumentError),
        ("allreduce:ring,allreduce:chain", cl.InvalidArgumentError),
        ("allgather:recursive_doubling", cl.UnsupportedError),
    ):
        monkeypatch.setenv("COLLECTIVES_ALGORITHM", words)
        with pytest.raises(error, match="COLLECTIVES_ALGORITHM"):
            cl.local(3)


@pytest.mark.parametrize("nbytes", [1 << 50, (1 << 62) - 1])
def test_lengths_that_no_memory_holds_are_explained(nbytes: int) -> None:
    first, second = cl.local(2)
    for kind in ("allreduce", "alltoall"):
        shown = first.explain(kind, nbytes)
        assert shown.predicted is not None
        half = first.explain(kind, nbytes // 2).predicted
        assert half is not None
        assert shown.predicted == pytest.approx(2 * half, rel=0.01)
    first.close()
    second.close()


def test_a_barrier_has_no_bytes() -> None:
    def work(comm: cl.Communicator) -> None:
        shown = comm.explain("barrier")
        assert shown == comm.explain("barrier", 8)
        assert (shown.nbytes, str(shown).count("bytes")) == (0, 0)
        assert shown.predicted is not None
        assert shown.predicted < 1e-3
        comm.barrier()
        assert shown.choice.algorithm == last(comm).algorithm

    on_ranks(3, work)


def test_tune_refuses() -> None:
    (comm,) = cl.local(1)
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"budget_s": 0}, "seconds"),
        ({"budget_s": float("nan")}, "seconds"),
        ({"budget_s": 10**400}, "seconds"),
        ({"budget_s": 10**5000}, "seconds"),
        ({"budget_s": 1e7}, r"budget_s is 10000000\.0: give seconds, above 0 and at most 1e\+06"),
        ({"kinds": ["allsum"]}, "unknown"),
        ({"kinds": 5}, "names"),
        ({"kinds": []}, "names, or leave it out"),
        ({"kinds": [10**5000]}, "names"),
        ({"kinds": ["scan"]}, "'scan' is not tuned: those that are tuned are allreduce, "),
        ({"sizes": 8}, "ascending"),
        ({"sizes": [8, 8]}, "ascending"),
        ({"sizes": [0]}, "ascending"),
        ({"sizes": []}, "ascending"),
        ({"sizes": ["8"]}, "ascending"),
        ({"sizes": [10**5000]}, "ascending"),
    )
    for arguments, sentence in wrong:
        with pytest.raises(cl.InvalidArgumentError, match=sentence):
            comm.tune(**arguments)
    for kind, nbytes in (("allsum", 8), ("allreduce", -1), ("allreduce", 10**5000)):
        with pytest.raises(cl.InvalidArgumentError, match="explain"):
            comm.explain(kind, nbytes)
    comm.close()


def test_one_rank_alone_has_nothing_to_race(tmp_path: Path) -> None:
    with cl.init() as comm:
        table = comm.tune(budget_s=3600, again=True)
        assert table.choices == ()
        table.save(tmp_path / "table.json")
        assert comm.use_table(tmp_path / "table.json")
        assert comm.allreduce(np.full(3, 2.0)).tolist() == [2.0] * 3
