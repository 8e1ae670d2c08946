# SPDX-License-Identifier: Apache-2.0
"""What functions of the default communicator say of themselves: what its methods say."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from collectives.communicator import Communicator

P = ParamSpec("P")
R = TypeVar("R")

_WHOSE = "Of the default communicator, which init() made, or this call makes."


def documented_as_method(function: Callable[P, R]) -> Callable[P, R]:
    """Give a function the docstring of the method of its name, and say of which communicator."""
    method = getattr(Communicator, function.__name__)
    if method.__doc__ is not None:  # as it is under python -OO
        function.__doc__ = f"{method.__doc__.rstrip()}\n\n        {_WHOSE}\n        "
    return function
