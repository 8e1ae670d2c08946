# SPDX-License-Identifier: Apache-2.0
"""What bench.kernels makes of what the native program prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.kernels import __main__ as program
from bench.kernels.figures import Block, figures, rates


def block(row: str, way: str, ns: float, turn: int = 0, density: float = 0.01) -> Block:
    return {"row": row, "entries": 10, "density": density, "way": way, "round": turn, "ns": ns}


def test_merges_are_judged_by_the_best_set_and_within_a_round() -> None:
    blocks = []
    for turn in range(9):
        speed = 1.0 + turn  # of the machine, which is slow for a while
        for way, ns in (("scalar", 30), ("portable", 20), ("avx2", 12), ("memcpy", 2)):
            blocks.append(block("merge", way, ns * speed, turn))
    found = figures(blocks)
    assert [f.median for f in found] == pytest.approx([2.5, 1.5, 2 / 12])
    assert [(f.goal, f.met) for f in found] == [(">= 3", False), ("", None), ("", None)]
    assert found[0].low == found[0].high == pytest.approx(2.5)
    blocks = [b | ({"ns": b["ns"] / 2} if b["way"] == "avx2" else {}) for b in blocks]
    assert figures(blocks)[0].met is True
    assert {r["way"]: r["ns_per_entry"] for r in rates(blocks)}["scalar"] == 15.0


def test_top_k_is_asked_for_reads_at_one_percent_only() -> None:
    ways = {"avx512": 50.0, "portable": 90.0, "above": 12.0, "read": 10.0}
    for density, met in ((0.01, False), (0.1, None)):
        blocks = [block("top-k", way, ns, density=density) for way, ns in ways.items()]
        best, above = figures(blocks)
        assert (best.median, best.met) == (5.0, met)
        assert (above.median, above.met) == (1.2, None)
        assert best.as_json()["low"] is None  # of one round nothing is known


def test_codecs_are_beside_memcpy() -> None:
    blocks = [
        block("QSGD of 4 bits", way, ns, density=1)
        for way, ns in (("quantise", 40.0), ("dequantise", 10.0), ("memcpy", 2.0))
    ]
    found = figures(blocks)
    assert [(f.what, f.median) for f in found] == [
        ("quantise, share of memcpy's rate", 0.05),
        ("dequantise, share of memcpy's rate", 0.2),
    ]


def test_the_program_writes_and_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, output = tmp_path / "coll_kernels", tmp_path / "kernels.json"
    measured = [block("merge", way, ns) for way, ns in (("scalar", 9), ("avx2", 4), ("memcpy", 1))]
    measured += [block("sum of 4", w, 2.0) for w in ("merges", "tiles", "chosen", "memcpy")]
    measured += [block("scatter-add", w, 2.0) for w in ("add_to", "memcpy")]
    measured += [block("extract", w, 2.0) for w in ("portable", "avx2", "read")]
    ready.write_text(f"#!/bin/sh\necho '{json.dumps({'blocks': measured})}'\n")
    ready.chmod(0o700)
    monkeypatch.setenv(program.READY, str(ready))
    assert program.main(["--output", str(output)]) == 0
    assert program.main(["--output", str(output), "--strict"]) == 1
    assert len(json.loads(output.read_text())["rows"]) == 7
    ready.write_text("#!/bin/sh\necho no such CPU >&2\nexit 1\n")
    assert program.main(["--output", str(output)]) == 2
