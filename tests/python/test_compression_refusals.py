# SPDX-License-Identifier: Apache-2.0
"""What compressors and their calls refuse, and in which words; numbers of NumPy are numbers."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from collectives.compression.codec import Codec
from tests.python.ranks import on_ranks

BAD = cl.InvalidArgumentError


def test_adasum_is_not_compressed() -> None:
    def body(comm: cl.Communicator) -> None:
        for compress in (cl.FP8(), cl.TopK(0.5)):
            with pytest.raises(BAD, match='compress is not there for op="adasum"'):
                comm.allreduce(np.ones(4), op="adasum", compress=compress)
        with pytest.raises(BAD, match="output is there for sparse arrays only"):
            comm.allreduce(np.ones(4), op="adasum", output="dense")
        np.testing.assert_array_equal(comm.allreduce(np.ones(4), op="adasum", compress=None), 1)

    on_ranks(2, body)


@pytest.mark.parametrize(
    ("x", "options"),
    [
        (np.ones(4), {"op": "adasum"}),
        (np.ones(4), {"compress": cl.FP8()}),
        (cl.Sparse(np.array([1]), np.ones(1), 9), {}),
    ],
)
def test_persistent_calls_that_there_are_not(x: Any, options: dict[str, Any]) -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(BAD, match=r"plain arrays, without compress and Adasum: make the"):
            comm.persistent.allreduce(x, **options)
        with comm.group(), pytest.raises(BAD, match="there of plain arrays"):
            comm.persistent.allreduce(x, **options)

    on_ranks(1, body)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"momentum": "x"}, "momentum is 'x': it is 0 or more and below 1"),
        ({"momentum": None}, "momentum is None"),
        ({"momentum": 1j}, "momentum is 1j"),
        ({"momentum": float("nan")}, "momentum is nan"),
        ({"momentum": 1}, "momentum is 1"),
        ({"momentum": True}, "momentum is True"),
        ({"momentum": 0.5, "feedback": False}, "momentum is 0.5.*, and wants feedback"),
        ({"reuse": 1.5}, "reuse is 1.5: it is an integer, 1 or more"),
        ({"reuse": True}, "reuse is True"),
        ({"of_sum": "x"}, "of_sum is 'x': it is True or False"),
        ({"reuse": "often"}, "reuse is 'often'"),
        ({"share": np.complex64(0.5)}, "share is"),
        ({"share": np.ones(2)}, "share is"),
        ({"share": True}, "share is True"),
    ],
)
def test_what_topk_is_not_made_of(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BAD, match="TopK: " + words):
        cl.TopK(**{"share": 0.1, **options})


@pytest.mark.parametrize("given", [None, "text", [None]])
def test_what_is_no_code(given: Any) -> None:
    def body(comm: cl.Communicator) -> None:
        codec = cl.codec(lambda _: given, lambda total, _: total)
        with pytest.raises(BAD, match=f"codec: encode gave {type(given).__name__}"):
            comm.allreduce(np.ones(3), compress=codec)

    on_ranks(2, body)


def test_numbers_of_numpy_are_taken() -> None:
    wrong: Any
    numbers: dict[str, Any] = {"share": np.float32(0.25), "reuse": np.int64(3)}
    topk = cl.TopK(**numbers, momentum=np.float64(0.5))
    assert (topk.share, topk.reuse, topk.momentum) == (0.25, 3, 0.5)
    assert {type(topk.share), type(topk.momentum)} == {float}
    assert cl.TopK(ml_dtypes.bfloat16(0.5)).share == 0.5
    numbers = {"bits": np.int64(8), "seed": np.uint64(2**63)}
    codec = cl.QSGD(**numbers)
    assert codec == cl.QSGD(8, 2**63)
    assert repr(codec) == f"QSGD(bits=8, seed={2**63})"
    for wrong in (True, 4.0, "4", None, 3):
        with pytest.raises(BAD, match="bits is"):
            cl.QSGD(wrong)
    for wrong in (True, -1, 2**64, 0.5, None):
        with pytest.raises(BAD, match="seed is"):
            cl.QSGD(4, wrong)
    for wrong in ([], None, "e3m4"):
        with pytest.raises(BAD, match="format is"):
            cl.FP8(wrong)


GOOD = {"residual": [1.0, 2.0], "speed": None, "threshold": 0.5, "uses": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"residual": "abc"},
        {"residual": float("nan")},
        {"residual": 1.0},
        {"residual": [[1.0], [2.0]]},
        {"residual": [object()]},
        {"residual": ["a"]},
        {"residual": [1j]},
        {"residual": np.ones(2, np.int32)},
        {"residual": None, "speed": [1.0, 2.0]},
        {"residual": [[1.0], [1.0, 2.0]]},
        {"speed": [1.0, 2.0, 3.0]},
        {"speed": [True, False]},
        {"threshold": "0.5"},
        {"threshold": -1.0},
        {"threshold": float("inf")},
        {"threshold": float("nan")},
        {"uses": -1},
        {"uses": 1.5},
        {"uses": None},
    ],
)
def test_what_is_no_state_is_not_restored(wrong: dict[str, Any]) -> None:
    topk = cl.TopK(0.5, reuse=2)
    topk.restore(GOOD)
    before = repr(topk.state())
    with pytest.raises(BAD, match=re.escape("pass what TopK.state returned")):
        topk.restore({**GOOD, "uses": 0, **wrong})
    assert repr(topk.state()) == before


def test_states_are_restored_as_files_give_them_back() -> None:
    """Lists as of JSON, with a whole number among them; arrays without axes as of np.savez."""
    topk = cl.TopK(0.5)
    topk.restore({**GOOD, "residual": [1, 2], "speed": [0.5, np.nan], "uses": np.array(3)})
    state = topk.state()
    assert state["residual"].dtype == np.float64
    assert (state["residual"].tolist(), state["uses"]) == ([1, 2], 3)
    assert np.isnan(state["speed"][1])  # as left of a gradient with more of them than were sent


def test_a_codec_does_not_write_to_what_it_encodes() -> None:
    """A call that fails leaves ``x`` as it was, and with ``out`` so does one that succeeds."""

    def twice(x: Any) -> Any:
        x *= 2
        return x

    def body(comm: cl.Communicator) -> None:
        x, whole = np.arange(3.0), cl.codec(twice, lambda code, n: code / 2)
        with pytest.raises(ValueError, match="read-only"):
            comm.allreduce(x, np.zeros(3), compress=whole)
        np.testing.assert_array_equal(x, np.arange(3.0))

    on_ranks(2, body)


@pytest.mark.parametrize("wrong", [lambda c, n: c * 1j, lambda c, n: c.astype(str)])
def test_what_is_decoded_is_real(wrong: Any) -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match="give real numbers"):
            comm.allreduce(np.ones(3), compress=cl.codec(lambda x: x, wrong))

    on_ranks(2, body)


@pytest.mark.parametrize(("encode", "decode"), [(1, lambda c, n: c), (lambda x: x, None)])
def test_a_codec_is_made_of_functions(encode: Any, decode: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match="pass a function"):
        cl.codec(encode, decode)


@pytest.mark.parametrize(
    ("x", "compress"),
    [
        (lambda r: np.ones(6, ["f4", "f8"][r]), lambda _: cl.FP8()),
        (lambda r: np.ones(6 + r, "f4"), lambda _: cl.FP8()),
        (lambda _: np.ones(6), lambda r: cl.FP8(["e4m3", "e5m2"][r])),
        (lambda r: np.ones(6 + r, "f4"), lambda _: SUM),
        (lambda r: np.ones(6, ["f4", "f8"][r]), lambda _: SUM),
        (lambda _: np.ones(1), lambda r: [SUM, cl.FP8()][r]),
    ],
)
def test_arrays_and_compressors_that_differ_between_ranks(x: Any, compress: Any) -> None:
    """Their codes are alike, and could be added up."""

    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.MismatchError, match=r"rank 0 .* compressed by .*rank 1 .* compr"):
            comm.allreduce(x(comm.rank), compress=compress(comm.rank))

    on_ranks(2, body)


def _one_number(x: Any) -> Any:
    return x.sum(keepdims=True).astype("f8")


SUM: Codec = cl.codec(_one_number, lambda code, n: np.repeat(code / n, n))
