# SPDX-License-Identifier: Apache-2.0
"""What a signal handler raises during a call is raised in the thread of that call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from collectives import stopping


def test_a_call_of_another_thread_that_fails_meanwhile_does_not_raise_it() -> None:
    stopping._keep(None, KeyboardInterrupt(), None)
    try:
        with ThreadPoolExecutor(1) as another:
            assert another.submit(stopping.raise_what_came).exception() is None
    finally:
        with pytest.raises(KeyboardInterrupt):
            stopping.raise_what_came()
    stopping.raise_what_came()
