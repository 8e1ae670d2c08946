# SPDX-License-Identifier: Apache-2.0
"""The regret page: what it shows of regrets by hand and of those that are kept."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.record import RESULTS
from bench.regret.document import load, teams
from bench.regret.drawing import drawn
from bench.regret.page import html, main
from bench.regret.panels import Block, algorithms, panels
from tests.bench.regrets import cell, document, job

EMPTY = {"meta", "line", "rect", "circle", "path", "polyline", "br"}


class Checked(HTMLParser):
    """Counts elements, and wants each closed, and nothing from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        assert tag not in ("script", "link", "img")
        for name, value in attrs:
            assert name not in ("src", "onload")
            assert name != "href" or str(value).startswith("#")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1


def test_the_page_shows_every_job_and_no_more_than_itself() -> None:
    text = html(document())
    found = Checked(text)
    assert found.count["figure"] == 2
    assert "http" not in text
    assert "url(" not in text
    assert "a processor &lt;of hand&gt;" in text
    assert "direct &lt;&amp;&gt;" in text
    assert "prefers-color-scheme: dark" in text
    assert "3 ranks: held out" in text
    assert ">0.25 s<" in text
    missed = re.findall(r'<td class="missed"[^>]*>([^<]*)', text)
    # The table's three figures, its rules' largest where they stand alone, both models, a share.
    assert "1.250 &cross;" in missed
    assert "2.100 &cross;" in missed
    assert "1 of 3, 1 left out" in missed
    met = re.findall(r'<td class="met"[^>]*>([^<]*)', text)
    assert met == ["1.250 &check;", "0 of 3, 1 left out"]  # held out, at most 1.30


def test_a_panel_has_points_intervals_goals_and_paths() -> None:
    of_kind = panels(teams(document()))["allreduce"]
    assert algorithms(of_kind) == ["circulant", "direct <&>", "ring"]
    two, three = (drawn(panel, algorithms(of_kind)) for panel in of_kind)
    for svg, ways in ((two, 3), (three, 2)):
        ElementTree.fromstring(svg)
        assert svg.count('class="curve"') == ways
        assert svg.count('class="interval"') == 3 * ways
        assert svg.count('class="goal"') == 3
        assert svg.count('class="block ') == ways + 1
    assert two.count('<g class="held-out">') == 3
    assert three.count('<g class="undecided">') == 2
    assert "1,048,576 bytes by rule: 2.500 [2.450, 2.575]" in two
    assert "staged lag 1 / 64K" in two


def test_points_lie_where_their_figures_say() -> None:
    (panel,) = panels(teams({"ranks": {"2": job(cell(1.0, nbytes=8), cell(1.4, nbytes=512))}}))[
        "allreduce"
    ]
    svg = drawn(panel, algorithms([panel]))
    marks = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    (x1, y1), (x2, y2) = ((float(x), float(y)) for x, y in marks)
    one = re.search(r'y1="([\d.]+)" x2="[\d.]+" y2="[\d.]+" class="one"', svg)
    assert one is not None
    assert y1 == pytest.approx(float(one[1]), abs=0.11)
    assert x1 < x2
    assert y2 < y1


def test_a_path_changes_half_way_in_logarithms() -> None:
    cells = [cell(1.0, nbytes=n) for n in (100, 400, 10_000)]
    cells[2]["rule"]["choice"] = "ring, staged, lag 1"
    (panel,) = panels(teams({"hosts": {"4": job(*cells)}}))["allreduce"]
    first, second = panel.path("rule")
    assert (first.algorithm, second.algorithm) == ("direct <&>", "ring")
    assert first.end == second.begin == 2000
    assert len(panel.path("best")) == 1
    tiled, whole = (
        Block(1, 2, f"ring, {how}") for how in ("staged, lag 1, tiles of 4096", "wire, lag 0")
    )
    assert [tiled.lines(room) for room in (17, 16, 3, 1)] == [
        ("ring", "staged lag 1 / 4K"),
        ("ring", "4K"),
        ("", "4K"),
        ("", ""),
    ]
    assert whole.lines(5) == ("ring", "wire")
    assert panel.sizes() == [64, 512, 4096]


def test_what_is_kept_makes_a_page(tmp_path: Path) -> None:
    assert main(["--no-pictures", "--output", str(tmp_path)]) == 0
    text = (tmp_path / "regret.html").read_text(encoding="utf-8")
    kept = teams(load(RESULTS / "regret.json"))
    kinds = {row.kind for team in kept for row in team.rows}
    assert Checked(text).count["figure"] == sum(len(of) for of in panels(kept).values())
    assert all(f'<section id="{kind}">' in text for kind in kinds)


def test_each_collective_has_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source.json"
    source.write_text(json.dumps(document()))
    assert main([str(source), "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'regret.html'}\n"
    content = (tmp_path / "out" / "regret_allreduce.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000


def test_what_holds_no_regrets_makes_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source.json"
    for content, sentence in (("{}", "neither 'ranks' nor 'hosts'"), ("[", "is not JSON")):
        source.write_text(content)
        assert main([str(source), "--output", str(tmp_path / "out")]) == 2
        assert sentence in capsys.readouterr().err
    assert main([str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read: No such file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
