# SPDX-License-Identifier: Apache-2.0
"""Drawings: well-formed, complete, and the symbolic run below them right."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import collectives as cl
from collectives.panel import listed, panel_of
from collectives.svg import _colour
from collectives.symbolic import symbolic_run

TABLE = cl.algorithms()
SVG = "{http://www.w3.org/2000/svg}"


def ident(algorithm: cl.Algorithm) -> str:
    return f"{algorithm.kind}-{algorithm.name}"


def fitting(*ranks: int) -> list[Any]:
    """Every algorithm with each number of ranks that it is defined for."""
    return [pytest.param(a, p, id=f"{ident(a)}-{p}") for a in TABLE for p in ranks if a.fits(p)]


def results(kind: str, rank: int, p: int, chunks: int) -> dict[int, set[int]]:
    """Return whose operands a rank whose root is 0 is promised, by chunk."""
    own, every = range(rank * (chunks // p), (rank + 1) * (chunks // p)), set(range(p))
    whole = dict.fromkeys(range(chunks), every)
    if kind == "alltoall":
        return {source * p + rank: {source} for source in range(p)}
    if kind in ("scan", "exscan"):
        before = set(range(rank + (kind == "scan")))
        return dict.fromkeys(range(chunks), before) if before else {}
    if kind in ("broadcast", "scatter"):
        return {chunk: {0} for chunk in (own if kind == "scatter" else range(chunks))}
    if kind in ("allgather", "gather"):
        found = {chunk: {chunk // (chunks // p)} for chunk in range(chunks)}
        return found if kind == "allgather" or rank == 0 else {}
    if kind == "reduce_scatter":
        return dict.fromkeys(own, every)
    return whole if kind != "reduce" or rank == 0 else {}


@pytest.mark.parametrize(("algorithm", "p"), fitting(1, 2, 5, 8))
def test_a_symbolic_run_ends_with_what_the_collective_promises(
    algorithm: cl.Algorithm, p: int
) -> None:
    shown = cl.schedule(algorithm.name, p, algorithm.kind)
    for rank, cells in enumerate(symbolic_run(shown).held[-1]):
        found = {c: set(ranks) for (buffer, _), (c, ranks) in cells.items() if buffer == "output"}
        assert found == results(algorithm.kind, rank, p, shown.chunks)


def test_the_symbolic_run_of_a_ring() -> None:
    found = symbolic_run(cl.schedule("ring", 3))
    assert len(found.messages) == 3 * 4
    assert found.rounds == (0, 1, 2, 3)
    assert all(
        set(panel_of(cl.schedule("ring", 3)).shares(c).values()) == {1} for c in found.held[4]
    )
    assert [m.folds for m in found.messages] == [True] * 6 + [False] * 6
    assert all(m.receiver == (m.sender + 1) % 3 and len(m.chunks) == 1 for m in found.messages)


def test_chunks_fill_with_contributions() -> None:
    shown = cl.schedule("ring", 4)
    found, panel = symbolic_run(shown), panel_of(shown)
    assert panel.shares(found.held[0][2]) == {(0, chunk): 0.25 for chunk in range(4)}
    assert sorted(panel.shares(found.held[2][2]).values()) == [0.25, 0.25, 0.5, 0.75]
    assert panel.label(found.messages[0]) == str(found.messages[0].chunks[0])


def test_scans_show_whose_operands_are_in_the_result() -> None:
    shown = cl.schedule("doubling_123", 4, "exscan")
    found, panel = symbolic_run(shown), panel_of(shown)
    assert found.rounds == (1, 2)  # the first works on its own
    assert (panel.rows, panel.columns) == (1, 4)
    half = panel.shares(found.held[0][2])[0, 2]
    assert 0 < half < 1
    assert panel.shares(found.held[0][2]) == {(0, 2): half}
    assert panel.shares(found.held[1][2]) == {(0, 1): 1, (0, 2): half}
    assert panel.shares(found.held[2][2]) == {(0, 0): 1, (0, 1): 1, (0, 2): half}
    assert panel.shares(found.held[2][0]) == {(0, 0): half}
    labels = {(m.round, m.sender): panel.label(m) for m in found.messages}
    assert labels[1, 1] == "1"
    assert labels[2, 1] == "0\u20131"  # the fold of its result and its operand


def test_an_alltoall_turns_rows_into_columns() -> None:
    shown = cl.schedule("pairwise", 3, "alltoall")
    found, panel = symbolic_run(shown), panel_of(shown)
    assert set(panel.shares(found.held[0][1])) == {(1, 0), (1, 1), (1, 2)}
    full = {place for place, share in panel.shares(found.held[-1][1]).items() if share == 1}
    assert full == {(0, 1), (1, 1), (2, 1)}
    assert {panel.label(m) for m in found.messages} == {
        f"{m.sender}\u2192{m.receiver}" for m in found.messages
    }
    together = dataclasses.replace(
        found.messages[0], values=tuple((c, frozenset({c // 3})) for c in (1, 2, 5))
    )
    assert panel.label(together) == "3 blocks"
    assert panel.marks(together) == (0, 1)


@pytest.mark.parametrize(("algorithm", "p"), fitting(1, 2, 5, 16))
def test_drawings_are_well_formed_and_show_all(algorithm: cl.Algorithm, p: int) -> None:
    shown = cl.schedule(algorithm.name, p, algorithm.kind)
    root = ET.fromstring(cl.draw(algorithm.name, p, algorithm.kind))
    words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert [f"rank {r}" for r in range(p)] == [w for w in words if w.startswith("rank ")]
    found = symbolic_run(shown)
    assert [f"round {t}" for t in found.rounds] == [w for w in words if "round " in w[:6]]
    assert len(found.rounds) == shown.rounds == len(found.held) - 1
    curves = [path for path in root.iter(f"{SVG}path") if "C" in path.get("d", "")]
    assert len(curves) == len(found.messages)
    assert algorithm.name in root.findtext(f"{SVG}title", "")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("allreduce", "recursive_halving"),
        ("alltoall", "pairwise"),
        ("scatter", "linear"),
        ("exscan", "doubling_123"),
    ],
)
def test_drawings_are_self_contained_and_inside_their_frame(kind: str, name: str) -> None:
    text = cl.draw(name, 8, kind)
    assert not re.search(r"href|<script|<style|url\((?!#(m\d|empty|full))", text)
    root = ET.fromstring(text)
    _, _, width, height = (float(n) for n in root.get("viewBox", "").split())
    for circle in root.iter(f"{SVG}circle"):
        assert 0 < float(circle.get("cx", "-1")) < width
        assert 0 <= float(circle.get("cy", "-1")) < height
    labels = [text for text in root.iter(f"{SVG}text") if text.get("fill") == "#fff"]
    assert len({(text.get("x"), text.get("y")) for text in labels}) == len(labels)
    for shape in root.iter(f"{SVG}rect"):
        left = float(shape.get("x", "0"))
        assert 0 <= left < left + float(shape.get("width", "0")) < width


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
    assert listed(chunks) == words


def test_the_text_has_one_line_for_each_round_and_rank() -> None:
    assert cl.draw("recursive_doubling", 2, format="text") == (
        "allreduce recursive_doubling: p = 2, chunks = 1\n"
        "round 0  rank 0  send input[0] to rank 1; fold own input[0] + rank 1 into output[0]\n"
        "round 0  rank 1  send input[0] to rank 0; fold rank 0 + own input[0] into output[0]\n"
    )
    lines = cl.draw("ring", 12, format="text").splitlines()
    assert len(lines) == 1 + 12 * 22
    assert lines[1].startswith("round  0  rank  0  send ")


def test_a_local_fold_is_said_in_words() -> None:
    text = cl.draw("doubling_123", 4, "exscan", format="text")
    assert "recv output[0] from rank 0; fold output[0] + scratch[0] into scratch[0]" in text


@pytest.mark.parametrize(("kind", "name"), [("broadcast", "binomial"), ("gather", "linear")])
def test_roots_are_shown(kind: str, name: str) -> None:
    assert "root 2" in cl.draw(name, 4, kind, root=2)


@pytest.mark.parametrize(
    ("name", "kind", "p"),
    [("ring", "allreduce", 64), ("ring", "allreduce", 256), ("pairwise", "alltoall", 64)],
)
def test_what_no_browser_would_show_is_not_drawn(name: str, kind: str, p: int) -> None:
    words = rf"draw: {kind} {name} for {p} ranks has .*: draw fewer ranks, or take the text"
    with pytest.raises(cl.UnsupportedError, match=words):
        cl.draw(name, p, kind)


def test_drawings_have_a_bound_for_each_format() -> None:
    assert cl.draw("ring", 32).endswith("</svg>\n")
    assert cl.draw("recursive_doubling", 256).endswith("</svg>\n")
    assert len(cl.draw("ring", 64, format="text").splitlines()) == 1 + 64 * 126
    with pytest.raises(cl.UnsupportedError, match="ring for 600 ranks has too many steps"):
        cl.draw("ring", 600, format="text")
    with pytest.raises(
        cl.UnsupportedError, match=r"has 520192 cells and 8064 arrows, and an image"
    ):
        cl.draw("ring", 64)
