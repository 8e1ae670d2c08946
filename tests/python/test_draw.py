# SPDX-License-Identifier: Apache-2.0
"""Drawings: well-formed, complete, and the trace below them right."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import collectives as cl
from collectives.svg import _colour, _ranges
from collectives.trace import trace

TABLE = cl.algorithms()
SVG = "{http://www.w3.org/2000/svg}"


def ident(algorithm: cl.Algorithm) -> str:
    return f"{algorithm.kind}-{algorithm.name}"


@pytest.mark.parametrize("algorithm", TABLE, ids=ident)
@pytest.mark.parametrize("p", [1, 2, 5, 8])
def test_a_trace_ends_with_what_the_collective_promises(algorithm: cl.Algorithm, p: int) -> None:
    shown = cl.schedule(algorithm.name, p, algorithm.kind)
    last = trace(shown).held[-1]
    whole = trace(shown).contributors
    for rank, row in enumerate(last):
        own = shown.chunks // p
        wanted = {
            "reduce": row if rank == 0 else (),
            "reduce_scatter": row[rank * own : (rank + 1) * own],
        }.get(algorithm.kind, row)
        assert set(wanted) <= {whole}


def test_the_trace_of_a_ring() -> None:
    found = trace(cl.schedule("ring", 3))
    assert len(found.messages) == 3 * 4
    assert found.held[0] == ((1, 1, 1),) * 3
    assert found.held[4] == ((3, 3, 3),) * 3
    assert [m.folds for m in found.messages] == [True] * 6 + [False] * 6
    assert all(m.receiver == (m.sender + 1) % 3 and len(m.chunks) == 1 for m in found.messages)


@pytest.mark.parametrize("algorithm", TABLE, ids=ident)
@pytest.mark.parametrize("p", [1, 2, 5, 16])
def test_drawings_are_well_formed_and_show_all(algorithm: cl.Algorithm, p: int) -> None:
    shown = cl.schedule(algorithm.name, p, algorithm.kind)
    root = ET.fromstring(cl.draw(algorithm.name, p, algorithm.kind))
    words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert [f"rank {r}" for r in range(p)] == [w for w in words if w.startswith("rank ")]
    assert [f"round {t}" for t in range(shown.rounds)] == [w for w in words if "round " in w[:6]]
    curves = [path for path in root.iter(f"{SVG}path") if "C" in path.get("d", "")]
    assert len(curves) == len(trace(shown).messages)
    assert algorithm.name in root.findtext(f"{SVG}title", "")


def test_drawings_are_self_contained_and_inside_their_frame() -> None:
    text = cl.draw("recursive_halving", 8)
    assert not re.search(r"href|<script|<style|url\((?!#m\d)", text)
    root = ET.fromstring(text)
    _, _, width, height = (float(n) for n in root.get("viewBox", "").split())
    for circle in root.iter(f"{SVG}circle"):
        assert 0 < float(circle.get("cx", "-1")) < width
        assert 0 <= float(circle.get("cy", "-1")) < height


def test_drawings_are_reproducible() -> None:
    assert cl.draw("circulant", 7) == cl.draw("circulant", 7)


def test_chunks_have_colours_of_their_own() -> None:
    colours = [_colour(chunk, 16) for chunk in range(16)]
    assert len(set(colours)) == 16
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in colours)


@pytest.mark.parametrize(
    ("chunks", "words"),
    [((3,), "3"), ((0, 1, 2), "0\u20132"), ((0, 2), "0,2"), ((0, 2, 4, 6, 8), "0,2,\u2026")],
)
def test_runs_of_chunks_are_written_short(chunks: tuple[int, ...], words: str) -> None:
    assert _ranges(chunks) == words


def test_the_text_has_one_line_for_each_round_and_rank() -> None:
    assert cl.draw("recursive_doubling", 2, format="text") == (
        "allreduce recursive_doubling: p = 2, chunks = 1\n"
        "round 0  rank 0  send input[0] to rank 1; fold own input[0] + rank 1 into output[0]\n"
        "round 0  rank 1  send input[0] to rank 0; fold rank 0 + own input[0] into output[0]\n"
    )
    lines = cl.draw("ring", 12, format="text").splitlines()
    assert len(lines) == 1 + 12 * 22
    assert lines[1].startswith("round  0  rank  0  send ")


def test_roots_are_shown() -> None:
    assert "root 2" in cl.draw("binomial", 4, "broadcast", root=2)
