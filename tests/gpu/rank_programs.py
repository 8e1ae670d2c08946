# SPDX-License-Identifier: Apache-2.0
"""What each process of tests/gpu/test_processes.py and test_nccl.py does, by name.

``python -m tests.gpu.rank_programs NAME RANK SIZE FILE``; all processes share a GPU.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl

LONG = 3_000_000  # float32: several blocks through memory of the host


def shared(rank: int, size: int, _: Path) -> None:
    """Arrays of CuPy and torch, through memory of the host."""
    cupy: Any = importlib.import_module("cupy")
    torch: Any = importlib.import_module("torch")
    comm = cl.init(timeout=30)
    total = size * (size + 1) / 2
    for n in (1, 1000, LONG):
        x, y = cupy.full(n, rank + 1, "float32"), torch.full((n,), rank + 1.0, device="cuda")
        comm.allreduce(x)
        handle = comm.allreduce(y, async_op=True)
        handle.wait()
        assert (x == total).all()
        assert bool((y == total).all())
        whole = comm.allgather(cupy.full(3, rank, "int32"))
        assert whole.get().tolist() == np.repeat(np.arange(size), 3).tolist()
    last = comm.last
    assert last is not None
    assert last.way == "host", last
    assert "share a GPU" in last.reason, last
    narrow = torch.full((100,), rank + 1.0, device="cuda", dtype=torch.bfloat16)
    comm.allreduce(narrow)
    assert bool((narrow == total).all())
    if rank == 0:
        comm.send(torch.arange(5.0, device="cuda"), 1)
    elif rank == 1:
        found = torch.zeros(5, device="cuda")
        comm.recv(found, 0)
        assert found.tolist() == [0, 1, 2, 3, 4]
    comm.close()


def cupyx_backend(rank: int, size: int, _: Path) -> None:
    """The backend of cupyx.distributed, as its users make it."""
    cl_cupy: Any = importlib.import_module("collectives.cupy")
    cupy: Any = importlib.import_module("cupy")
    distributed: Any = importlib.import_module("cupyx.distributed")
    sparse: Any = importlib.import_module("cupyx.scipy.sparse")
    cl_cupy.register()
    comm = distributed.init_process_group(size, rank, backend="collectives", port=23456)
    x, out = cupy.full((3, 4), rank + 1, "f4"), cupy.zeros((3, 4), "f4")
    comm.all_reduce(x, out)
    assert (out == size * (size + 1) / 2).all()
    rows = cupy.zeros((size, 2), "i8")
    comm.all_gather(cupy.array([rank, 10 + rank]), rows, 2)
    assert rows.get().tolist() == [[r, 10 + r] for r in range(size)]
    if rank == 0:
        comm.send(x, 1)
    elif rank == 1:
        comm.recv(out, 0)
        assert (out == 1).all()
    comm.barrier()
    assert sparse is not None


def _torch_group(backend: str, rank: int, size: int, file: Path) -> Any:
    torch: Any = importlib.import_module("torch")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group(
        backend, init_method=f"file://{file}", rank=rank, world_size=size
    )
    return torch


def torch_nccl(rank: int, size: int, file: Path) -> None:
    """torch's backend nccl, on whatever libnccl.so.2 is loaded."""
    torch = _torch_group("nccl", rank, size, file)
    _torch_calls(torch, rank, size)
    torch.distributed.destroy_process_group()


def torch_backend(rank: int, size: int, file: Path) -> None:
    """This library as a backend of torch.distributed."""
    importlib.import_module("collectives.torch")
    torch = _torch_group("collectives", rank, size, file)
    _torch_calls(torch, rank, size)
    _torch_streams(torch, rank, size)
    _torch_messages(torch, rank)
    torch.distributed.destroy_process_group()


