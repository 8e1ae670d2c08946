# SPDX-License-Identifier: Apache-2.0
"""What can be told of bench.gpu without a GPU: bytes, figures, a whole run on an emulated one."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench.gpu import __main__ as program
from bench.gpu import checks, libraries, peers, report
from bench.gpu.figures import Cell, Goal
from bench.gpu.moved import DEPTH, LAG, moved
from bench.gpu.rounds import _turned, ratios
from bench.gpu.rows import ROWS, dense, selection
from collectives._ffi import check, ffi, lib
from collectives.lowering import lowering
from collectives.names import algorithm_index
from collectives.preloading import nccl_library
from tests.mutation import words
from tests.processes.jobs import emulated_gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("p", range(2, 9))
def test_plans_move_the_bytes_that_formulas_say(p: int) -> None:
    """The least is 2 p n: each input read once, each output written once."""
    assert moved("direct_two_shot", p, "push") == 2 * p
    assert moved("direct_two_shot", p, "pull") == 3 * p - 1
    assert moved("ring", p, "pull") == 5 * p - 5
    assert moved("ring", p, "push") == 5 * p - 6
    assert moved("ring", p, "staged") == 7 * p - 6
    # A ring that reads two, writes one, sends it on by a copy, and copies its input first moves
    # (6 p - 4) n; ours has no need to.
    assert max(moved("ring", p, mode) for mode in ("pull", "push")) < 6 * p - 4
    if p in (2, 4, 8):
        assert moved("recursive_halving", p, "push") == 5 * p - 6


@pytest.mark.parametrize("mode", ["staged", "inline", "pull", "push"])
@pytest.mark.parametrize("name", ["ring", "direct_one_shot", "double_tree", "circulant"])
def test_bytes_are_those_of_another_reader(name: str, mode: str) -> None:
    data, length = ffi.new("int32_t **"), ffi.new("size_t *")
    check(
        lib.coll_plan(
            algorithm_index("allreduce", name), 5, 0, lowering(mode, DEPTH, LAG), data, length
        )
    )
    plan = words.read(ffi.unpack(data[0], length[0]))
    lib.coll_free(data[0])
    assert isinstance(plan, words.Plan)
    cells = [
        2 if mode == "inline" and place == words.STAGE else 1
        for rank in plan.ranks
        for op in rank.ops
        for operand in (*op.sources, *op.destinations)
        for place, _ in operand.cells
    ]
    assert moved(name, 5, mode) == Fraction(sum(cells), plan.outline.chunks)


def test_all_ways_of_ours_have_bytes() -> None:
    for name, (algorithm, mode) in dense.OURS.items():
        least = moved(dense.OURS[dense.FUSED][0], 4, dense.OURS[dense.FUSED][1])
        assert moved(algorithm, 4, mode) >= least, name


def test_figures_have_goals_and_spread() -> None:
    cell = Cell("a row", 8, 1 << 28, "float32")
    figure = cell.figure("times", [1.0, 1.2, 1.1], Goal(most=1.15))
    assert (figure.median, figure.least, figure.most) == (1.1, 1.0, 1.2)
    assert (figure.goal, figure.met) == ("<= 1.15", True)
    assert figure.as_json()["low"] is None  # of three rounds nothing is known
    assert cell.figure("times", [1.9] * 9, Goal(least=2)).met is False
    assert cell.figure("us", [3.0]).met is None
    assert [report.size(n) for n in (0, 1000, 4096, 3 << 20, 1 << 30)] == [
        "0", "1000", "4 KiB", "3 MiB", "1 GiB",
    ]  # fmt: skip


def test_rounds_turn_and_ratios_are_within_a_round() -> None:
    assert [_turned(["a", "b", "c"], turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]
    assert ratios([2.0, 6.0], [1.0, 2.0]) == [2.0, 3.0]


def test_without_a_gpu_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(name: str, *_: object) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.delenv(libraries.KERNELS, raising=False)
    monkeypatch.setattr(ctypes, "CDLL", none)
    assert program.main([]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bench.gpu: there is no GPU here: the driver's libcuda.so.1 is not")
    assert said.count("\n") == 1


def test_a_driver_that_cannot_begin_or_counts_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        outcome = 100

        def __init__(self, name: str) -> None:
            assert name == "libcuda.so.1"

        def cuInit(self, flags: int) -> int:  # noqa: N802
            return self.outcome

        def cuDeviceGetCount(self, count: object) -> int:  # noqa: N802
            return 0

    monkeypatch.setattr(ctypes, "CDLL", Driver)
    assert libraries.driver() == "the driver cannot begin (CUDA error 100)"
    Driver.outcome = 0
    assert libraries.driver() == "the driver counts none"


def test_what_is_not_installed_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.gpu.checks.shutil.which", lambda name: None)
    found = checks.sanitized(1)
    assert (found.passed, found.words) == (None, "compute-sanitizer is not installed")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(peers.MissingError, match="CuPy ElementwiseKernel: "):
        peers.peer(peers.CUPY, None)  # type: ignore[arg-type]


def test_peers_read_all_inputs_and_write_all_outputs() -> None:
    """On stand-ins: neither CuPy nor torch is here."""
    called: list[tuple[object, ...]] = []

    class Stream:
        def __init__(self, address: int) -> None:
            assert address == 7

        def __enter__(self) -> None:
            called.append(("on the stream",))

        def __exit__(self, *_: object) -> None:
            called.append(("done",))

    def kernel(*text: str) -> object:
        assert text == (
            "float32 x0, float32 x1", "float32 y0, float32 y1",
            "float sum = x0 + x1; y0 = sum; y1 = sum", "sum_of_2",
        )  # fmt: skip
        return lambda *arrays: called.append(arrays)

    cupy = SimpleNamespace(
        ElementwiseKernel=kernel,
        asarray=lambda array: array,
        cuda=SimpleNamespace(ExternalStream=Stream),
    )
    operands = SimpleNamespace(
        ranks=2, inputs=["a", "b"], outputs=["c", "d"], yard=SimpleNamespace(stream=7)
    )
    peers._elementwise(cupy, operands)()  # type: ignore[arg-type]
    assert called == [("on the stream",), ("a", "b", "c", "d"), ("done",)]


def test_the_script_finds_a_python_that_has_the_package() -> None:
    done = subprocess.run(
        [str(ROOT / "scripts/gpu_bench.sh"), "--help"],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "python -m bench.gpu" in done.stdout


def test_the_script_names_what_a_python_lacks(tmp_path: Path) -> None:
    """A copy of it in a checkout without .venv, and a Python without packages."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/gpu_bench.sh").write_bytes((ROOT / "scripts/gpu_bench.sh").read_bytes())
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    done = subprocess.run(
        ["bash", str(tmp_path / "scripts/gpu_bench.sh")],
        env={**os.environ, "PYTHON": str(bare)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "which the package needs: install it, or its wheel"
    )


def emulated(*arguments: str) -> subprocess.CompletedProcess[str]:
    return _python("-m", "bench.gpu", *arguments)


def program_on_emulated(text: str) -> subprocess.CompletedProcess[str]:
    return _python("-c", textwrap.dedent(text))


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    library = str(emulated_gpu())
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, libraries.KERNELS: library, libraries.YARDSTICKS: library},
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.all_cases
def test_a_whole_run_on_the_emulated_gpu(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    done = emulated("--tiny", "--all", "--output", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests/gpu: passed: 1 passed" in done.stdout
    assert done.stdout.startswith("on emulated, 16 multiprocessors, CUDA 0\n")
    assert "goals met" in done.stdout.splitlines()[-1]
    kept = json.loads(output.read_text())
    assert kept["gpu"]["gpu"] == "emulated"
    assert {"commit", "date"} <= kept["machine"].keys()
    rows = {(row["row"], row["ranks"], row["what"]) for row in kept["rows"]}
    assert {row for row, _, _ in rows} == {
        "short allreduce", "empty step of a ring", "B", *(f"allreduce, {n}" for n in dense.OURS),
        "top-k, 0.1 %", "top-k, 1 %", "sparse sum to dense, 1 %", "sparse sum to sparse, 1 %",
    }  # fmt: skip
    assert ("top-k, 0.1 %", 1, "times one read at B") in rows
    assert ("allreduce, fused", 4, "times its 8 n bytes at B") in rows
    assert ("allreduce, fused", 2, "times by hand") in rows


def test_rows_are_chosen_and_time_ends_a_run_in_words(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    done = emulated("--tiny", "--no-checks", "--seconds", "0", "--rows", "dense", "small",
                    "--output", str(output))  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept = json.loads(output.read_text())
    assert kept["rows"] == []
    assert len(kept["left_out"]) == 2
    assert all(sentence.endswith("no time was left") for sentence in kept["left_out"])
    assert set(ROWS) == {"small", "steps", "selection", "merging", "dense", "nccl"}


def test_the_largest_are_the_first_of_equal_ones() -> None:
    x = np.array([1, -3, 2, 3, -2, 2, 0], "f4")
    assert selection.largest_of(x, 2).tolist() == [1, 3]
    assert selection.largest_of(x, 4).tolist() == [1, 2, 3, 4]


def test_wrong_outcomes_of_sparse_vectors_are_noticed() -> None:
    done = program_on_emulated(
        """
        import numpy as np
        from bench.gpu import libraries
        from bench.gpu.operands import WrongError
        from bench.gpu.rows.merging import DENSE, SPARSE, Vectors
        from bench.gpu.rows.selection import Selection
        from bench.gpu.team import Team
        from bench.gpu.yardsticks import Yardsticks

        def noticed(look, *, of):
            try:
                look()
            except WrongError as error:
                assert of in str(error), error
            else:
                raise AssertionError(of)

        yard = Yardsticks(libraries.yardsticks())
        with Selection(yard, 5000, 50) as job:
            job.enqueue()
            job.check()
            job.indices.poison()
            noticed(lambda: job._compare("it", job.x.host(), 0), of="it of 50 of 5000: ")
            yard.fill(job.residual.address, 10, False, 1)
            job.enqueue()
            noticed(job.check, of="with error feedback")
        with Vectors(yard, 2, 3000) as vectors, Team(2) as team:
            vectors.enqueue(team, DENSE)
            vectors.check()
            vectors.outputs[1].poison()
            noticed(vectors.check, of="3000 sums are wrong")
            noticed(lambda: vectors.check_union(team), of="a sparse sum has [0, 0] entries")
            vectors.enqueue(team, SPARSE)
            assert vectors.check_union(team) > 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_replay_that_writes_nothing_or_something_else_is_noticed() -> None:
    done = program_on_emulated(
        """
        from bench.gpu.operands import Operands, WrongError
        from bench.gpu.rounds import captured
        from bench.gpu.yardsticks import Yardsticks
        from bench.gpu import libraries

        yard, calls = Yardsticks(libraries.yardsticks()), []
        with Operands(yard, 2, 64, "float32") as operands:
            right = captured(yard, lambda: yard.fused(operands.vectors), 2)
            operands.replay("right", right, lambda: calls.append("again"))
            wrong = captured(yard, lambda: yard.nothing(2), 2)
            try:
                operands.replay("nothing", wrong, lambda: calls.append("again"))
            except WrongError as error:
                print(error, calls)
        """
    )
    words = "nothing, replayed, 2 ranks, 64 bytes of float32: 32 of 32 elements are wrong ['again']"
    assert done.stdout.strip() == words, done.stderr


def test_the_row_of_nccl_leaves_out_a_library_that_is_no_part_of_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours, which stands in for NCCL's: its sums are right, and then it refuses the capture."""
    monkeypatch.setenv("COLLECTIVES_NCCL", str(nccl_library()))
    output = tmp_path / "gpu.json"
    done = emulated("--tiny", "--no-checks", "--rows", "nccl", "--output", str(output))
    assert done.returncode == 0, done.stdout + done.stderr
    [sentence] = json.loads(output.read_text())["left_out"]
    assert sentence.startswith("NCCL with several ranks on one GPU: ncclGroupEnd: ")
    assert "is being captured into a graph" in sentence


def test_a_libnccl_that_is_not_where_it_is_said_to_be_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTIVES_NCCL", "/nowhere/libnccl.so.2")
    output = tmp_path / "gpu.json"
    done = emulated("--tiny", "--no-checks", "--rows", "nccl", "--output", str(output))
    assert done.returncode == 1
    assert "row nccl: FAILED: COLLECTIVES_NCCL names /nowhere/libnccl.so.2" in done.stdout
