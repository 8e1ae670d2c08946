# SPDX-License-Identifier: Apache-2.0
"""Sizes and ranges on the command line: what is written is what is measured."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectives.cli.sizes import (
    LARGEST,
    UNITS,
    format_ranks,
    format_size,
    parse_ranks,
    parse_size,
    parse_sizes,
)

SIZES = st.integers(0, LARGEST)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8", 8), ("0", 0), ("64K", 65536), ("1m", 1 << 20), ("2GiB", 2 << 30), (" 3 KB ", 3072)],
)
def test_a_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(SIZES)
def test_every_size_is_read_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text(max_size=8))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    refusal = None
    try:
        sizes = parse_sizes(text)
    except ValueError as error:
        sizes, refusal = [], str(error)
    assert bool(sizes) == (refusal is None)
    assert all(0 <= size <= LARGEST for size in sizes)
    assert refusal is None or (refusal.count(" ") >= 3 and "\n" not in refusal)


@given(st.integers(1, 1 << 30), st.integers(0, 1 << 30), st.integers(2, 16))
def test_a_range_grows_by_the_factor_and_holds_both_ends(low: int, more: int, factor: int) -> None:
    sizes = parse_sizes(f"{low}:{low + more}", factor)
    assert sizes[0] == low
    assert sizes[-1] == low + more
    assert all(b == a * factor for a, b in pairwise(sizes[:-1]))
    assert all(a < b <= a * factor for a, b in pairwise(sizes))


@given(st.lists(SIZES, min_size=1, max_size=6))
def test_a_list_comes_out_sorted_and_without_repeats(sizes: list[int]) -> None:
    assert parse_sizes(",".join(format_size(size) for size in sizes)) == sorted(set(sizes))


def test_a_list_may_hold_ranges() -> None:
    assert parse_sizes("8:128,1K,100", factor=4) == [8, 32, 100, 128, 1024]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a size"),
        ("8,", "is not a size"),
        ("-8", "is not a size"),
        ("8X", "is not a size"),
        ("64:8", "ends before it begins"),
        ("0:8", "cannot grow from 0"),
        ("2000T", "is above 1T"),
    ],
)
def test_what_is_wrong_with_sizes_is_said(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_sizes(text)


def test_a_factor_must_grow() -> None:
    with pytest.raises(ValueError, match="must be 2 or more, got 1"):
        parse_sizes("8:64", factor=1)


@given(st.sets(st.integers(1, 200), min_size=1, max_size=20))
def test_ranks_are_read_back(ranks: set[int]) -> None:
    assert parse_ranks(format_ranks(sorted(ranks))) == sorted(ranks)


def test_ranks_are_written_briefly() -> None:
    assert format_ranks([1, 2, 3, 5, 7, 8]) == "1:3,5,7:8"
    assert format_ranks([]) == "none"


@pytest.mark.parametrize("text", ["", "0", "3:1", "a", "1:b", "1:2:3", "1.5", "70000"])
def test_wrong_ranks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ranks"):
        parse_ranks(text)


def test_units_are_powers_of_1024() -> None:
    assert [UNITS[unit] for unit in "KMGT"] == [1024**power for power in range(1, 5)]
