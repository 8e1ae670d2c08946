# SPDX-License-Identifier: Apache-2.0
"""docs/api.md holds every public name; tests/test_docs.py says whether it is current."""

from __future__ import annotations

import re

import pytest

import collectives as cl
from collectives.sparse.calls import SparseOptions
from scripts import api_page
from tests.test_docs import HEADER, ROOT, read

PAGE = read(ROOT / "docs/api.md")
PYTHON, _, C = PAGE.partition("\n## C\n")


def headings(text: str) -> set[str]:
    return set(re.findall(r"^#+ (.*)$", text, re.MULTILINE))


def test_every_public_name_has_a_heading() -> None:
    assert set(cl.__all__) - headings(PYTHON) == set()


def test_every_method_of_a_communicator_has_a_heading() -> None:
    names = {name for name in dir(cl.Communicator) if not name.startswith("_")}
    shown = {heading.removeprefix("Communicator.") for heading in headings(PYTHON)}
    assert names - shown == set()


def test_every_declaration_of_the_headers_is_there() -> None:
    for name in re.findall(r"\b(?:coll_\w+|COLL_(?!\w*_H\b)\w+)\b", HEADER):
        assert re.search(rf"\b{name}\b", C), name


def test_how_programs_make_sparse_vectors_is_there() -> None:
    """Classes that programs make have a signature; class methods and options are not forgotten."""
    assert "Sparse(indices: Array, values: Array, length: SupportsIndex)" in PYTHON
    assert re.search(r"^TopK\(\n    share: float,", PYTHON, re.MULTILINE)
    wanted = {"Sparse.from_dense", "Topology.load", "SparseOptions", "top_k", "select_above"}
    assert wanted - headings(PYTHON) == set()
    options = PYTHON.partition("### SparseOptions\n")[2].partition("\n### ")[0]
    for name in SparseOptions.__annotations__:
        assert re.search(rf"^{name}: \w", options, re.MULTILINE), name
        assert f"`{name}`: " in options, name


def test_a_name_without_a_group_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cl, "__all__", [*cl.__all__, "novelty"])
    with pytest.raises(ValueError, match=r"not in a group, or not public: \['novelty'\]"):
        api_page.page(ROOT)


def test_docstrings_become_markdown() -> None:
    docstring = """Do ``x`` as :meth:`~cl.Communicator.y`, thus::

        a = 1

    Args:
        x: one thing,
            or two.
        y: another.
    """
    assert api_page.markdown(docstring) == (
        "Do `x` as `cl.Communicator.y`, thus:\n\n```text\na = 1\n```\n\n"
        "* `x`: one thing,\n  or two.\n* `y`: another."
    )


def test_signatures_are_written_as_in_the_source() -> None:
    def short(self: object, x: cl.Algorithm, *, y: int | None = None) -> list[cl.Proof]:
        raise NotImplementedError

    assert api_page.signature("short", short) == (
        "```text\nshort(x: cl.Algorithm, *, y: int | None = None) -> list[cl.Proof]\n```"
    )
