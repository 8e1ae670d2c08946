# SPDX-License-Identifier: Apache-2.0
"""Tensors on the emulated GPU, in every call of a group: programs that check their own results."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import distributed as dist

import collectives as cl
from collectives.torch import communicator_of, hooks
from tests.backend import standin_cuda as cuda
from tests.backend.methods import equal, me

LONG = 1_100_000  # float32: two blocks through memory of the host
_MINE = 0x40  # a stream


def begin(own: bool) -> None:
    """Give each rank a GPU of its own, or all the same one."""
    cuda.install(dist.get_rank() if own else 0)


def streams(*numbers: int) -> list[cuda.Stream]:
    """Return streams of the GPU of this rank."""
    return [cuda.Stream(cuda.place, _MINE + number) for number in numbers]


Put = Callable[[torch.Tensor], Any]


def _host(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def _every_call(put: Put, n: int, later: bool) -> dict[str, list[Any]]:
    """Make every call with tensors that ``put`` has put somewhere; return results, and Works."""
    group, rank, size = me()
    works: list[Any] = []
    given = torch.arange(n, dtype=torch.float32) % 97 + rank
    whole = torch.arange(n * size, dtype=torch.float32) % 89 + rank

    def made(work: Any) -> None:
        works.append(work)

    def parts(count: int = n) -> list[Any]:
        return [put(torch.zeros(count)) for _ in range(size)]

    found: dict[str, list[Any]] = {}
    x = found["all_reduce"] = [put(given)]
    made(dist.all_reduce(x[0], async_op=later))
    x = found["all_reduce of strides"] = [put(torch.stack([given, given], 1))[:, 1]]
    made(dist.all_reduce(x[0], dist.ReduceOp.AVG, async_op=later))
    x = found["all_reduce_coalesced"] = [put(given), put(whole)]
    made(group.allreduce_coalesced(x, _options(dist.AllreduceCoalescedOptions(), later)))
    x = found["broadcast"] = [put(given)]
    made(dist.broadcast(x[0], 1, async_op=later))
    x = found["reduce"] = [put(given)]
    made(dist.reduce(x[0], size - 1, async_op=later))
    x = found["all_gather"] = parts()
    made(dist.all_gather(x, put(given), async_op=later))
    x = found["all_gather of unequal ones"] = [put(torch.zeros(r + 1)) for r in range(size)]
    made(dist.all_gather(x, put(given[:1].repeat(rank + 1)), async_op=later))
    x = found["all_gather_into_tensor"] = [put(torch.zeros(n * size))]
    made(dist.all_gather_into_tensor(x[0], put(given), async_op=later))
    x = found["reduce_scatter"] = [put(torch.zeros(n))]
    made(dist.reduce_scatter(x[0], [put(p) for p in whole.chunk(size)], async_op=later))
    x = found["reduce_scatter_tensor"] = [put(torch.zeros(n))]
    made(dist.reduce_scatter_tensor(x[0], put(whole), async_op=later))
    x = found["all_to_all"] = parts()
    made(dist.all_to_all(x, [put(p) for p in whole.chunk(size)], async_op=later))
    x = found["all_to_all_single"] = [put(torch.zeros(n * size))]
    made(dist.all_to_all_single(x[0], put(whole), async_op=later))
    gives = [r + rank for r in range(size)]
    x = found["all_to_all_single of unequal ones"] = [put(torch.zeros(sum(gives)))]
    rows = put(torch.full((sum(gives),), float(rank)))
    made(dist.all_to_all_single(x[0], rows, gives, gives, async_op=later))
    x = found["gather"] = parts() if rank == 0 else []
    made(dist.gather(put(given), x or None, async_op=later))
    x = found["scatter"] = [put(torch.zeros(n))]
    lists = [put(p) for p in whole.chunk(size)] if rank == 1 else None
    made(dist.scatter(x[0], lists, 1, async_op=later))
    for work in works:
        if work is not None:  # as it is of calls that torch has waited for itself
            work.wait()
    return found


def _options(options: Any, later: bool) -> Any:
    options.asyncOp = later
    return options


def kinds(own: bool) -> str:
    """Every call has the results that it has of tensors in CPU memory; return the way they went."""
    begin(own)
    for number, (n, later) in enumerate([(3, False), (700, True), (LONG, True)]):
        [mine] = streams(number)
        wanted = _every_call(_host, n, later)
        with cuda.stream(mine):
            found = _every_call(cuda.on_gpu, n, later)
            for name, tensors in found.items():
                for x, aim in zip(tensors, wanted[name], strict=True):
                    assert isinstance(x, cuda.GpuTensor)
                    assert torch.equal(cuda.seen(x), aim), (name, n, later)
    last = communicator_of().last
    assert last is not None
    return last.way


def waits(own: bool) -> list[bool]:
    """A wait lets the stream that is current come after the call, and does not wait for the GPU.

    Return whether the call was told as done by the first look, and its tensor was there then.
    """
    begin(own)
    size = dist.get_world_size()
    before, after, apart = streams(20, 21, 22)
    with cuda.stream(before):
        x = cuda.on_gpu(torch.ones(1000))
        work: Any = dist.all_reduce(x, async_op=True)
    with cuda.stream(after):
        assert work.wait()
        done = work.is_completed()
        with cuda.stream(apart):
            there = bool((cuda.seen(x) == size).all())
        equal(cuda.seen(x), [size] * 1000)
    until = time.monotonic() + 20
    while not (work.is_completed() and work.is_success()):
        assert time.monotonic() < until
    assert work.exception() is None
    with cuda.stream(before):  # one that was waited for where it was called
        group = dist.group.WORLD
        options = _options(dist.AllreduceOptions(), False)
        with cl.on_stream(apart.cuda_stream):  # of the communicator's own calls
            second = group.allreduce([x], options)
    with cuda.stream(after):
        assert second.wait()
        second.synchronize()
        equal(cuda.seen(x), [size * size] * 1000)
    return [done, there]


def _called_back(x: Any) -> torch.Tensor:
    """Return what a callback sees, whose stream comes after the future's own."""
    with cuda.stream(cuda.Stream(cuda.place, cuda.POOL)):
        return cuda.seen(x)


