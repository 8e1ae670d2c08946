# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: each raises its documented exception at once, and the communicator works on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import collectives as cl
from collectives.environment import ATTEMPT, JOB, RANK, SIZE, TIMEOUT

Call = Callable[[Any], Any]  # of a communicator; Any, because types would not let it be wrong
F = np.float32
HUGE = 10**400  # no float


def ones(*shape: int, dtype: Any = F) -> Any:
    return np.ones(shape, dtype)


def frozen(*shape: int) -> Any:
    x = ones(*shape)
    x.flags.writeable = False
    return x


BAD: dict[str, tuple[Call, str]] = {
    # dtypes and objects
    "long double": (lambda c: c.allreduce(ones(3, dtype="g")), "x has dtype .*: supported are"),
    "times": (lambda c: c.allreduce(ones(3, dtype="m8[s]")), "x has dtype timedelta64"),
    "object": (lambda c: c.allreduce(ones(3, dtype=object)), "x has dtype object"),
    "a list": (lambda c: c.allreduce([1.0]), "x is a list with 1.0 in it"),
    "None": (lambda c: c.allgather(None), "allgather: x is of type NoneType"),
    "out of another dtype": (
        lambda c: c.allreduce(ones(3), ones(3, dtype="f8")),
        "allreduce: out has dtype float64, but x has float32",
    ),
    # shapes and counts
    "out too short": (lambda c: c.allreduce(ones(3), ones(2)), r"out has shape \(2,\)"),
    "out of another shape": (lambda c: c.allreduce(ones(2, 3), ones(3, 2)), "needs shape"),
    "gathered out too short": (lambda c: c.allgather(ones(3), ones(1)), "allgather: out has shape"),
    "scattered out too long": (
        lambda c: c.reduce_scatter(ones(2 * c.size), ones(3)),
        "reduce_scatter: out has shape",
    ),
    "a number does not scatter": (lambda c: c.reduce_scatter(np.array(1.0)), "does not split"),
    "counts too few": (lambda c: c.allgatherv(ones(3), []), "give 2 lengths"),
    "counts negative": (
        lambda c: c.allgatherv(ones(3), [3, -1]),
        r"counts is \[3, -1\]: -1 is no length: give 2 lengths, one for each rank, integers from 0",
    ),
    "counts not integers": (lambda c: c.allgatherv(ones(3), [1.5] * c.size), "1.5 is no length"),
    "counts not numbers": (lambda c: c.allgatherv(ones(1), [True] * c.size), "True is no length"),
    "counts not a list": (lambda c: c.allgatherv(ones(3), 3), "counts is 3"),
    "counts do not fit x": (lambda c: c.allgatherv(ones(3), [2] * c.size), "has shape"),
    # memory
    "out read-only": (lambda c: c.allreduce(ones(3), frozen(3)), "out is read-only"),
    "out repeats itself": (
        lambda c: c.allreduce(ones(3), np.lib.stride_tricks.as_strided(ones(1), (3,), (0,))),
        "out of shape .* has elements that share their memory",
    ),
    "out slides": (
        lambda c: c.allreduce(ones(3, 2), sliding_window_view(ones(4), 2, writeable=True)),
        "out of shape .* has elements that share their memory",
    ),
    "x slides": (
        lambda c: c.broadcast(sliding_window_view(ones(4), 2, writeable=True)),
        "x of shape .* has elements that share their memory",
    ),
    # words and numbers
    "op": (lambda c: c.allreduce(ones(3), op="mean"), "allreduce: op 'mean' is unknown"),
    "op nearly right": (lambda c: c.reduce(ones(3), op="summ"), "did you mean 'sum'"),
    "op not a word": (lambda c: c.allreduce(ones(3), op=np.add), "is unknown: there are sum"),
    "op unhashable": (lambda c: c.allreduce(ones(3), op=["sum"]), "op .* is unknown"),
    "avg of integers": (lambda c: c.allreduce(ones(3, dtype="i4"), op="avg"), "avg of int32"),
    "avg of bool": (lambda c: c.reduce(ones(3, dtype=bool), op="avg"), "avg of bool is not"),
    "min of complex": (
        lambda c: c.allreduce(ones(3, dtype="c8"), op="min"),
        "min of complex64 is not defined: complex numbers take sum, prod and avg",
    ),
    "land of complex": (lambda c: c.allreduce(ones(3, dtype="c16"), op="land"), "land of complex"),
    "band of floats": (
        lambda c: c.allreduce(ones(3, dtype="f2"), op="band"),
        "band of float16 is not defined: bitwise operations take integers and bool",
    ),
    "minloc of floats": (
        lambda c: c.allreduce(ones(3), op="minloc"),
        "minloc of float32 is not defined: minloc and maxloc take pairs",
    ),
    "sum of pairs": (
        lambda c: c.allreduce(np.zeros(3, "f4,i4")),
        "sum of float32_int32 is not defined: pairs of a value and its index take minloc",
    ),
    "accumulate": (
        lambda c: c.allreduce(ones(3), accumulate="float23"),
        "allreduce: accumulate 'float23' is unknown: did you mean 'float32'",
    ),
    "accumulate in a class of dtypes": (
        lambda c: c.allreduce(ones(3), accumulate=np.floating),
        "accumulate <class 'numpy.floating'> is unknown: there are float32, float64",
    ),
    "accumulate unhashable": (
        lambda c: c.scan(ones(3), accumulate=[F]),
        "scan: accumulate .* is unknown: there are float32, float64",
    ),
    "accumulate in integers": (
        lambda c: c.allreduce(ones(3, dtype="i1"), accumulate=np.int64),
        "accumulate 'int64' is unknown",
    ),
    "accumulate integers": (
        lambda c: c.reduce(ones(3, dtype="i1"), accumulate="float32"),
        "int8 is not accumulated in float32: integers wrap around alike in any width",
    ),
    "accumulate in less": (
        lambda c: c.reduce_scatter(ones(4, dtype="f8"), accumulate=F),
        "reduce_scatter: float64 is not accumulated in float32: give float64",
    ),
    "algorithm": (lambda c: c.allreduce(ones(3), algorithm="rong"), "did you mean 'ring'"),
    "algorithm unhashable": (
        lambda c: c.allreduce(ones(3), algorithm=["ring"]),
        r"allreduce: algorithm \['ring'\] is unknown: there are ring",
    ),
    "algorithm not a word": (lambda c: c.reduce(ones(3), algorithm=3), "algorithm 3 is unknown"),
    "algorithm in bytes": (lambda c: c.scan(ones(3), algorithm=b"x"), "algorithm b'x' is unknown"),
    "algorithm cut short": (
        lambda c: c.allreduce(ones(3), algorithm="ring\0s"),
        r"algorithm 'ring\\x00s' is unknown",
    ),
    "algorithm no text": (
        lambda c: c.allreduce(ones(3), algorithm="\udcff"),
        r"algorithm '\\udcff' is unknown",
    ),
    "algorithm of another kind": (
        lambda c: c.broadcast(ones(3), algorithm="ring"),
        "broadcast: algorithm 'ring' is unknown: there are binomial",
    ),
    "mode unhashable": (
        lambda c: c.barrier(mode={"staged"}),
        "barrier: mode {'staged'} is unknown",
    ),
    "op a dict": (lambda c: c.scan(ones(3), op={}), "scan: op {} is unknown"),
    "root a list": (lambda c: c.broadcast(ones(3), root=[0]), r"root is \[0\]: give a rank"),
    "timeout a list": (lambda c: c.barrier(timeout=[1]), r"timeout is \[1\]: give seconds"),
    "out for a list": (
        lambda c: c.allreduce([ones(3)], [ones(3)]),
        "out is given for a list of arrays",
    ),
    "out a list": (lambda c: c.allreduce(ones(3), [ones(3)]), "out is of type list"),
    "peer a list": (lambda c: c.send(ones(3), [1]), r"send: to is \[1\]: give a rank"),
    "tag a list": (lambda c: c.recv(ones(3), tag=[1]), r"recv: tag is \[1\]: give a number"),
    "mode": (lambda c: c.allreduce(ones(3), mode="fast"), "allreduce: mode 'fast' is unknown"),
    "root too high": (lambda c: c.broadcast(ones(3), root=c.size), "root is 2: give a rank"),
    "root negative": (lambda c: c.reduce(ones(3), root=-1), "reduce: root is -1"),
    "root not a number": (lambda c: c.broadcast(ones(3), root="a"), "root is 'a'"),
    "root a bool": (lambda c: c.broadcast(ones(3), root=True), "root is True: give a rank"),
    "root a bool of NumPy": (lambda c: c.reduce(ones(3), root=np.True_), "root is .*True.*: give"),
    "root too large for C": (lambda c: c.broadcast(ones(3), root=2**40), "give a rank from 0 to 1"),
    "timeout zero": (lambda c: c.barrier(timeout=0), "barrier: timeout is 0"),
    "timeout negative": (lambda c: c.allreduce(ones(3), timeout=-1), "timeout is -1"),
    "timeout not a number": (lambda c: c.barrier(timeout="soon"), "timeout is 'soon'"),
    "timeout a text": (lambda c: c.barrier(timeout="5"), "timeout is '5': give seconds"),
    "timeout a bool": (lambda c: c.barrier(timeout=True), "timeout is True: give seconds"),
    "timeout nan": (lambda c: c.barrier(timeout=float("nan")), "timeout is nan"),
    "timeout infinite": (
        lambda c: c.barrier(timeout=float("inf")),
        "timeout is inf: give seconds, above 0 and at most 1e9, or None",
    ),
}


