# SPDX-License-Identifier: Apache-2.0
"""The examples run under torchrun, and find what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.backend.test_page import torchrun

pytestmark = pytest.mark.extras

FOLDER = Path(__file__).parents[2] / "examples" / "with_torch"
FOUND = {
    "ddp_digits": r"accuracy 0\.(9[0-9])",
    "fsdp_text": r"loss (\S+) to (\S+)",
    "zero_by_hand": r"weights equal to",
    "local_sgd": r"loss (\S+) to (\S+), averaged 8 times",
    "pipeline": r"loss (\S+) to (\S+)",
    "experts": r"128 tokens, 2 experts: equal",
    "sparse_embedding": r"loss (\S+) to (\S+), \d+ of 16384 rows",
}


def test_each_example_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"text"} == set(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_an_example_finds_what_it_says(name: str) -> None:
    found = re.search(FOUND[name], said := torchrun(FOLDER / f"{name}.py"))
    assert found is not None, said
    if len(found.groups()) == 2:  # losses
        assert float(found[2]) < 0.9 * float(found[1]), said
