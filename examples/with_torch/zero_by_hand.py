# SPDX-License-Identifier: Apache-2.0
"""An optimiser whose state is shared out, written on reduce_scatter and allgather.

::

    torchrun --nproc-per-node 2 examples/with_torch/zero_by_hand.py

Each rank keeps Adam's two moments of its part of the parameters only, gets the sum of that part of
the gradients, and gives the others what became of it: Rajbhandari et al., "ZeRO", SC'20, stage 1.
The weights are compared with those of Adam on whole gradients.
"""

from __future__ import annotations

import torch
from torch import distributed as dist
from torch import nn

import collectives.torch

STEPS, RATE = 20, 0.01


def network() -> nn.Sequential:
    """Return the same network on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 31), nn.Tanh(), nn.Linear(31, 3))


class SharedAdam:
    """Adam on parameters that lie in one vector, of which each rank owns a part."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        """Move the parameters into one vector, its length a multiple of the number of ranks."""
        self.comm = collectives.torch.communicator_of()
        count = sum(parameter.numel() for parameter in parameters)
        part = -(-count // self.comm.size)
        self.values = self.comm.empty(part * self.comm.size, torch.float32).zero_()
        self.gradients = self.comm.empty(part * self.comm.size, torch.float32).zero_()
        begin = 0
        for parameter in parameters:
            place = slice(begin, begin + parameter.numel())
            self.values[place] = parameter.detach().reshape(-1)
            parameter.data = self.values[place].view(parameter.shape)
            parameter.grad = self.gradients[place].view(parameter.shape)
            begin = place.stop
        self.own = nn.Parameter(self.comm.empty(part, torch.float32))
        self.own.data.copy_(self.values.view(self.comm.size, part)[self.comm.rank])
        self.own.grad = torch.zeros(part)
        self.adam = torch.optim.Adam([self.own], RATE)  # moments of a part only

    def step(self) -> None:
        """Average the gradients, change the own part, give it to all."""
        self.comm.reduce_scatter(self.gradients, self.own.grad, op="avg")
        self.adam.step()
        self.comm.allgather(self.own.detach(), self.values)
        self.gradients.zero_()


def main() -> None:
    """Train both ways, and compare the weights."""
    dist.init_process_group(collectives.torch.NAME)
    model, whole = network(), network()
    shared = SharedAdam(list(model.parameters()))
    adam = torch.optim.Adam(whole.parameters(), RATE)
    random = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(STEPS):
        x = torch.randn(16, 10, generator=random)
        for one in (model, whole):
            (one(x) - x[:, :3]).pow(2).mean().backward()
        shared.step()
        for parameter in whole.parameters():
            dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
        adam.step()
        adam.zero_grad()
    pairs = zip(model.parameters(), whole.parameters(), strict=True)
    apart = max(float((a - b).detach().abs().max()) for a, b in pairs)
    if apart > 1e-5:
        raise SystemExit(f"rank {dist.get_rank()}: the weights differ by {apart}")
    if dist.get_rank() == 0:
        print(f"weights equal to {apart:.1g}; moments of {shared.own.numel()} numbers a rank")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
