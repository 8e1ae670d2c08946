# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits by DistributedDataParallel; the only line of ours is the backend's name.

::

    torchrun --nproc-per-node 2 examples/with_torch/ddp_digits.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import collectives.torch

TRAINING, BATCH, EPOCHS = 1440, 96, 6


def main() -> None:
    """Train, and tell how many of the test images are read right."""
    dist.init_process_group(collectives.torch.NAME)
    rank, size = dist.get_rank(), dist.get_world_size()
    data = load_digits()
    images = torch.tensor(data.data / 16, dtype=torch.float32)
    labels = torch.tensor(data.target)
    torch.manual_seed(0)
    order = torch.randperm(len(labels))
    images, labels = images[order], labels[order]
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)))
    optimiser = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
    for _ in range(EPOCHS):
        for begin in range(0, TRAINING, BATCH):
            mine = slice(begin + rank, begin + BATCH, size)
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images[mine]), labels[mine]).backward()
            optimiser.step()
    right = (model(images[TRAINING:]).argmax(1) == labels[TRAINING:]).float().mean()
    if rank == 0:
        print(f"accuracy {float(right):.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
