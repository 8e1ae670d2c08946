# SPDX-License-Identifier: Apache-2.0
"""Every status of the native layer has its exception."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import collectives as cl
from collectives import errors
from collectives._ffi import check, ffi, lib

HEADER = Path(__file__).resolve().parents[2] / "native/include/collectives.h"
NOT_ERRORS = {"COLL_OK", "COLL_IN_PROGRESS"}


def statuses() -> dict[str, int]:
    """Return the enumerators of coll_status, as the header has them."""
    block = re.search(r"typedef enum coll_status \{(.*?)\} coll_status;", HEADER.read_text(), re.S)
    assert block is not None
    return {name: int(n) for name, n in re.findall(r"(COLL_\w+) = (\d+)", block.group(1))}


def test_every_status_has_its_class() -> None:
    failures = {number for name, number in statuses().items() if name not in NOT_ERRORS}
    assert set(errors.CLASSES) == failures
    assert len(set(errors.CLASSES.values())) == len(failures)


def test_the_header_and_the_compiled_module_agree() -> None:
    assert all(getattr(lib, name) == number for name, number in statuses().items())


@pytest.mark.parametrize("cls", errors.CLASSES.values(), ids=lambda cls: cls.__name__)
def test_classes_are_public_and_travel(cls: type[cl.CollectiveError]) -> None:
    assert getattr(cl, cls.__name__) is cls
    error = cls("rank 3 died", 3)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.rank) == (cls, "rank 3 died", 3)
    assert isinstance(error, cl.CollectiveError)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (cl.InvalidArgumentError, ValueError),
        (cl.UnsupportedError, NotImplementedError),
        (cl.CollectiveTimeoutError, TimeoutError),
        (cl.PeerLostError, ConnectionError),
        (cl.OutOfMemoryError, MemoryError),
        (cl.SystemCallError, OSError),
        (cl.BootstrapError, ConnectionError),
        (cl.CollectiveError, RuntimeError),
    ],
)
def test_classes_are_also_builtin_errors(
    cls: type[cl.CollectiveError], builtin: type[Exception]
) -> None:
    with pytest.raises(builtin):
        raise cls("a sentence")


def test_check_raises_what_a_call_reported() -> None:
    value = ffi.new("double *")
    with pytest.raises(cl.InvalidArgumentError, match="formula"):
        check(lib.coll_formula(b"p +", 4, value))
    check(lib.coll_formula(b"p + 1", 4, value))
    assert value[0] == 5


def test_an_unknown_status_is_a_bug_of_ours() -> None:
    with pytest.raises(cl.InternalError, match="unexpected status 77"):
        check(77)