def _torch_calls(torch: Any, rank: int, size: int) -> None:
    dist = torch.distributed
    x = torch.full((1000,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    assert bool((x == size * (size + 1) / 2).all())
    parts = [torch.zeros(5, device="cuda") for _ in range(size)]
    dist.all_gather(parts, torch.full((5,), float(rank), device="cuda"))
    assert [part[0].item() for part in parts] == list(range(size))
    scattered = torch.zeros(2, device="cuda")
    dist.reduce_scatter_tensor(scattered, torch.arange(2.0 * size, device="cuda"))
    assert scattered.tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
    dist.broadcast(x, src=1)
    swapped = torch.zeros(size, device="cuda")
    dist.all_to_all_single(swapped, torch.full((size,), float(rank), device="cuda"))
    assert swapped.tolist() == list(range(size))
    narrow = torch.full((33,), rank + 1.0, device="cuda", dtype=torch.bfloat16)
    work = dist.all_reduce(narrow, op=dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert bool((narrow == (size + 1) / 2).all())
    if rank == 0:
        dist.send(x[:7], 1)
    elif rank == 1:
        dist.recv(x[:7], 0)
    group = dist.new_group(list(range(size)))
    dist.all_reduce(scattered, group=group)
    dist.barrier()


def _torch_streams(torch: Any, rank: int, size: int) -> None:
    """A wait orders the current stream; futures; tensors in CPU memory beside those of the GPU."""
    dist, total = torch.distributed, size * (size + 1) / 2
    before, after = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(before):
        room, x = torch.empty(1 << 26, device="cuda"), torch.empty(LONG, device="cuda")
        for value in range(8):  # the GPU is not done with it when the calls begin
            room.fill_(value)
        x.fill_(rank + 1.0)
        host = torch.full((9,), rank + 1.0)
        works = [dist.all_reduce(y, async_op=True) for y in (x, host)]
    with torch.cuda.stream(after):
        for work in works:
            work.wait()
        assert bool((x == total).all())
        assert bool((host == total).all())
        assert works[0].is_completed()
        work = dist.all_reduce(x, async_op=True)
        doubled = work.get_future().then(lambda done: done.value()[0] * 2)
        assert bool((doubled.wait() == 2 * total * size).all())
        strided = torch.full((50, 2), rank + 1.0, device="cuda")[:, 1]
        dist.all_reduce(strided)
        assert bool((strided == total).all())
    torch.cuda.synchronize()


def _torch_messages(torch: Any, rank: int) -> None:
    """From a GPU to another process's, and to memory of the host."""
    dist = torch.distributed
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.full((700,), rank + 1.0, device="cuda")
        if rank == 0:
            for work in [dist.isend(x, 1), dist.isend(x + 1, 1)]:
                work.wait()
        elif rank == 1:
            found, host = torch.zeros(700, device="cuda"), torch.zeros(700)
            for work in [dist.irecv(found, 0), dist.irecv(host, 0)]:
                work.wait()
            assert bool((found == 1).all())
            assert bool((host == 2).all())


def torch_ddp(rank: int, size: int, file: Path) -> None:
    """DistributedDataParallel on CUDA tensors, by NCCL's interface."""
    torch = _torch_group("nccl", rank, size, file)
    _learn(torch, rank, size, None)
    torch.distributed.destroy_process_group()


def torch_backend_ddp(rank: int, size: int, file: Path) -> None:
    """The same by this library's backend, and by one of its hooks."""
    ours: Any = importlib.import_module("collectives.torch")
    torch = _torch_group("cpu:gloo,cuda:collectives", rank, size, file)
    for hook in (None, ours.reproducible_hook):
        _learn(torch, rank, size, hook)
    torch.distributed.destroy_process_group()


def _learn(torch: Any, rank: int, size: int, hook: Any) -> None:
    """The weights of all ranks stay alike, and learn."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
    ).cuda()
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    if hook is not None:
        parallel.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
    torch.manual_seed(100 + rank)
    x = torch.randn(512, 64, device="cuda")
    wanted = x.sum(1, keepdim=True) / 8
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (parallel(x) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3, losses
    flat = torch.cat([p.detach().reshape(-1) for p in parallel.parameters()])
    alike = [torch.zeros_like(flat) for _ in range(size)]
    torch.distributed.all_gather(alike, flat)
    assert all(bool((one == alike[0]).all()) for one in alike)


def cupy_nccl(rank: int, size: int, file: Path) -> None:
    """CuPy's NcclCommunicator."""
    cupy: Any = importlib.import_module("cupy")
    nccl: Any = importlib.import_module("cupy.cuda.nccl")
    assert nccl.get_version() == 23007, nccl.get_version()
    if rank == 0:
        file.with_suffix(".new").write_bytes(bytes(nccl.get_unique_id()))
        file.with_suffix(".new").rename(file)
    while not file.exists():
        time.sleep(0.01)
    comm = nccl.NcclCommunicator(size, file.read_bytes(), rank)
    x = cupy.full(100_000, rank + 1, "float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    comm.allReduce(x.data.ptr, x.data.ptr, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
    stream.synchronize()
    assert (x == size * (size + 1) / 2).all()
    comm.destroy()


def cupy_backend(rank: int, size: int, _: Path) -> None:
    """CuPy's own NCCLBackend of cupyx.distributed, on this package's library."""
    cupy: Any = importlib.import_module("cupy")
    distributed: Any = importlib.import_module("cupyx.distributed")
    comm = distributed.init_process_group(size, rank, port=23460)
    x, out = cupy.full(1000, rank + 1, "f4"), cupy.zeros(1000, "f4")
    comm.all_reduce(x, out)
    assert (out == size * (size + 1) / 2).all()
    comm.barrier()


def nccl_chosen(rank: int, size: int, _: Path) -> None:
    """NCCL as a candidate: asked for by name, and chosen or not after a trial."""
    torch: Any = importlib.import_module("torch")
    shared = torch.cuda.device_count() < size
    device = torch.device("cuda", 0 if shared else rank)
    torch.cuda.set_device(device)
    comm = cl.init(timeout=60)
    total = size * (size + 1) / 2
    for n in (1, 1000, LONG):
        for algorithm in ("nccl", None):
            with torch.cuda.stream(torch.cuda.Stream(device)):
                x = torch.full((n,), rank + 1.0, device=device)
                comm.allreduce(x, algorithm=algorithm)
                assert bool((x == total).all()), (n, algorithm)
        told = comm.explain("allreduce", 4 * n, device="cuda")
        assert told.choice in ("ours", "nccl"), told
        assert told.rounds >= 3, told
        print(told)
    x = torch.full((7,), rank, device=device, dtype=torch.int32)
    whole = torch.zeros(7 * size, device=device, dtype=torch.int32)
    comm.allgather(x, whole, algorithm="nccl")
    assert whole.tolist() == np.repeat(np.arange(size), 7).tolist()
    comm.reduce_scatter(whole, x, algorithm="nccl")
    assert x.tolist() == [rank * size] * 7
    comm.broadcast(x, root=1, algorithm="nccl")
    assert x.tolist() == [size] * 7
    last = comm.last
    assert last is not None
    assert last.way == "nccl"
    comm.close()


def nccl_mixed(rank: int, size: int, _: Path) -> None:
    """NCCL within what ranks take for two hosts of half of them each, ours between them."""
    torch: Any = importlib.import_module("torch")
    shared = torch.cuda.device_count() < size
    device = torch.device("cuda", 0 if shared else rank)
    torch.cuda.set_device(device)
    standing: Any = importlib.import_module("collectives.rivals.standing")
    standing.this_host = lambda: bytes([2 * rank // size]) * 16
    comm = cl.init(timeout=60)
    for n in (1, 1003, LONG):
        with torch.cuda.stream(torch.cuda.Stream(device)):
            x = torch.full((n,), rank + 1.0, device=device)
            comm.allreduce(x, algorithm="mixed")
            assert bool((x == size * (size + 1) / 2).all()), n
            comm.reduce(x, root=1, algorithm="mixed")
            comm.broadcast(x, root=1, algorithm="mixed")
            assert bool((x == size * size * (size + 1) / 2).all()), n
            whole = torch.zeros(n * size, device=device)
            comm.allgather(torch.full((n,), float(rank), device=device), whole, algorithm="mixed")
            wanted = torch.arange(float(size), device=device).repeat_interleave(n)
            assert bool((whole == wanted).all()), n
            comm.reduce_scatter(whole, x, algorithm="mixed")
            assert bool((x == rank * size).all()), n
    comm.allreduce(torch.ones(LONG, device=device))
    told = comm.explain("allreduce", 4 * LONG, device="cuda")
    assert told.mixed is not None, told
    print(told)
    comm.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
