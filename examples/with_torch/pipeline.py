# SPDX-License-Identifier: Apache-2.0
"""A network whose halves lie on two ranks: activations go forth by messages, gradients back.

::

    torchrun --nproc-per-node 2 examples/with_torch/pipeline.py

Batches are cut into pieces, so that both ranks compute (GPipe, Huang et al., NeurIPS'19).
"""

from __future__ import annotations

import torch
from torch import distributed as dist
from torch import nn

import collectives.torch

STEPS, PIECES, PIECE, WIDTH = 30, 4, 16, 32


def first(layers: nn.Module, inputs: list[torch.Tensor]) -> None:
    """Send what the first half makes of each piece, then take the gradients back."""
    made, sending = [layers(x) for x in inputs], []
    for tag, one in enumerate(made):
        sending.append(dist.isend(one.detach(), 1, tag=tag))
    for tag, one in enumerate(made):
        gradient = torch.empty_like(one)
        dist.recv(gradient, 1, tag=tag)
        one.backward(gradient)
    for work in sending:
        work.wait()


def second(layers: nn.Module, aims: list[torch.Tensor]) -> float:
    """Take each piece, send its gradient back; return the loss."""
    loss = 0.0
    for tag, aim in enumerate(aims):
        x = torch.empty(PIECE, WIDTH)
        dist.recv(x, 0, tag=tag)
        x.requires_grad_()
        error = (layers(x) - aim).pow(2).mean() / PIECES
        error.backward()
        dist.send(x.grad, 0, tag=tag)
        loss += float(error)
    return loss


def main() -> None:
    """Train, and tell the loss before and after."""
    dist.init_process_group(collectives.torch.NAME)
    rank = dist.get_rank()
    if dist.get_world_size() != 2:
        raise SystemExit("this pipeline has two stages: start two ranks")
    torch.manual_seed(rank)
    half = nn.Sequential(nn.Linear(8, WIDTH), nn.Tanh()) if rank == 0 else nn.Linear(WIDTH, 2)
    optimiser = torch.optim.Adam(half.parameters(), 0.01)
    random, losses = torch.Generator().manual_seed(7), []  # the same data on both
    for _ in range(STEPS):
        x = torch.randn(PIECES * PIECE, 8, generator=random)
        y = torch.stack([x.sum(1), x[:, 0] - x[:, 1]], 1)
        optimiser.zero_grad()
        if rank == 0:
            first(half, list(x.split(PIECE)))
        else:
            losses.append(second(half, list(y.split(PIECE))))
        optimiser.step()
    if rank == 1:
        print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
