# SPDX-License-Identifier: Apache-2.0
"""algorithms.inc is the table: every line has its file, paper, claims, proof, page and drawing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

import collectives as cl
from collectives.names import KINDS

ROOT = Path(__file__).resolve().parents[1]
SOURCES = Path("native/algorithms")
PAGES = Path("docs/algorithms")
PROVED = range(1, 10)


def names(root: Path) -> list[str]:
    """Return the lines of the table; anything else in it is an error."""
    found = []
    for line in (root / SOURCES / "algorithms.inc").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("//"):
            match = re.fullmatch(r"ALGORITHM\((\w+)\)", line)
            assert match is not None, f"algorithms.inc: {line!r} is not ALGORITHM(name)"
            found.append(match[1])
    return found


def compiled() -> dict[str, cl.Algorithm]:
    return {f"{a.kind}_{a.name}": a for a in cl.algorithms()}


def lacks(root: Path, name: str, algorithm: cl.Algorithm | None) -> list[str]:
    """Return what an algorithm of the table lacks, as sentences."""
    if algorithm is None:
        return [f"{name} is not in the compiled table", *_lacks_files(root, name)]
    return [
        *_lacks_files(root, name),
        *_lacks_claims(root, name, algorithm),
        *_lacks_proof(name, algorithm),
    ]


def _lacks_files(root: Path, name: str) -> list[str]:
    wrong = []
    source, page = root / SOURCES / f"{name}.cc", root / PAGES / f"{name}.md"
    if not source.exists():
        wrong.append(f"{name} has no file of its own")
    elif f"const Algorithm {name} =" not in source.read_text(encoding="utf-8"):
        wrong.append(f"{name} is not defined in {source.name}")
    if not page.exists():
        wrong.append(f"{name} has no page")
    elif f"({name}.svg)" not in page.read_text(encoding="utf-8"):
        wrong.append(f"{name} does not show its drawing")
    drawing = root / PAGES / f"{name}.svg"
    if not drawing.exists() or not ElementTree.parse(drawing).getroot().tag.endswith("svg"):
        wrong.append(f"{name} has no drawing")
    return wrong


def _lacks_claims(root: Path, name: str, a: cl.Algorithm) -> list[str]:
    wrong = []
    page = root / PAGES / f"{name}.md"
    shown = page.read_text(encoding="utf-8") if page.exists() else ""
    if not re.search(r"\w{3}.*\b(19|20)\d\d$", a.paper):
        wrong.append(f"{name} names no paper with its year: {a.paper!r}")
    if not re.fullmatch(r"[A-Z][^|\n]+\.", a.summary):
        wrong.append(f"{name} has no sentence that says what it is")
    claims = {"rounds": a.rounds, "bytes": a.bytes, "reductions": a.reductions}
    for claim, formula in claims.items():
        # Some costs have no formula in p: then the page gives what was counted.
        unsaid = not formula and f"| {claim} | counted |" not in shown
        if unsaid and (a.kind != "barrier" or claim == "rounds"):
            wrong.append(f"{name} claims no {claim}")
    if not a.restriction and not all(a.fits(p) for p in PROVED):
        wrong.append(f"{name} does not say for which p it is")
    return wrong


def _lacks_proof(name: str, a: cl.Algorithm) -> list[str]:
    proofs = cl.verify(a.name, PROVED, a.kind, plans=True)
    levels = {(one.p, one.mode is None) for one in proofs}
    wrong = [f"{name}, p = {one.p}: {one.message}" for one in proofs if not one.proved]
    for p in PROVED:
        if a.fits(p) and not {(p, True), (p, False)} <= levels:
            wrong.append(f"{name} is not proved at both levels for p = {p}")
    for one in proofs:
        for claim in ("rounds", "bytes", "reductions"):
            counted = getattr(one, claim)
            if (
                one.mode is None
                and getattr(a, claim)
                and counted != pytest.approx(a.formula(claim, one.p))
            ):
                wrong.append(f"{name}, p = {one.p}: {counted} {claim}, claimed {getattr(a, claim)}")
    return wrong


@pytest.mark.parametrize("name", names(ROOT))
def test_algorithm_lacks_nothing(name: str) -> None:
    assert lacks(ROOT, name, compiled().get(name)) == []


def test_the_compiled_table_is_that_of_the_file() -> None:
    assert list(compiled()) == names(ROOT)
    assert len(set(names(ROOT))) == len(names(ROOT)) >= 20


def strays(root: Path, table: Sequence[str]) -> list[str]:
    """Return the sources named like an algorithm that the table lacks."""
    there = [path.stem for kind in KINDS for path in (root / SOURCES).glob(f"{kind}_*.cc")]
    return sorted(set(there) - set(table))


def test_no_algorithm_is_forgotten() -> None:
    assert strays(ROOT, names(ROOT)) == []
    assert strays(ROOT, names(ROOT)[1:]) == names(ROOT)[:1]


def test_what_is_lacking_is_named(tmp_path: Path) -> None:
    (tmp_path / SOURCES).mkdir(parents=True)
    (tmp_path / SOURCES / "algorithms.inc").write_text("// words\nALGORITHM(allreduce_new)\n")
    assert names(tmp_path) == ["allreduce_new"]
    wanted = ["is not in the compiled table", "has no file of its own", "has no page"]
    wanted = [f"allreduce_new {words}" for words in (*wanted, "has no drawing")]
    assert lacks(tmp_path, "allreduce_new", None) == wanted


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"paper": ""}, "names no paper"),
        ({"paper": "An unpublished note"}, "names no paper"),
        ({"summary": ""}, "no sentence"),
        ({"rounds": ""}, "claims no rounds"),
        ({"bytes": ""}, "claims no bytes"),
        ({"reductions": ""}, "claims no reductions"),
        ({"rounds": "2*p"}, "rounds, claimed 2"),
        ({"bytes": "2"}, "bytes, claimed 2"),
    ],
)
def test_a_wrong_entry_is_named(change: dict[str, str], words: str) -> None:
    ring = compiled()["allreduce_ring"]
    assert lacks(ROOT, "allreduce_ring", ring) == []
    found = lacks(ROOT, "allreduce_ring", dataclasses.replace(ring, **change))
    assert found
    assert all(words in sentence for sentence in found)


def test_a_line_that_is_no_algorithm_is_refused(tmp_path: Path) -> None:
    (tmp_path / SOURCES).mkdir(parents=True)
    (tmp_path / SOURCES / "algorithms.inc").write_text("ALGORITHM(a) ALGORITHM(b)\n")
    with pytest.raises(AssertionError, match="is not ALGORITHM"):
        names(tmp_path)