def then(own: bool) -> None:
    """A future has the tensors of its GPU, for callbacks on streams that come after the call."""
    begin(own)
    size = dist.get_world_size()
    with cuda.stream(streams(30)[0]):
        x = cuda.on_gpu(torch.ones(500))
        work: Any = dist.all_reduce(x, async_op=True)
    cuda.futures.clear()
    doubled = work.get_future().then(lambda done: _called_back(done.value()[0]) * 2)
    equal(doubled.wait(), [2 * size] * 500)
    assert cuda.futures == [[torch.device("cuda", cuda.place)]]
    bucket: Any = SimpleNamespace(buffer=lambda: x)
    with cuda.stream(streams(31)[0]):
        work.wait()
        averaged = hooks.reproducible_hook(None, bucket)
    equal(averaged.then(lambda done: _called_back(done.value())).wait(), [size] * 500)
    refusing: list[tuple[Any, Any]] = [
        (hooks.fp8_hook, None),
        (hooks.adasum_hook, None),
        (hooks.qsgd_hook, hooks.QSGDState()),
    ]
    for hook, state in refusing:
        with pytest.raises(cl.UnsupportedError):
            hook(state, bucket)


def blocks(own: bool) -> None:
    """Torch's coalescing blocks, by whether they name the device."""
    begin(own)
    _, rank, size = me()
    manager: Any = dist._coalescing_manager
    before, after = streams(40, 41)
    for device in (None, torch.device("cuda", cuda.place)):
        for later in (False, True):
            with cuda.stream(before):
                a, b = cuda.on_gpu(torch.ones(2)), cuda.on_gpu(torch.full((900,), rank + 1.0))
                with manager(device=device, async_ops=later) as made:
                    dist.all_reduce(a, async_op=device is not None and later)
                    dist.all_reduce(b, async_op=device is not None and later)
            with cuda.stream(after if later else before):
                if later:
                    made.wait()
                equal(cuda.seen(a), [size] * 2)
                equal(cuda.seen(b), [size * (size + 1) / 2] * 900)
    with cuda.stream(before):
        whole = cuda.on_gpu(torch.zeros(2 * size))
        with manager():
            dist.all_gather_into_tensor(whole, a)
        equal(cuda.seen(whole), [size] * 2 * size)


