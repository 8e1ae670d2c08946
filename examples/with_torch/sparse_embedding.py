# SPDX-License-Identifier: Apache-2.0
"""Gradients of an embedding that are sparse, gathered over several batches before they are summed.

::

    torchrun --nproc-per-node 2 examples/with_torch/sparse_embedding.py

The rows that a batch does not meet neither travel nor are added; the sum is compared with a dense
one.
"""

from __future__ import annotations

import torch
from text import CHARACTERS, batch, characters
from torch import distributed as dist
from torch import nn

import collectives.torch

PAIRS, WIDTH, BATCHES, STEPS = CHARACTERS * CHARACTERS, 16, 4, 10


def main() -> None:
    """Train, and tell the loss and how few rows have travelled."""
    dist.init_process_group(collectives.torch.NAME)
    size = dist.get_world_size()
    torch.manual_seed(0)
    table, last = nn.Embedding(PAIRS, WIDTH, sparse=True), nn.Linear(WIDTH, CHARACTERS)
    rows = torch.optim.SGD(table.parameters(), 1.0)
    rest = torch.optim.SGD(last.parameters(), 0.5)
    source, random = characters(), torch.Generator().manual_seed(dist.get_rank())
    losses, met = [], 0
    for _ in range(STEPS):
        rows.zero_grad()
        rest.zero_grad()
        for _ in range(BATCHES):  # gradients of all batches add up, as sparse tensors
            x, y = batch(source, 8, 33, random)
            pairs = x[:, :-1] * CHARACTERS + x[:, 1:]
            loss = nn.functional.cross_entropy(last(table(pairs)).flatten(0, 1), y[:, 1:].flatten())
            (loss / BATCHES / size).backward()
        losses.append(float(loss))
        gradient = table.weight.grad.coalesce()
        dense = gradient.to_dense()
        dist.all_reduce(gradient)
        dist.all_reduce(dense)
        if not torch.allclose(gradient.to_dense(), dense, atol=1e-6):
            raise SystemExit("the sparse sum differs from the dense one")
        table.weight.grad, met = gradient, gradient.coalesce().indices().numel()
        for parameter in last.parameters():
            dist.all_reduce(parameter.grad)
        rows.step()
        rest.step()
    if dist.get_rank() == 0:
        print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}, {met} of {PAIRS} rows in the last step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
