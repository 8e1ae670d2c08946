# SPDX-License-Identifier: Apache-2.0
"""Wishes for algorithms as a function, of the default communicator."""

from __future__ import annotations

from contextlib import AbstractContextManager

from collectives.default import default
from collectives.method_docs import documented_as_method


@documented_as_method
def force(**algorithms: str) -> AbstractContextManager[None]:
    """:meth:`Communicator.force` of the default communicator."""
    return default().force(**algorithms)
