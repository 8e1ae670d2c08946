# SPDX-License-Identifier: Apache-2.0
"""Local SGD: ranks train alone, and average their weights now and then.

::

    torchrun --nproc-per-node 2 examples/with_torch/local_sgd.py

Stich, "Local SGD Converges Fast and Communicates Little", ICLR'19.
"""

from __future__ import annotations

import torch
from torch import distributed as dist
from torch import nn

import collectives.torch

STEPS, EVERY = 64, 8


def main() -> None:
    """Train, and tell the loss and how often the ranks have spoken."""
    dist.init_process_group(collectives.torch.NAME)
    comm = collectives.torch.communicator_of()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    random = torch.Generator().manual_seed(dist.get_rank())
    losses, spoken = [], 0
    for step in range(1, STEPS + 1):
        x = torch.randn(32, 8, generator=random)
        y = torch.stack([x.sum(1), x[:, 0] * x[:, 1]], 1)
        optimiser.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss))
        if step % EVERY == 0:  # one call: small tensors share messages
            comm.allreduce([parameter.detach() for parameter in model.parameters()], op="avg")
            spoken += 1
    for parameter in model.parameters():
        dist.broadcast(first := parameter.detach().clone(), 0)
        if not torch.equal(first, parameter.detach()):
            raise SystemExit("the ranks have different weights")
    if dist.get_rank() == 0:
        print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, averaged {spoken} times")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
