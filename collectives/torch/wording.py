# SPDX-License-Identifier: Apache-2.0
"""Errors of a communicator in the words of torch's calls: what the program gave, it is told of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from collectives.errors import CollectiveError, InvalidArgumentError, MismatchError

_CALLS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherv": "all_gather",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "gatherv": "gather",
    "isend": "send",
    "irecv": "recv",
    "reduce_scatterv": "reduce_scatter",
}
_TENSOR = "x(?= of shape | has )"
_ALL = re.compile(rf"\b(?:{'|'.join(_CALLS)}|{_TENSOR})\b")
# How the communicator speaks of what a call was given.
_SPEAKS = re.compile(rf"\bout(?= has )|\b{_TENSOR}|\b(?:recv|send)_counts\b")
_CALL = re.compile(r"^\w+(?=: )")
_LEFT_OUT = ", or leave recv_counts out"  # which torch's calls cannot
_CLOSED = re.compile(r"rank \d+ has closed this communicator: make a new one")
_SHUT_DOWN = "the process group was shut down: make a new one"
_LENGTHS = re.compile(r"give the lengths of the parts to (\w+)v\b")


def in_torchs_words(error: BaseException) -> BaseException:
    """Let an error name calls as torch does. Returns it."""
    if isinstance(error, CollectiveError):
        text = _CLOSED.sub(_SHUT_DOWN, str(error))
        text = _ALL.sub(lambda found: _CALLS.get(found[0], "tensor"), text)
        error.args = (text, *error.args[1:])
    return error


class Words(NamedTuple):
    """What a call of torch, and what it takes, is called."""

    call: str
    out: str
    x: str
    recv_counts: str = ""
    send_counts: str = ""


def worded(words: Words, call: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Return what a call of the communicator returns; what it refuses is told in these words."""
    try:
        return call(*given, **options)
    except (InvalidArgumentError, MismatchError) as error:
        text = str(error)
        if _SPEAKS.search(text) is None:
            raise
        text = _CALL.sub(words.call, text.replace(_LEFT_OUT, ""))
        text = _LENGTHS.sub(r"call \1 with a list of tensors", text)
        known = words._asdict()
        text = _SPEAKS.sub(lambda found: known[found[0]] or found[0], text)
        raise type(error)(text, error.rank) from None


def check_size(call: str, part: str, size: int, other: str, wanted: int) -> None:
    """Refuse a tensor of a list that has not as many elements as another one."""
    if size != wanted:
        raise InvalidArgumentError(
            f"{call}: {part} has {size} elements, where {other} has {wanted}"
        )


def check_sizes(call: str, parts: str, sizes: Sequence[int], other: str, wanted: int) -> None:
    """Refuse a list of which a tensor has not as many elements as another one."""
    for index, size in enumerate(sizes):
        check_size(call, f"{parts}[{index}]", size, other, wanted)
