# SPDX-License-Identifier: Apache-2.0
"""What came out, as tables and in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.peers.libraries import OURS
from bench.sparse.cells import DENSE_ARRAY, FIXED, PLANS, Entry, Record


def line(record: Record) -> str:
    """Return a problem's figures in one line: ours, and others over it."""
    ours = record.time(record.auto())
    if ours is None:
        return f"{record.problem}: not measured"
    parts = [f"{record.problem}: {_seconds(ours)}"]
    fixed = [e for e in record.of(OURS) if e.way in FIXED]
    if (best := record.best(fixed)) is not None:
        parts.append(f"{_spread(record.ratios(record.auto(), best))} of {best.way}")
    for library in dict.fromkeys(e.library for e in record.seconds):
        entries = record.of(library)
        if library == OURS:
            entries = [e for e in entries if e.way == DENSE_ARRAY]
        if (its := record.best(entries)) is not None:
            parts.append(f"{its} {_spread(record.ratios(its, record.auto()))}")
    for plan in (e for e in record.of(OURS) if e.way in PLANS):
        parts.append(
            f"{plan.way} {_spread(record.ratios(plan, record.auto()))}{_bytes(record, plan)}"
        )
    if record.wrong:
        parts.append(f"WRONG: { ({str(e): n for e, n in record.wrong.items()}) }")
    return "; ".join(parts)


def summary(records: Sequence[Record], steps: dict[str, float], mbit: float) -> dict[str, Any]:
    """Return the figures that the goals ask for, by name."""
    found: dict[str, Any] = {}
    libraries = dict.fromkeys(e.library for record in records for e in record.seconds)
    for library in libraries:
        if library == OURS:
            continue
        ratios = [r for record in records if (r := _over(record, record.of(library))) is not None]
        if ratios:
            found[f"{library} over ours"] = {
                "geometric_mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
                "least": min(ratios),
                "problems": len(ratios),
            }
    choice = [r for record in records if (r := _choice(record)) is not None]
    if choice:
        found["auto over the best fixed"] = {"largest": max(choice), "median": median(choice)}
    if mbit:
        found["bound"] = {str(r.problem): b for r in records if (b := bound(r, steps, mbit))}
    return found


def bound(record: Record, steps: dict[str, float], mbit: float) -> dict[str, float] | None:
    """Return the time of ours over bytes / (0.75 B) + 1.5 rounds alpha, of the bytes counted."""
    ours, sent = record.time(record.auto()), record.bytes(record.auto())
    if ours is None or sent is None:
        return None
    p = record.problem.ranks
    rounds = 1 + math.ceil(math.log2(p))  # the agreement, and the fewest that any algorithm takes
    allowed = sent * 8 / (0.75 * mbit * 1e6) + 1.5 * rounds * steps[str(p)]
    return {"seconds": ours, "allowed": allowed, "share": ours / allowed}


def _over(record: Record, entries: Sequence[Entry]) -> float | None:
    best = record.best(list(entries))
    ratios = record.ratios(best, record.auto()) if best is not None else []
    return median(ratios) if ratios else None


def _choice(record: Record) -> float | None:
    fixed = [e for e in record.of(OURS) if e.way in FIXED]
    best = record.best(fixed)
    ratios = record.ratios(record.auto(), best) if best is not None else []
    return median(ratios) if ratios else None


def _bytes(record: Record, entry: Entry) -> str:
    its, ours = record.bytes(entry), record.bytes(record.auto())
    return f", {its / ours:.2f} of the bytes" if its and ours else ""


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{median(values):.2f} [{min(values):.2f}, {max(values):.2f}]"
