# SPDX-License-Identifier: Apache-2.0
"""Regrets made by hand: cells, jobs and documents as the bench keeps them."""

from __future__ import annotations

from typing import Any


def ratio(value: float, choice: str = "") -> dict[str, Any]:
    return {"ratio": value, "low": 0.98 * value, "high": 1.03 * value, "choice": choice}


def cell(
    value: float,
    held_out: bool = False,
    high: float = 1.01,
    nbytes: int = 1024,
    kind: str = "allreduce",
    table: bool = True,
) -> dict[str, Any]:
    """Return a cell whose table is `value` times as slow as the best, the rules twice as that."""
    tuned = {"tuned": ratio(value, "ring, staged, lag 1, tiles of 65536")} if table else {}
    return {
        "kind": kind,
        "nbytes": nbytes,
        "held_out": held_out,
        "best": "circulant, inline, lag 0",
        "seconds": 1e-5,
        "same": {"ratio": 1.0, "low": 0.99, "high": high},
        **tuned,
        "rule": ratio(2 * value, "direct <&>, staged, lag 1"),
        "model": ratio(1.5 * value, "circulant, inline, lag 0"),
    }


def job(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(cells), "left_out": [["reduce", 1 << 26]]}


def document() -> dict[str, Any]:
    """Return two ranks with a table, and three without."""
    sizes = (8, 4096, 1 << 20)
    two = [cell(1.25, held_out=n == 4096, nbytes=n) for n in sizes]
    three = [cell(1.05, high=1 + n / (8 << 20), nbytes=n, table=False) for n in sizes]
    facts = {"cpu": "a processor <of hand>", "cores": 2, "date": "2026-11-22T12:00:00+00:00"}
    return {
        "ranks": {
            "2": {"machine": facts, "predicting": {"seconds": 0.25}, **job(*two)},
            "3": {"machine": facts, **job(*three)},
        }
    }