@pytest.fixture(scope="module")
def pair() -> Iterator[list[cl.Communicator]]:
    comms = cl.local(2, timeout=10)
    yield comms
    for comm in comms:
        comm.close()


@pytest.mark.parametrize("case", BAD)
def test_is_refused_by_one_rank_alone(pair: list[cl.Communicator], case: str) -> None:
    call, words = BAD[case]
    before = pair[0].sequence
    with pytest.raises(cl.InvalidArgumentError, match=words):
        call(pair[0])  # rank 1 is not there: whoever waited for it would hang
    assert pair[0].sequence == before


def test_overlapping_arrays_are_refused(pair: list[cl.Communicator]) -> None:
    x = ones(12)
    for call, source, out in (
        (pair[0].allreduce, x[:8], x[4:]),
        (pair[0].allgather, x[1:5], x[:8]),
        (pair[0].reduce_scatter, x[:8], x[2:6]),
    ):
        with pytest.raises(cl.InvalidArgumentError, match="overlap"):
            call(source, out)


def test_odd_lengths_do_not_scatter(pair: list[cl.Communicator]) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"2 equal parts.*reduce_scatterv"):
        pair[0].reduce_scatter(ones(5, 2))


def test_pair_still_works_after_all_that(pair: list[cl.Communicator], threads: Any) -> None:
    assert threads(pair, lambda comm: comm.allreduce(ones(3)).tolist()) == [[2, 2, 2]] * 2


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None, True, np.bool_(True), 2**40])
def test_a_group_of_threads_has_one_rank_or_more(n: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match="local: n is"):
        cl.local(n)


