# SPDX-License-Identifier: Apache-2.0
"""What this backend adds: hooks, collectives for autograd, buckets. Programs check themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import collectives as cl
from collectives.torch import autograd, hooks
from collectives.torch.buckets import GradientBuckets
from tests.backend.consumers import batch, model


def gradients(hook: Any = None, state: Any = None, steps: int = 1) -> list[torch.Tensor]:
    """Return the gradients of a network after some backward passes."""
    network = DistributedDataParallel(model(), bucket_cap_mb=0.002)
    if hook is not None:
        network.register_comm_hook(state, hook)
    x, y = batch(dist.get_rank())
    for _ in range(steps):
        network.zero_grad()
        ((network(x) - y) ** 2).mean().backward()
    return [parameter.grad.clone() for parameter in network.parameters()]


def near(found: list[torch.Tensor], wanted: list[torch.Tensor], share: float) -> None:
    """Check that gradients differ by at most this share of their largest."""
    for one, aim in zip(found, wanted, strict=True):
        assert (one - aim).abs().max() <= share * aim.abs().max(), (one - aim).abs().max()


def same_everywhere(tensors: list[torch.Tensor]) -> None:
    """Check that all ranks have the same bits."""
    for one in tensors:
        first = one.clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, one)


def narrow() -> None:
    """Gradients of 16 bits, by every hook: the same everywhere, and near the average."""
    group = dist.group.WORLD
    for dtype in (torch.bfloat16, torch.float16):
        for hook, state, share in (
            (hooks.topk_hook, hooks.TopKState(1.0, start=0), 0.02),
            (hooks.qsgd_hook, hooks.QSGDState(8), 0.1),
            (hooks.fp8_hook, group, 0.2),
            (hooks.adasum_hook, group, 2.0),
            (hooks.reproducible_hook, group, 0.02),
        ):
            torch.manual_seed(1)
            network = nn.parallel.DistributedDataParallel(nn.Linear(40, 10).to(dtype))
            network.register_comm_hook(state, hook)
            x = torch.full((3, 40), dist.get_rank() + 1.0, dtype=dtype)
            network(x).sum().backward()
            found = network.module.weight.grad
            assert found is not None
            assert found.dtype == dtype
            same_everywhere([found.float()])
            aim = torch.full((10, 40), 3 * (dist.get_world_size() + 1) / 2)
            near([found.float()], [aim], share)


def fp8() -> None:
    """Within a sixteenth of what is largest."""
    found = gradients(hooks.fp8_hook)
    near(found, gradients(), 1 / 8)
    same_everywhere(found)


def qsgd() -> None:
    """Eight bits: within a level of the largest of 1024."""
    found = gradients(hooks.qsgd_hook, hooks.QSGDState(8, seed=3))
    largest = max(float(one.abs().max()) for one in gradients())
    for one, aim in zip(found, gradients(), strict=True):
        assert (one - aim).abs().max() <= largest / 64
    same_everywhere(found)


def reproducible() -> None:
    """The bits of comm.allreduce(reproducible=True), whatever the algorithm."""
    found = gradients(hooks.reproducible_hook)
    near(found, gradients(), 1e-5)
    same_everywhere(found)


def adasum() -> None:
    """Equal gradients stay as they are."""
    x, y = batch(0)
    network = DistributedDataParallel(model())
    network.register_comm_hook(None, hooks.adasum_hook)
    ((network(x) - y) ** 2).mean().backward()
    alone = model()
    ((alone(x) - y) ** 2).mean().backward()
    aims = [parameter.grad for parameter in alone.parameters()]
    near([parameter.grad for parameter in network.parameters()], aims, 1e-5)


def topk() -> None:
    """In its first steps all travels, then a share; what is left comes later."""
    near(gradients(hooks.topk_hook, hooks.TopKState(0.1)), gradients(), 1e-6)
    state = hooks.TopKState(0.1, start=2)
    found = gradients(hooks.topk_hook, state, steps=3)
    same_everywhere(found)
    kept = sum(int((one != 0).sum()) for one in found)
    size, count = dist.get_world_size(), sum(one.numel() for one in found)
    assert 0 < kept <= size * (0.1 * count + 6)
    assert all(one.residual is not None for one in state.compressors.values())
    assert len(state.compressors) > 1


def differentiable() -> None:
    """Each collective's gradient is that of the same sum written down on one rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    n = 2 * size
    torch.manual_seed(1)
    inputs = torch.randn(size, n, dtype=torch.float64)
    weights = torch.randn(size, size * n, dtype=torch.float64)
    written: dict[str, Any] = {
        "allreduce": lambda xs, r: xs.sum(0),
        "broadcast": lambda xs, r: xs[0],
        "reduce": lambda xs, r: xs.sum(0) if r == 0 else torch.zeros_like(xs[0]),
        "allgather": lambda xs, r: xs.reshape(-1),
        "reduce_scatter": lambda xs, r: xs.sum(0)[2 * r : 2 * r + 2],
        "alltoall": lambda xs, r: xs[:, 2 * r : 2 * r + 2].reshape(-1),
    }
    for name, as_written in written.items():
        own = inputs[rank].clone().requires_grad_()
        result = getattr(autograd, name)(own)
        (result * weights[rank][: result.numel()]).sum().backward()
        every = inputs.clone().requires_grad_()
        outs = [as_written(every, r) for r in range(size)]
        sum((out * weights[r][: out.numel()]).sum() for r, out in enumerate(outs)).backward()
        assert torch.allclose(result, as_written(inputs, rank)), name
        assert torch.allclose(own.grad, every.grad[rank]), name
        assert torch.equal(own.detach(), inputs[rank]), name


def buckets() -> None:
    """Gradients lie in memory of the group, and are averaged there."""
    network, other = model(), model()
    extra = nn.Linear(4, 4, dtype=torch.float64)
    parameters = [*network.parameters(), *extra.parameters()]
    held = GradientBuckets(parameters, most_bytes=5000)
    assert len(held) > 2
    comm = cl.torch.communicator_of()
    x, y = batch(dist.get_rank())
    for step in range(3):
        if step == 2:  # which lets go of the views
            for parameter in parameters:
                parameter.grad = None
        else:
            held.zero()
        ((network(x) - y) ** 2).mean().backward()
        held.reduce()
        for parameter in parameters:
            assert comm.is_symmetric(parameter.grad)
    ((other(x) - y) ** 2).mean().backward()
    for parameter, aim in zip(network.parameters(), other.parameters(), strict=True):
        dist.all_reduce(aim.grad, dist.ReduceOp.AVG)
        assert torch.allclose(parameter.grad, aim.grad)
