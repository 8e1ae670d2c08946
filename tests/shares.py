# SPDX-License-Identifier: Apache-2.0
"""Tests of which a plain run makes a share of the cases, and `make test-extras` all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def some_or_all(share: int) -> pytest.MarkDecorator:
    """Give a test the parameter ``share``: a plain run makes one of so many cases, or calls."""
    return pytest.mark.parametrize(
        "share",
        [pytest.param(share, id="some"), pytest.param(1, id="all", marks=pytest.mark.all_cases)],
    )


def few(name: str, values: Sequence[Any], some: Sequence[Any]) -> pytest.MarkDecorator:
    """Give a test a parameter of which a plain run takes some values only."""
    return pytest.mark.parametrize(
        name,
        [
            value if value in some else pytest.param(value, marks=pytest.mark.all_cases)
            for value in values
        ],
    )