def messages(own: bool) -> None:
    """Messages from GPU to GPU, and between one and the host, by every form."""
    begin(own)
    _, rank, size = me()
    right, left = (rank + 1) % size, (rank - 1) % size
    before, after = streams(50, 51)
    with cuda.stream(before):
        x, room = cuda.on_gpu(torch.full((700,), rank + 1.0)), cuda.on_gpu(torch.zeros(700))
        dist.all_reduce(x)  # a send comes after what is on the stream
        total = size * (size + 1) / 2
        operations = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, room, left)]
        works = dist.batch_isend_irecv(operations)
    with cuda.stream(after):
        for work in works:
            work.wait()
        equal(cuda.seen(room), [total] * 700)
    with cuda.stream(before):
        host = torch.zeros(700)
        sent: Any = dist.isend(room, right, tag=3)
        assert dist.recv(host, tag=3) == left
        sent.wait()
        equal(host, [total] * 700)
        sent = dist.isend(host + rank, right)
        came: Any = dist.irecv(room, left)
        value = came.get_future().then(lambda done: _called_back(done.value()[0]))
        equal(value.wait(), [total + left] * 700)
        sent.wait()
        assert came.is_completed()


def beside(own: bool) -> None:
    """Tensors of both kinds in one group, and a barrier that waits for a GPU first."""
    begin(own)
    _, rank, size = me()
    total = size * (size + 1) / 2
    with cuda.stream(streams(60)[0]):
        x, host = cuda.on_gpu(torch.full((900,), rank + 1.0)), torch.full((5,), rank + 1.0)
        works: list[Any] = [dist.all_reduce(y, async_op=True) for y in (x, host, x, host)]
        for work in works:
            work.wait()
        equal(host, [total * size] * 5)
        said: list[Any] = [None] * size
        dist.all_gather_object(said, {"rank": rank})
        assert said == [{"rank": r} for r in range(size)]
        options = dist.BarrierOptions()
        options.device = torch.device("cuda", cuda.place)
        options.asyncOp = True
        dist.group.WORLD.barrier(options).wait()
        equal(cuda.now(x), [total * size] * 900)  # the GPU has done it
    group = dist.group.WORLD
    assert group._get_backend("cuda") is group
    assert {device.type for device in group._device_types} == {"cpu", "cuda"}


def refused(own: bool) -> list[list[str]]:
    """Return what errors there were, at a call and at a wait, by kind and words."""
    begin(own)
    rank = dist.get_rank()
    group = dist.new_group()
    found = []
    here = cuda.on_gpu(torch.ones(4 + rank))
    kinds: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(here, group=group),
        lambda: dist.all_reduce(here, group=group, async_op=True),
        lambda: group.allreduce_coalesced([cuda.on_gpu(torch.ones(3, 2)).t()]),
        lambda: dist.broadcast(torch.ones(4) if rank else cuda.on_gpu(torch.ones(4)), 0, group),
    ]
    errors = importlib.import_module("collectives.errors")
    for call in kinds:
        try:
            work = call()
            if work is not None:
                work.wait()
        except errors.CollectiveError as error:
            found.append([type(error).__name__, str(error)])
        else:
            found.append(["", ""])
    return found
