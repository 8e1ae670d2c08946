# SPDX-License-Identifier: Apache-2.0
"""What torch builds on a process group: programs whose results must be those of gloo."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

RATE = 0.1


def model() -> nn.Sequential:
    """Return a small network, the same on all ranks."""
    torch.manual_seed(0)
    widths = [16, 32, 32, 4]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def batch(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets of a rank."""
    generator = torch.Generator().manual_seed(100 + rank)
    return torch.randn(8, 16, generator=generator), torch.randn(8, 4, generator=generator)


def trained(network: nn.Module, optimiser: Any = None, steps: int = 3, of: int = -1) -> list[float]:
    """Return the losses of a few steps; of other data than this rank's where `of` says so."""
    x, y = batch(dist.get_rank() if of < 0 else of)
    optimiser = optimiser or torch.optim.SGD(network.parameters(), RATE)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = ((network(x) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


# ---- DistributedDataParallel ----------------------------------------------------------------


def ddp(**options: Any) -> list[float]:
    """Train with the options of DistributedDataParallel."""
    return trained(DistributedDataParallel(model(), **options))


def ddp_small_buckets() -> list[float]:
    """Many buckets, in flight at once."""
    return ddp(bucket_cap_mb=0.001)


def ddp_static_views() -> list[float]:
    """Gradients that lie in the buckets; the order of which is fixed."""
    return ddp(gradient_as_bucket_view=True, static_graph=True)


def ddp_join(**options: Any) -> list[float]:
    """Ranks with fewer inputs leave early."""
    network = DistributedDataParallel(model())
    optimiser = torch.optim.SGD(network.parameters(), RATE)
    with network.join(**options):
        trained(network, optimiser, 2 + dist.get_rank())
    return [parameter.sum().item() for parameter in network.parameters()]


def ddp_join_of_those_left() -> list[float]:
    """Gradients are averaged over the ranks that still have inputs."""
    return ddp_join(divide_by_initial_world_size=False)


class _Either(nn.Module):
    """Another layer on rank 0 than on the others."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(16, 4), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.first(x) if dist.get_rank() == 0 else self.second(x)
        return found


def ddp_unused() -> list[float]:
    """Parameters that some ranks do not use."""
    return trained(DistributedDataParallel(_Either(), find_unused_parameters=True))


def ddp_sparse() -> list[float]:
    """Gradients of an embedding, of rows that differ."""
    torch.manual_seed(0)
    network = DistributedDataParallel(nn.Embedding(50, 4, sparse=True))
    optimiser = torch.optim.SGD(network.parameters(), RATE)
    rank = dist.get_rank()
    for _ in range(2):
        optimiser.zero_grad()
        network(torch.tensor([rank, rank + 1, 7])).pow(2).sum().backward()
        optimiser.step()
    found: list[float] = network.module.weight.flatten()[:40].tolist()
    return found


def ddp_hook(name: str) -> list[float]:
    """Gradients through a communication hook of torch's."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    network = DistributedDataParallel(model())
    if "power" in name.lower():
        state = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
        network.register_comm_hook(state, getattr(powerSGD_hook, name))
    else:
        network.register_comm_hook(None, getattr(default_hooks, name))
    return trained(network, steps=4)


def ddp_compiled() -> list[float]:
    """A compiled network."""
    network = torch.compile(DistributedDataParallel(model()), backend="eager")
    return trained(network)


# ---- sharded and tensor parallel ------------------------------------------------------------


def zero() -> list[float]:
    """An optimiser whose state is shared out."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    network = DistributedDataParallel(model())
    return trained(
        network, ZeroRedundancyOptimizer(network.parameters(), torch.optim.Adam, lr=0.01)
    )


def fsdp1() -> list[float]:
    """FullyShardedDataParallel."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    return trained(FullyShardedDataParallel(model(), device_id=torch.device("cpu")))


def fsdp2() -> list[float]:
    """fully_shard, of each layer and the whole."""
    from torch.distributed.fsdp import fully_shard

    network = model()
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(network)
    return trained(network)


def dtensor() -> list[Any]:
    """A tensor that is shared out by rows, then by columns, then on all."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    rows = distribute_tensor(torch.arange(24.0).view(4, 6), mesh, [Shard(0)])
    return [
        rows.sum().full_tensor().tolist(),
        rows.redistribute(mesh, [Replicate()]).to_local().tolist(),
        rows.redistribute(mesh, [Shard(1)]).to_local().tolist(),
    ]


def tensor_parallel() -> list[float]:
    """A layer by columns and the next by rows."""
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh, network = init_device_mesh("cpu", (dist.get_world_size(),)), model()
    parallelize_module(network, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return trained(network, of=0)


def mesh() -> list[float]:
    """Groups of a mesh of two axes."""
    found = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("a", "b"))
    x, y = torch.ones(2) * dist.get_rank(), torch.ones(2) * dist.get_rank()
    dist.all_reduce(x, group=found.get_group("a"))
    dist.all_reduce(y, group=found.get_group("b"))
    return [*x.tolist(), *y.tolist()]


def checkpoint() -> list[float]:
    """Save and load on all ranks together."""
    from torch.distributed import checkpoint as dcp

    place = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(place, 0)
    state = model().state_dict()
    dcp.save({"model": state}, checkpoint_id=place[0])
    loaded = {"model": {name: torch.zeros_like(value) for name, value in state.items()}}
    dcp.load(loaded, checkpoint_id=place[0])
    return [value.sum().item() for value in loaded["model"].values()]


def checkpoint_meanwhile() -> list[float]:
    """Save while training goes on: torch's thread has a group of its own."""
    from torch.distributed import checkpoint as dcp

    place = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(place, 0)
    state = {"a": torch.arange(4.0), "b": torch.ones(3)}
    saver = dist.new_group()
    saved = dcp.async_save({"model": state}, checkpoint_id=place[0], process_group=saver)
    x = torch.ones(2)
    for _ in range(5):
        dist.all_reduce(x)
    saved.result(timeout=60)
    loaded = {"model": {name: torch.zeros_like(value) for name, value in state.items()}}
    dcp.load(loaded, checkpoint_id=place[0])
    return [x[0].item(), *(value.sum().item() for value in loaded["model"].values())]


def pipeline() -> list[Any]:
    """Two stages or more, a batch in pieces."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    layer = nn.Linear(8, 8)
    stage = PipelineStage(layer, rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda out, aim: ((out - aim) ** 2).mean())
    torch.manual_seed(5)
    losses: list[torch.Tensor] = []
    if rank == 0:
        schedule.step(torch.randn(4, 8))
    elif rank == size - 1:
        schedule.step(target=torch.zeros(4, 8), losses=losses)
    else:
        schedule.step()
    assert layer.weight.grad is not None
    return [layer.weight.grad.sum().item(), [loss.item() for loss in losses]]


# ---- compiled, and by autograd --------------------------------------------------------------


def compiled(backend: str) -> list[float]:
    """Functional collectives, and one in place, in a compiled graph."""
    from torch.distributed import _functional_collectives as functional

    @torch.compile(backend=backend, fullgraph=True)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = functional.all_reduce(x * 2, "sum", dist.group.WORLD) + 1
        return found

    @torch.compile(backend=backend)
    def in_place(x: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(x)
        return x + 1

    found = [*doubled(torch.ones(4) * dist.get_rank()).tolist(), *in_place(torch.ones(3)).tolist()]
    torch.compiler.reset()
    return found


def functional() -> list[Any]:
    """Each functional collective, which asks through C++."""
    from torch.distributed import _functional_collectives as f

    group, rank, size = dist.group.WORLD, dist.get_rank(), dist.get_world_size()
    x = torch.arange(4.0 * size) + rank
    made = [
        f.all_reduce(x, "sum", group),
        f.all_reduce(x, "avg", group) if dist.get_backend() != "gloo" else x * 0,
        f.broadcast(x, 1, group),
        f.all_gather_tensor(x, 0, group),
        f.reduce_scatter_tensor(x, "sum", 0, group),
        f.all_to_all_single(x, None, None, group),
        *f.all_reduce_coalesced([x, x + 1], "sum", group),
        *f.all_gather_into_tensor_coalesced([x, x + 1], group),
        *f.reduce_scatter_tensor_coalesced([x, x + 1], "sum", [0, 0], group),
    ]
    found = [f.wait_tensor(one).tolist() for one in made]
    return [found[0], *found[2:]]


def autograd() -> list[float]:
    """A collective that gradients go through."""
    from torch.distributed.nn import functional as f

    x = torch.ones(3, requires_grad=True)
    f.all_reduce(x * (dist.get_rank() + 1)).sum().backward()
    assert x.grad is not None
    found: list[float] = x.grad.tolist()
    return found
