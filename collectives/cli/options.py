# SPDX-License-Identifier: Apache-2.0
"""Types of command-line values: a wrong one is refused with a sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from collectives.cli.sizes import parse_ranks, parse_sizes
from collectives.errors import InvalidArgumentError
from collectives.names import KINDS

T = TypeVar("T")


def parsed(name: str, parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a click type from a function whose ``ValueError`` is the message to the user."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    read.__name__ = name  # what the help text shows
    return read


def parse_kind(text: str) -> str:
    """Return the collective's name; reduce-scatter is reduce_scatter."""
    name = text.replace("-", "_")
    if name not in KINDS:
        raise ValueError(f"collective {text!r} is unknown; there are {', '.join(KINDS)}")
    return name


def parse_tuned_kind(text: str) -> str:
    """Return the name of a collective that races are held for."""
    from collectives.tuning.asked import tuned_kind

    name = parse_kind(text)
    try:
        return tuned_kind(name)
    except InvalidArgumentError as error:
        raise ValueError(str(error)) from None


def check_sizes(text: str) -> str:
    """Check that sizes can be read; what a range holds depends on --factor."""
    parse_sizes(text)
    return text


def check_folder(path: Path | None) -> None:
    """Refuse a file for which there is no folder, before what is to be in it takes its time."""
    if path is not None and not os.path.isdir(path.parent):
        raise click.UsageError(f"cannot write {path}; the folder {path.parent} does not exist")


def write_json(path: Path | None, document: dict[str, Any]) -> None:
    """Write what a command found, where a file was asked for."""
    if path is None:
        return
    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


FILE = click.Path(dir_okay=False, path_type=Path)
JSON = click.option("--json", "json_file", type=FILE, help="Write what is found here, too.")
KIND = parsed("kind", parse_kind)
TUNED_KIND = parsed("kind", parse_tuned_kind)
RANK_RANGE = parsed("ranks", parse_ranks)
SIZES = parsed("sizes", check_sizes)
