# SPDX-License-Identifier: Apache-2.0
"""The command line of collbench as a whole: its names, what cannot be loaded, Ctrl-C."""

from __future__ import annotations

import sys

import click
import pytest
from click.testing import CliRunner

from collectives.cli.app import collbench
from collectives.standard_output import Command


@pytest.mark.parametrize(
    ("wrong", "near"), [("lst", "list"), ("verfy", "verify"), ("reduce-scater", "reduce_scatter")]
)
def test_the_nearest_names_are_shown_for_one_that_is_wrong(wrong: str, near: str) -> None:
    done = CliRunner().invoke(collbench, [wrong])
    assert done.exit_code == 2
    assert f"No such command '{wrong}'" in done.stderr
    assert f"'{near}'" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["compare", "a", "b"]])
def test_what_cannot_be_loaded_is_told_in_a_sentence(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "collectives.cli.compare", None)
    done = CliRunner().invoke(collbench, words)
    assert done.exit_code == 1
    assert done.stderr.startswith("collbench: compare cannot be loaded: ")
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_before_there_is_a_job() -> None:
    @click.command(cls=Command)
    def waits() -> None:
        raise KeyboardInterrupt

    done = CliRunner().invoke(waits, prog_name="collrun")
    assert (done.exit_code, done.stderr) == (130, "collrun: interrupted\n")
