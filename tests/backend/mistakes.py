# SPDX-License-Identifier: Apache-2.0
"""What goes wrong where gloo says nothing, hangs or dies: each rank tells the error that it got."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch import distributed as dist

import collectives as cl
from tests.backend import memoryless

SHORT = timedelta(seconds=2)


def _told(call: Callable[[Any], Any]) -> tuple[str, str]:
    """Make a call in a new group; return the class and the text of its error."""
    group = dist.new_group(timeout=SHORT)
    return _error_of(lambda: call(group))


def _error_of(call: Callable[[], Any]) -> tuple[str, str]:
    try:
        call()
    except cl.CollectiveError as error:
        return type(error).__name__, str(error)
    return "", ""


def _first() -> bool:
    return dist.get_rank() == 0


def dtypes() -> tuple[str, str]:
    """One rank has another dtype of the same size."""
    dtype = torch.float32 if _first() else torch.int32
    return _told(lambda group: dist.all_reduce(torch.ones(4, dtype=dtype), group=group))


def ddp() -> tuple[str, str]:
    """One rank calls a barrier where the others add up gradients: C++ waits for these."""
    group = dist.new_group(timeout=SHORT)
    made = torch.nn.parallel.DistributedDataParallel
    try:  # a rank may hear of it while it is still in a call before
        network = made(torch.nn.Linear(50, 50), process_group=group)  # its hooks end with it
        loss = network(torch.ones(2, 50)).sum()
        if _first():
            dist.barrier(group=group)
        else:
            loss.backward()
    except RuntimeError as error:
        return type(error).__name__, str(error)
    return "", ""


def future() -> tuple[str, str]:
    """One rank has more elements; what a future and one made of it tell."""
    group = dist.new_group(timeout=SHORT)
    made = dist.all_reduce(torch.ones(4 + _first()), group=group, async_op=True).get_future()
    with pytest.raises(RuntimeError, match="MismatchError"):
        made.then(lambda done: done.value()).wait()
    try:
        made.wait()
    except RuntimeError as error:
        return type(error).__name__, str(error)
    return "", ""


def counts() -> tuple[str, str]:
    """One rank has more elements."""
    return _told(lambda group: dist.all_reduce(torch.ones(4 + _first()), group=group))


def operations() -> tuple[str, str]:
    """One rank makes another call."""

    def call(group: Any) -> None:
        if _first():
            dist.broadcast(torch.ones(4), 0, group=group)
            dist.barrier(group=group)
        else:
            dist.all_reduce(torch.ones(4), group=group)

    return _told(call)


def reductions() -> tuple[str, str]:
    """One rank wants the largest, the others the sum."""
    op = dist.ReduceOp.MAX if _first() else dist.ReduceOp.SUM
    return _told(lambda group: dist.all_reduce(torch.ones(4), op, group=group))


def absent() -> tuple[str, str]:
    """One rank does not come."""

    def call(group: Any) -> None:
        if not _first():
            dist.all_reduce(torch.ones(4), group=group)

    return _told(call)


def absent_from_message() -> tuple[str, str]:
    """Nobody sends."""
    return _told(lambda group: dist.recv(torch.ones(4), 0 if not _first() else 1, group=group))


def in_flight() -> tuple[str, str]:
    """The error is raised where it is waited for; a future has it as well."""

    def call(group: Any) -> None:
        work = dist.all_reduce(torch.ones(4 + _first()), group=group, async_op=True)
        future = work.get_future()
        with pytest.raises(Exception, match="do not make the same call"):
            future.wait()
        assert work.is_completed()
        assert not work.is_success()
        assert isinstance(work.exception(), cl.MismatchError)
        work.wait()

    return _told(call)


def _sizes(size: int) -> dict[str, Callable[[Any], Any]]:
    """Lists and tensors whose sizes do not fit each other, on every rank."""
    new = torch.ones
    few = [new(3)] * size
    return {
        "small list": lambda group: dist.all_gather(few, new(4), group=group),
        "small output": lambda group: dist.all_gather_into_tensor(new(3), new(4), group=group),
        "another dtype": lambda group: dist.all_gather_into_tensor(
            new(4 * size, dtype=torch.int32), new(4), group=group
        ),
        "small parts": lambda group: group.scatter([new(4)], [few], root=dist.get_rank()).wait(),
        "small sums": lambda group: dist.reduce_scatter(new(4), few, group=group),
        "large sum": lambda group: dist.reduce_scatter_tensor(new(4), new(3 * size), group=group),
        "lists apart": lambda group: dist.all_to_all([new(4)] * size, few, group=group),
        "splits apart": lambda group: dist.all_to_all_single(
            new(3 * size), new(4 * size), [3] * size, [4] * size, group=group
        ),
    }


def _sparse(size: int) -> dict[str, Callable[[Any], Any]]:
    """Sparse tensors where only elements that lie side by side can travel."""
    coo = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (5,))
    csr = torch.eye(3).to_sparse_csr()
    return {
        "sparse broadcast": lambda group: dist.broadcast(coo, group_src=0, group=group),
        "csr broadcast": lambda group: dist.broadcast(csr, group_src=0, group=group),
        "sparse coalesced": lambda group: group.allreduce_coalesced([coo, coo]).wait(),
        "csr sum": lambda group: dist.all_reduce(csr, group=group),
        "sparse list": lambda group: dist.all_gather([coo] * size, coo, group=group),
        "sparse gather": lambda group: group.gather([[coo] * size], [coo], root=0).wait(),
        "sparse parts": lambda group: group.scatter([coo], [[coo] * size], root=0).wait(),
    }


def gathered(sizes: list[int]) -> tuple[str, str]:
    """Rank 0 has a list for other sizes than come: ranks 0, 1, ... give 2, 3, ... elements."""

    def call(group: Any) -> None:
        lists = [torch.zeros(n) for n in sizes] if _first() else None
        dist.gather(torch.ones(2 + dist.get_rank()), lists, group_dst=0, group=group)

    return _told(call)


def limited() -> tuple[str, str]:
    """One rank does not come, and the time-out of the group was set when it was there."""
    group = dist.new_group(timeout=timedelta(seconds=100))
    dist.barrier(group=group)
    group.set_timeout(SHORT)
    kind, text = _error_of(lambda: dist.recv(torch.ones(1), 1 if _first() else 0, group=group))
    assert (kind, "2 s" in text) == ("CollectiveTimeoutError", True)
    return _error_of(lambda: None if _first() else dist.barrier(group=group))


def refused(name: str) -> tuple[str, str]:
    """What cannot be asked for; the group works on."""
    size = dist.get_world_size()
    calls: dict[str, Callable[[Any], Any]] = {
        "list": lambda group: group.allreduce([torch.ones(2), torch.ones(2)]).wait(),
        "device": lambda group: dist.all_reduce(torch.ones(2, device="meta"), group=group),
        "scale": lambda group: dist.all_reduce(
            torch.ones(2), dist._make_nccl_premul_sum(2.0), group=group
        ),
        "parts": lambda group: group.alltoall([torch.ones(2)] * size, [torch.ones(2)]).wait(),
        "no parts": lambda group: dist.reduce_scatter(torch.ones(2), [], group=group),
        "no room": lambda group: dist.all_gather([], torch.ones(2), group=group),
        "rows": lambda group: dist.all_to_all_single(
            torch.ones(size), torch.ones(size), [1] * size, [size] * size, group=group
        ),
        "uneven": lambda group: dist.reduce_scatter_tensor(
            torch.ones(2), torch.ones(2 * size + 1), group=group
        ),
        "overlap": lambda group: dist.all_reduce(torch.ones(1).expand(4), group=group),
        "tag": lambda group: group.send([torch.ones(1)], 0, tag=-1).wait(),
        "any tag": lambda group: group.recv([torch.ones(1)], 0, tag=-1).wait(),
        "timeout": lambda group: group.set_timeout(timedelta(0)),
        "no time": lambda group: group.barrier(timeout=timedelta(0)).wait(),
        "no time to meet": lambda group: dist.new_group(timeout=timedelta(0)),
        **_sizes(size),
        **_sparse(size),
        **memoryless.calls(size),
    }
    group = dist.new_group(timeout=SHORT)
    try:
        calls[name](group)
    except (cl.CollectiveError, TypeError) as error:
        found = type(error).__name__, str(error)
    else:
        found = "", ""
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [size] * 2
    return found


def closed() -> tuple[str, str]:
    """A group that was shut down."""

    def call(group: Any) -> None:
        group.shutdown()
        group.send([torch.ones(2)], 0, 0)

    return _told(call)


def closed_before_a_collective() -> tuple[str, str]:
    """A group that was destroyed."""

    def call(group: Any) -> None:
        group.shutdown()
        group.allreduce([torch.ones(2)]).wait()

    return _told(call)


def aborted() -> tuple[str, str]:
    """One rank aborts while the others wait."""

    def call(group: Any) -> None:
        if _first():
            group.abort()
        dist.all_reduce(torch.ones(2), group=group)

    return _told(call)


def leaks() -> tuple[str, str]:
    """What only a backend of C++ is asked for has nowhere to go: each call of torch's library."""
    group = dist.group.WORLD
    boxed, size, x = group.boxed(), dist.get_world_size(), torch.ones(2)
    some = [torch.ones(2) for _ in range(size)]
    large = torch.ones(2 * size)
    ms = 100
    ops = torch.ops.c10d
    calls: dict[str, Callable[[], Any]] = {
        "send": lambda: ops.send([x], boxed, 0, 0),
        "recv_": lambda: ops.recv_([x], boxed, 0, 0),
        "recv_any_source_": lambda: ops.recv_any_source_([x], boxed, 0),
        "barrier": lambda: ops.barrier(x, boxed, [], True, ms),
        "broadcast_": lambda: ops.broadcast_([x], boxed, 0, 0, True, ms),
        "allgather_": lambda: ops.allgather_([some], [x], boxed, True, ms),
        "_allgather_base_": lambda: ops._allgather_base_(large, x, boxed, True, ms),
        "gather_": lambda: ops.gather_([some], [x], boxed, 0, True, ms),
        "scatter_": lambda: ops.scatter_([x], [some], boxed, 0, True, ms),
        "alltoall_": lambda: ops.alltoall_(some, some, boxed, True, ms),
    }
    texts = set()
    for name, call in calls.items():
        try:
            call()
        except RuntimeError as error:
            texts.add(str(error).splitlines()[0])
        else:
            return "", f"{name} went on"
    assert group._get_backend("cpu") is group
    return "RuntimeError", " and ".join(sorted(texts))
