# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile out of methods: it would trace into them, and fail on their attributes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Group = TypeVar("Group", bound=type)


def opaque(names: Iterable[str]) -> Callable[[Group], Group]:
    """Hide the methods of these names, inherited ones too, from torch.compile."""

    def hide(group: Group) -> Group:
        for name in names:
            setattr(group, name, _hidden(getattr(group, name)))
        return group

    return hide


# torch.compiler.disable() imports the compiler, which takes a second: not before somebody else has.
def _hidden(method: Callable[..., Any]) -> Callable[..., Any]:
    hidden: Callable[..., Any] | None = None

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal hidden
        if hidden is None:
            if "torch._dynamo" not in sys.modules:
                return method(*arguments, **options)
            import torch

            hidden = torch.compiler.disable(method)
        return hidden(*arguments, **options)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call