@pytest.mark.parametrize(
    "timeout",
    [0, -1, float("inf"), 1.1e9, "a", True, HUGE, np.bool_(True), np.complex64(1)],
    ids=lambda t: str(t)[:6],
)
def test_timeouts_of_communicators(timeout: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"timeout is .*above 0 and at most 1e9"):
        cl.local(1, timeout=timeout)


@pytest.mark.parametrize("p", [True, 2.5, "2", None, 2**40])
def test_numbers_of_ranks_are_integers(p: Any) -> None:
    ring = cl.algorithms("allreduce")[0]
    for ask in (
        lambda: cl.schedule("ring", p),
        lambda: cl.draw("ring", p),
        lambda: cl.verify("ring", [p]),
        lambda: ring.fits(p),
        lambda: ring.formula("rounds", p),
    ):
        with pytest.raises(cl.InvalidArgumentError, match=r"p is .*: give the number of ranks"):
            ask()


@pytest.mark.parametrize("ask", [cl.verify, cl.schedule, cl.draw])
def test_words_may_be_anything(ask: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"algorithm \['ring'\] is unknown"):
        ask(["ring"], 4)
    with pytest.raises(cl.InvalidArgumentError, match=r"collective \['allreduce'\] is unknown"):
        ask("ring", 4, ["allreduce"])


