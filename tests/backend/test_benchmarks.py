# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the backend run, short, and keep what they have measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import ddp, torch_call, torch_messages

pytestmark = pytest.mark.extras


def test_ddp(tmp_path: Path) -> None:
    kept = tmp_path / "ddp.json"
    assert ddp.main(["--starts", "1", "--rounds", "1", "--output", str(kept)]) == 0
    found = json.loads(kept.read_text())["figures"]
    assert found["parameters"] > 10_000_000
    assert {tuple(steps) for steps in found["seconds of a step"].values()} == {ddp.KINDS}
    assert all(found["not hidden"]["of gloo's"].values())


def test_torch_messages(tmp_path: Path) -> None:
    kept = tmp_path / "torch_messages.json"
    assert torch_messages.main(["--rounds", "1", "--output", str(kept)]) == 0
    figures = json.loads(kept.read_text())["figures"]
    assert [(one["way"], one["bytes"]) for one in figures] == [
        (way, nbytes) for way in torch_messages.WAYS for nbytes in torch_messages.SIZES
    ]
    assert all(us > 0 for one in figures for us in one["microseconds"].values())


def test_torch_call(tmp_path: Path) -> None:
    kept = tmp_path / "torch_call.json"
    assert torch_call.main(["--rounds", "3", "--output", str(kept)]) == 0
    found = json.loads(kept.read_text())["figures"]
    assert tuple(found["seconds"]) == torch_call.WAYS
    assert all(seconds > 0 for seconds in found["seconds"].values())
