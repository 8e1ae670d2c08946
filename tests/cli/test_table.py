# SPDX-License-Identifier: Apache-2.0
"""The table: columns under their heads, numbers with the digits they need."""

from __future__ import annotations

import dataclasses
import math

import pytest

from collectives.cli import table
from collectives.measure import Row

ROW = Row(
    kind="allreduce", size=1 << 30, count=1 << 28, dtype="float32", op="prod", root=-1, ranks=4,
    algorithm="recursive_doubling", mode="auto", calls=9, p50=123456.7, p99=2e6, least=1.0,
    algbw=8.7, busbw=13.05, wrong=0,
)  # fmt: skip


def test_columns_are_those_of_nccl_tests() -> None:
    names, units = table.header().splitlines()
    assert names.split() == [
        "size", "count", "type", "op", "root", "algorithm", "p50", "p99", "algbw", "busbw", "wrong",
    ]  # fmt: skip
    assert units.split() == ["bytes", "elements", "us", "us", "GB/s", "GB/s"]


def test_values_stand_under_their_heads() -> None:
    names, line = table.header().splitlines()[0], table.line(ROW)
    assert len(line) == len(names) <= 120
    right_aligned = ("size", "count", "p50", "p99", "busbw", "wrong")
    values = (ROW.size, ROW.count, "123457", "2000000", "13.05", 0)
    for name, value in zip(right_aligned, values, strict=True):
        end = names.index(name) + len(name)
        assert line[:end].endswith(f" {value}") or line[:end] == f"{value:>{end}}"
    assert line[names.index("algorithm") :].startswith("recursive_doubling ")


def test_a_refused_row_says_so_and_its_reason_comes_once() -> None:
    refused = dataclasses.replace(ROW, refused="inline holds 16 KiB", p50=math.nan)
    assert table.line(refused).endswith("refused")
    assert table.refusals([refused, ROW, refused]) == ["recursive_doubling: inline holds 16 KiB"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.123, "0.12"), (12.34, "12.3"), (1234.5, "1234"), (math.nan, "-")]
)
def test_microseconds(value: float, text: str) -> None:
    assert table.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "0.0123"), (12.345, "12.35"), (math.nan, "-")]
)
def test_gigabytes_per_second(value: float, text: str) -> None:
    assert table.rate(value) == text


def test_the_fastest_is_right_too() -> None:
    wrong = dataclasses.replace(ROW, p50=1.0, wrong=3)
    refused = dataclasses.replace(ROW, p50=0.5, refused="no")
    assert table.fastest([wrong, refused, ROW]) is ROW
    assert table.fastest([wrong, refused]) is None


def test_a_chosen_mode_is_named() -> None:
    assert "ring inline" in table.line(dataclasses.replace(ROW, algorithm="ring", mode="inline"))
