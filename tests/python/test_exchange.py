# SPDX-License-Identifier: Apache-2.0
"""What ranks look up in a launcher's store while they meet: rank 0 each rank, others little."""

from __future__ import annotations

import secrets
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from collectives import errors
from collectives.launchers import meeting
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.exchange import exchange

Result = TypeVar("Result")

LONGEST = 1 << 16  # bytes of a value that stores of the native layer take


class Shared:
    """A store that the threads of a test share. It takes short values, put once."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        assert len(value) <= LONGEST
        assert len(key) <= 32
        assert key not in self.values
        self.values[key] = value


class Seen:
    """The store as one rank sees it: counts what it has found there."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.found: Counter[str] = Counter()

    def put(self, key: str, value: bytes) -> None:
        self._shared.put(key, value)

    def find(self, key: str) -> bytes | None:
        value = self._shared.values.get(key)
        self.found[key] += value is not None
        return value

    def close(self) -> None:
        pass


def on_ranks(
    size: int, work: Callable[[StoreDirectory, int], Result], shared: Shared | None = None
) -> tuple[list[Result], list[Counter[str]]]:
    """Return what the work gives on each rank, and what each rank has found in the store."""
    store = shared or Shared()
    seen = [Seen(store) for _ in range(size)]
    with ThreadPoolExecutor(size) as pool:
        done = pool.map(lambda r: work(StoreDirectory(seen[r], r, size), r), range(size))
        return list(done), [it.found for it in seen]


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_meeting_takes_few_answers_of_a_store(hosts: int) -> None:
    size = 20

    def rank(directory: StoreDirectory, r: int) -> object:
        return meeting.agree(
            directory, r, size, Deadline(20), f"boot 1 host{r % hosts}",
            {"COLLECTIVES_INTERFACE": "lo"}, count=0,
        )  # fmt: skip

    agreed, found = on_ranks(size, rank)
    assert len(agreed) == size
    exchanges, fences = (1, 3) if hosts == 1 else (2, 5)
    values = exchanges + (1 if hosts == 1 else 2)  # besides: the name; the secret
    assert [it.total() for it in found[1:]] == [values + fences] * (size - 1)
    assert found[0].total() == values + exchanges * size + fences * (size - 1)


def test_what_is_too_long_for_one_value_comes_in_pieces() -> None:
    say = [secrets.token_hex(n) for n in (30_000, 0, 32_000, 20_000)]
    said, found = on_ranks(4, lambda d, r: exchange(d, "k", say[r], r, 4, Deadline(20)))
    assert said == [say] * 4
    assert {"kall0", "kall1", "kall2"} <= set(found[1])


def test_what_each_rank_says_may_be_any_text() -> None:
    say = ["", 'a "b"\n', "Zürich \0"]
    said, _ = on_ranks(3, lambda d, r: exchange(d, "k", say[r], r, 3, Deadline(20)))
    assert said == [say] * 3


@pytest.mark.parametrize("absent", [0, 2])
def test_a_rank_that_does_not_come_is_named_by_all(absent: int) -> None:
    def rank(directory: StoreDirectory, r: int) -> str:
        if r == absent:
            return ""
        with pytest.raises(errors.CollectiveTimeoutError) as caught:
            meeting.agree(directory, r, 4, Deadline(0.3), "boot 1 host", count=0)
        return str(caught.value)

    told, _ = on_ranks(4, rank)
    for r, text in enumerate(told):
        if r != absent:
            words = f"after 0.3 s rank {absent} has not come to meet the others (this is rank {r}"
            assert words in text


def test_ranks_that_do_not_come_are_named_together() -> None:
    shared = Shared()
    shared.values["fence0.2"] = b"1"
    with pytest.raises(errors.CollectiveTimeoutError, match="ranks 1, 3 have not come"):
        StoreDirectory(Seen(shared), 0, 4).fence(Deadline(0.05))


def test_a_rank_0_that_says_nothing_more_is_named() -> None:
    shared = Shared()
    shared.values |= {f"fence0.{r}": b"1" for r in (0, 2)}
    with pytest.raises(errors.CollectiveTimeoutError, match="but rank 0 has not told them in time"):
        StoreDirectory(Seen(shared), 1, 3).fence(Deadline(0.05))


def told(packed: bytes) -> bytes:
    return b"%d:" % len(packed) + packed


@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        ([b"", b""], "does not begin with its length"),
        ([b"-1:", b""], "does not begin with its length"),
        ([b"999999999999:x", b""], "does not begin with its length"),
        ([b"5:abc", b""], "piece 1 is empty"),
        ([b"5:abcdef", b""], "it has 6 bytes and says 5"),
        ([b"3:abc", b""], "incorrect header"),
        ([told(zlib.compress(b'["a", "b"]')[:-2])], "is no list of what 2 ranks say"),
        ([told(zlib.compress(b'["a", "b"'))], "delimiter"),
        ([told(zlib.compress(b'["a"]'))], "is no list of what 2 ranks say"),
        ([told(zlib.compress(b'"ab"'))], "is no list of what 2 ranks say"),
        ([told(zlib.compress(b"\xff"))], "decode"),
    ],
)
def test_a_damaged_value_is_refused(pieces: list[bytes], says: str) -> None:
    shared = Shared()
    shared.values |= {f"kall{number}": piece for number, piece in enumerate(pieces)}
    shared.values |= {"fence0.open": b"1", "fence1.open": b"1"}
    with pytest.raises(errors.BootstrapError, match=says) as caught:
        exchange(StoreDirectory(Seen(shared), 1, 2), "k", "x", 1, 2, Deadline(5))
    assert "start the job again" in str(caught.value)


def test_a_value_that_would_grow_without_end_is_refused() -> None:
    packed = zlib.compress(b"[" + b" " * (1 << 25) + b"]")
    shared = Shared()
    shared.values |= {"fence0.open": b"1", "fence1.open": b"1"}
    shared.values["kall0"] = told(packed)
    with pytest.raises(errors.BootstrapError, match="is no list of what 2 ranks say"):
        exchange(StoreDirectory(Seen(shared), 1, 2), "k", "x", 1, 2, Deadline(5))
