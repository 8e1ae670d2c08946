# SPDX-License-Identifier: Apache-2.0
"""The part of docs/api.md on collectives.nccl: its public names, and the methods of its classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from collectives import nccl
from scripts.api_page import is_method, markdown, member, signature

# Programs make no other class themselves.
MADE = {"Config"}
# What only the library itself calls.
OURS = {
    "adopt", "begin", "begun", "code_for", "end", "finish", "keep", "keep_new", "run", "settle",
    "simulate", "told",
}  # fmt: skip


def section() -> Iterator[str]:
    """Yield the paragraphs of all public names."""
    yield "## NCCL"
    yield (
        "`from collectives import nccl`: NCCL's own library, whichever is installed: "
        "[NCCL](nccl.md)."
    )
    for name in nccl.__all__:
        value = getattr(nccl, name)
        yield f"### nccl.{name}"
        if inspect.ismodule(value):
            yield markdown(value.__doc__ or "")
        elif isinstance(value, type):
            yield from _class(name, value)
        else:
            yield signature(name, value)
            yield markdown(value.__doc__ or "")


def _class(name: str, value: type) -> Iterator[str]:
    if issubclass(value, Exception):
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        yield f"Also {bases}. {markdown(value.__doc__ or '')}"
        return
    if name in MADE:
        yield signature(name, value)
    yield markdown(value.__doc__ or "")
    for key in _methods(value):
        yield from member(value, key, f"nccl.{name}.")


def _methods(value: type) -> list[str]:
    """Return the names of methods and properties, those of the bases in this package first."""
    found: dict[str, None] = {}
    for owner in reversed(value.__mro__):
        if owner.__module__.startswith("collectives.nccl"):
            for key, held in vars(owner).items():
                if not key.startswith("_") and key not in OURS and is_method(held):
                    found[key] = None
    return list(found)
