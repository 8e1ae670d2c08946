# SPDX-License-Identifier: Apache-2.0
"""collbench of sparse vectors: every algorithm is measured, and a wrong result is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives.cli.app import collbench
from collectives.exact import SPARSE, Workload, ops_of
from collectives.exact_sparse import SparseBuffers
from collectives.measure import Contender, Effort, measure
from tests.python.ranks import on_ranks

DTYPES = ("float32", "bfloat16", "int16", "bool", "complex64")


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(SPARSE),
    size=st.integers(0, 3000),
    p=st.integers(1, 5),
    density=st.sampled_from([0.001, 0.1, 0.7, 1.0]),
    dtype=st.sampled_from(DTYPES),
    data=st.data(),
)
def test_every_algorithm_is_right(
    kind: str, size: int, p: int, density: float, dtype: str, data: st.DataObject
) -> None:
    op = data.draw(st.sampled_from(ops_of(dtype)))
    load = Workload(kind, size, dtype, op, p - 1, density)
    names = [a.name for a in cl.sparse_algorithms(kind)] + (["dense"] * (kind == "allreduce"))

    def body(comm: cl.Communicator) -> list[Any]:
        ways = [Contender(), *map(Contender, names)]
        return measure(comm, load, ways, Effort(iterations=2, blocks=1, warm_up=1))

    for row in on_ranks(p, body)[0]:
        assert (row.wrong, row.refused, row.calls, row.density) == (0, None, 2, density)


@pytest.mark.parametrize("kind", SPARSE)
def test_what_is_wrong_is_counted(kind: str) -> None:
    def body(comm: cl.Communicator) -> None:
        buffers = SparseBuffers(Workload(kind, 4000, density=0.1), comm.rank, comm.size)
        for output in ("sparse", "dense"):
            buffers.fill(3)
            right = getattr(comm, kind)(buffers.x, output=output)
            buffers.out = right
            assert buffers.wrong(3) == 0
            assert buffers.wrong(4) > 0  # of the turn before
            values = right.values if isinstance(right, cl.Sparse) else right
            values[np.flatnonzero(values)[2]] += 1
            assert buffers.wrong(3) == 1
            buffers.out = cl.Sparse(np.arange(7), np.ones(7, "float32"), 4000)
            assert buffers.wrong(3) > 20

    on_ranks(2, body)


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["allreduce", "reduce-scatter"])
def test_the_command(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    words = [kind, "-n", "2", "-s", "0,64K", "--density", "0.01", "-a", "auto,all"]
    done = CliRunner().invoke(collbench, [*words, "--budget", "0.3", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "of sparse float32, 1.0000% of the elements" in done.stdout
    assert "all results right" in done.stdout
    name = kind.replace("-", "_")
    known = [a.name for a in cl.sparse_algorithms(name)] + ["dense"] * (name == "allreduce")
    rows = json.loads(file.read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["auto", *known] * 2
    assert {row["density"] for row in rows} == {0.01}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["allreduce", "--density", "0"], "not in the range"),
        (["allreduce", "--density", "0.1", "-a", "swing"], "no algorithm 'swing' of allreduce"),
        (["broadcast", "--density", "0.1", "-d", "float32_int32"], "no sparse vectors of"),
        (["gather", "--density", "0.1"], "No such option"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(collbench, arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_other_kinds_have_no_sparse_vectors() -> None:
    with pytest.raises(ValueError, match="there is no gather of sparse vectors"):
        Workload("gather", 8, density=0.1)