@pytest.mark.parametrize("p", [True, 2.5, None, 2**40, np.array(3.0), np.bool_(True)])
def test_one_number_of_ranks_to_prove_for(p: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"verify: p is .*: give the number of ranks"):
        cl.verify("ring", p)


@pytest.mark.parametrize("root", [True, -1, 4, 1.5, 2**40])
def test_roots_of_schedules_are_ranks(root: Any) -> None:
    for ask in (cl.schedule, cl.draw):
        with pytest.raises(cl.InvalidArgumentError, match=r"root is .*: give a rank from 0 to 3"):
            ask("binomial", 4, "broadcast", root)


def test_integers_may_be_numpys() -> None:
    four: Any = np.int64(4)
    assert cl.schedule("binomial", four, "broadcast", four - 3).root == 1
    assert [proof.p for proof in cl.verify("ring", four)] == [4, 4]


@pytest.mark.parametrize(
    ("name", "p", "kind", "error", "words"),
    [
        ("rong", 4, "allreduce", cl.InvalidArgumentError, "did you mean 'ring'"),
        ("ring", 4, "allredduce", cl.InvalidArgumentError, "collective 'allredduce' is unknown"),
        ("ring", 0, "allreduce", cl.UnsupportedError, "not defined for 0 ranks"),
        ("ring", -3, "allreduce", cl.UnsupportedError, "not defined for -3 ranks"),
    ],
)
def test_unknown_algorithms(
    name: str, p: int, kind: str, error: type[Exception], words: str
) -> None:
    for ask in (cl.verify, cl.schedule, cl.draw):
        with pytest.raises(error, match=words):
            ask(name, p, kind)


def test_unknown_format_of_a_drawing() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="format 'png' is unknown"):
        cl.draw("ring", 4, format="png")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({RANK: "0"}, f"{RANK} is set but {SIZE} is not"),
        ({RANK: "2", SIZE: "2"}, f"{RANK}=2 is not below {SIZE}=2"),
        ({RANK: "x", SIZE: "2"}, f"{RANK}='x' is not an integer"),
        ({RANK: "0", SIZE: "1", JOB: ""}, f"{JOB} is empty"),
        ({RANK: "0", SIZE: "1", JOB: "a\x1b[31m"}, f"{JOB}='a\\x1b[31m' has"),
        ({RANK: "0", SIZE: "1", JOB: "a\udcff"}, f"{JOB}='a\\udcff' has"),
        ({RANK: "0", SIZE: "1", JOB: "a" * 3000}, f"{JOB} has 3000 bytes"),
        ({RANK: "0", SIZE: "1", ATTEMPT: "first"}, f"{ATTEMPT}='first'"),
        ({TIMEOUT: "never"}, f"{TIMEOUT}='never'"),
    ],
)
def test_init_names_what_is_wrong_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(cl.InvalidArgumentError) as caught:
        cl.init()
    assert words in str(caught.value)


def test_a_missing_compiled_module_is_explained() -> None:
    program = "import sys; sys.modules['collectives._native'] = None; import collectives"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "the compiled part of pycollectives cannot be loaded" in done.stderr


@pytest.mark.parametrize("shape", [1 << 61, 1 << 63, (1 << 40, 1 << 40), (0, 1 << 80)])
@pytest.mark.parametrize("dtype", ["float32", "S1000"])
def test_arrays_longer_than_any_memory_are_refused(shape: Any, dtype: str) -> None:
    with cl.local(1)[0] as comm, pytest.raises(cl.OutOfMemoryError, match="no machine has so"):
        comm.empty(shape, dtype)
