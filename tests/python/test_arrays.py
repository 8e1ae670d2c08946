# SPDX-License-Identifier: Apache-2.0
"""From arrays to addresses."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from collectives import arrays
from collectives._ffi import ffi
from tests.oracle import DTYPES

DTYPES_IN_C = (
    "float32", "float64", "int32", "int64", "uint8", "bfloat16", "int8", "int16", "uint16",
    "uint32", "uint64", "bool", "float16", "complex64", "complex128", "float8_e4m3fn",
    "float8_e5m2", "float32_int32", "float64_int64", "int32_int32", "int64_int64",
)  # fmt: skip


class Nearest(ctypes.Structure):
    """A pair of C."""

    _fields_ = (("distance", ctypes.c_float), ("place", ctypes.c_int32))


class Subclass(np.ndarray[Any, Any]):
    """An array of another class."""


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


@pytest.mark.parametrize("name", DTYPES)
def test_borrow_gives_the_memory_of_an_array(name: str) -> None:
    x = np.zeros((3, 4), DTYPES[name])
    arrays.operand(x, "x")  # the first sight of bfloat16 and float8
    borrowed = arrays.borrow(x)
    assert borrowed is not None
    pointer, elements, code = borrowed
    assert (address(pointer), elements, code) == (x.ctypes.data, 12, arrays.DTYPES[name])


def test_borrow_leaves_the_rest_to_operand() -> None:
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    other = np.zeros(2).view(Subclass)
    for x in (np.zeros(6)[::2], frozen, np.zeros(3, "m8[s]"), [1.0], other, b"ab"):
        assert arrays.borrow(x) is None


@pytest.mark.parametrize("name", DTYPES)
def test_operand_gives_the_memory_of_an_array(name: str) -> None:
    x = np.zeros((3, 4), DTYPES[name])
    found = arrays.operand(x, "x")
    assert (address(found.pointer), found.elements) == (x.ctypes.data, 12)
    assert (found.dtype, found.shape) == (arrays.DTYPES[name], (3, 4))
    assert found.writable
    assert found.origin is x
    assert found.packed is None


@pytest.mark.parametrize(
    ("x", "dtype", "shape", "writable"),
    [
        (bytearray(b"abc"), "uint8", (3,), True),
        (b"abc", "uint8", (3,), False),
        (b"", "uint8", (0,), False),
        (memoryview(bytearray(8)).cast("i", (2, 1)), "int32", (2, 1), True),
        (array.array("d", [1, 2]), "float64", (2,), True),
        (array.array("q", [1, 2]), "int64", (2,), True),
        ((ctypes.c_float * 3)(), "float32", (3,), True),
        (memoryview(bytearray(2)).cast("?"), "bool", (2,), True),
        (array.array("H", [1, 2]), "uint16", (2,), True),
        (np.float32(2), "float32", (), False),
        (np.complex64(2j), "complex64", (), False),
        ((Nearest * 3)(), "float32_int32", (3,), True),
        (np.zeros(()), "float64", (), True),
        (np.zeros((1, 2)).view(Subclass), "float64", (1, 2), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_buffers(x: Any, dtype: str, shape: tuple[int, ...], writable: bool) -> None:
    found = arrays.operand(x, "x")
    assert (arrays.NAMES[found.dtype], found.shape) == (dtype, shape)
    assert found.writable is writable
    assert found.origin is x


def test_a_strided_array_is_packed_and_written_back() -> None:
    whole = np.arange(12.0).reshape(3, 4)
    found = arrays.operand(whole[:, ::2], "x")
    assert found.array.flags.c_contiguous
    found.array[...] += 100
    assert arrays.delivered(found) is found.origin
    assert whole.tolist() == [[100, 1, 102, 3], [104, 5, 106, 7], [108, 9, 110, 11]]


def test_fortran_order_is_taken_by_index_not_by_memory() -> None:
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = arrays.operand(x, "x")
    assert found.array.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    assert found.array.flags.c_contiguous


class Exporter:
    """An object with DLPack and nothing else, on the memory of an array."""

    def __init__(self, source: np.ndarray[Any, Any], device: int = 1) -> None:
        self._source, self._device = source, device

    def __dlpack__(self, **options: Any) -> Any:
        return self._source.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


def test_dlpack_shares_memory() -> None:
    x = np.arange(4.0)
    found = arrays.operand(Exporter(x), "x")
    assert address(found.pointer) == x.ctypes.data
    assert found.shape == (4,)


def test_dlpack_of_a_strided_array_is_packed() -> None:
    found = arrays.operand(Exporter(np.arange(8.0)[::2]), "x")
    assert found.array.tolist() == [0, 2, 4, 6]
    assert found.packed is not None


def test_an_export_without_a_version_counts_as_read_only() -> None:
    class Old:
        def __dlpack__(self, stream: object = None) -> Any:
            return np.ones(3).__dlpack__(stream=stream)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    assert not arrays.operand(Old(), "x").writable


def test_arrays_of_jax_are_never_written() -> None:
    class Immutable(Exporter):
        __module__ = "jaxlib.xla_extension"

    assert not arrays.operand(Immutable(np.zeros(3)), "x").writable


def test_memory_of_a_device_is_refused() -> None:
    with pytest.raises(cl.UnsupportedError, match="not in CPU memory"):
        arrays.operand(Exporter(np.zeros(3), device=2), "allreduce: x")


@pytest.mark.parametrize(
    "dtype", ["longdouble", "clongdouble", "object", "S3", "U2", "M8[s]", ">M8[s]", ">U2", "V4"]
)
def test_other_dtypes_are_refused_by_name(dtype: str) -> None:
    x = np.zeros(3, dtype)
    with pytest.raises(cl.InvalidArgumentError) as caught:
        arrays.operand(x, "allreduce: x")
    assert str(caught.value) == (
        f"allreduce: x has dtype {x.dtype}: supported are {', '.join(arrays.DTYPES)}"
    )


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">f2", ">c16", [("a", "f4"), ("b", ">i4")]])
def test_bytes_in_the_other_order_are_refused_with_what_to_do(dtype: Any) -> None:
    x = np.ones(3, dtype)
    with pytest.raises(cl.InvalidArgumentError) as caught:
        arrays.operand(x, "allreduce: x")
    assert str(caught.value) == (
        f"allreduce: x has dtype {x.dtype}, whose bytes are in another order than this machine's: "
        "pass x.astype(x.dtype.newbyteorder('='))"
    )
    arrays.operand(x.astype(x.dtype.newbyteorder("=")), "x")


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e4m3fnuz", "float8_e8m0fnu", "int4"])
def test_other_dtypes_of_ml_dtypes_are_refused(name: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=f"has dtype {name}: supported are"):
        arrays.operand(np.zeros(3, getattr(ml_dtypes, name)), "x")


@pytest.mark.parametrize(
    "dtype",
    [
        [("a", "f4"), ("b", "i4")],
        np.dtype([("a", "f4"), ("b", "i4")], align=True),
        np.dtype({"names": ["n", "v"], "formats": ["f4", "i4"], "offsets": [0, 4]}),
    ],
)
def test_pairs_may_have_fields_of_any_name(dtype: Any) -> None:
    x = np.zeros(3, dtype)
    assert arrays.operand(x, "x").dtype == arrays.DTYPES["float32_int32"]
    assert arrays.borrow(x) is not None


@pytest.mark.parametrize(
    "dtype",
    [
        [("a", "f4"), ("b", "f4")],
        [("a", "i4"), ("b", "f4")],
        [("a", "f4"), ("b", "i8")],
        [("a", "f4"), ("b", "i4"), ("c", "i4")],
        [("a", "f4"), ("b", "i4", (1,))],
        [("a", "f8"), ("b", "i4")],
        {"names": ["a", "b"], "formats": ["f4", "i4"], "offsets": [4, 0]},
        {"names": ["a", "b"], "formats": ["f4", "i4"], "itemsize": 12},
    ],
    ids=str,
)
def test_other_records_are_refused(dtype: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match="supported are"):
        arrays.operand(np.zeros(3, dtype), "x")


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_of_dtypes_lead_back_to_numpy(name: str) -> None:
    assert arrays.numpy_dtype(arrays.DTYPES[name]) == DTYPES[name]


def test_the_number_of_a_dtype_never_changes() -> None:
    assert list(arrays.DTYPES.items()) == [(name, code) for code, name in enumerate(DTYPES_IN_C)]


@pytest.mark.parametrize("x", [None, 3, 2.5, "text", [1.0, 2.0], (1, 2), object(), {}, len])
def test_what_is_no_array_is_refused_by_type(x: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=f"of type {type(x).__name__}: pass a NumPy"):
        arrays.operand(x, "allreduce: x")


def test_a_masked_array_is_refused() -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"pass x.filled"):
        arrays.operand(np.ma.masked_less(np.arange(4.0), 2), "x")


def test_output_must_be_writable_and_without_repetition() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="out is read-only"):
        arrays.output(b"abc", "out")
    repeated = np.lib.stride_tricks.as_strided(np.zeros(2), (3, 2), (0, 8))
    with pytest.raises(cl.InvalidArgumentError, match=r"out of shape \(3, 2\) has elements that"):
        arrays.output(repeated, "out")
    assert arrays.output(np.zeros(6)[::2], "out").packed is not None


@pytest.mark.parametrize("name", DTYPES)
def test_fresh_is_of_the_same_dtype(name: str) -> None:
    like = arrays.operand(np.zeros(2, DTYPES[name]), "x")
    made = arrays.fresh(like, (2, 3))
    assert made.array.dtype == DTYPES[name]
    assert made.array.shape == (2, 3)
