# SPDX-License-Identifier: Apache-2.0
"""A small transformer that learns Python's source, its parameters shared out by fully_shard.

::

    torchrun --nproc-per-node 2 examples/with_torch/fsdp_text.py
"""

from __future__ import annotations

import torch
from text import CHARACTERS, batch, characters
from torch import distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import collectives.torch

WIDTH, HEADS, LAYERS, LENGTH = 64, 4, 2, 48
STEPS, BATCH = 40, 16


class Transformer(nn.Module):
    """Blocks of attention over characters and their places."""

    def __init__(self) -> None:
        """Make the same parameters on every rank."""
        super().__init__()
        torch.manual_seed(0)
        self.characters = nn.Embedding(CHARACTERS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = [
            nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True)
            for _ in range(LAYERS)
        ]
        self.layers = nn.ModuleList(layer)
        self.last = nn.Linear(WIDTH, CHARACTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the next character at each place."""
        length = x.shape[1]
        hidden = self.characters(x) + self.places(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        scores: torch.Tensor = self.last(hidden)
        return scores


def main() -> None:
    """Train, and tell the loss before and after."""
    dist.init_process_group(collectives.torch.NAME)
    model = Transformer()
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    source, random = characters(), torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(STEPS):
        x, y = batch(source, BATCH, LENGTH, random)
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimiser.step()
        dist.all_reduce(mean := loss.detach().clone(), dist.ReduceOp.AVG)
        losses.append(float(mean))
    if dist.get_rank() == 0:
        print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
