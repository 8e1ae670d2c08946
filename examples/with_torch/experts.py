# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts, one on each rank: tokens go to theirs by alltoall of unequal parts.

::

    torchrun --nproc-per-node 2 examples/with_torch/experts.py

Shazeer et al., "Outrageously Large Neural Networks", ICLR'17. The result is compared with that of
all experts on one rank.
"""

from __future__ import annotations

import torch
from torch import distributed as dist
from torch import nn

import collectives.torch

TOKENS, WIDTH = 64, 16


def exchanged(x: torch.Tensor, gives: list[int], gets: list[int]) -> torch.Tensor:
    """Return the rows that others have for this rank, in the order of ranks."""
    out = x.new_empty((sum(gets), x.shape[1]))
    dist.all_to_all_single(out, x, gets, gives)
    return out


def mixed(tokens: torch.Tensor, expert: nn.Module, gate: nn.Module) -> torch.Tensor:
    """Send each token to the expert that the gate says, and bring it back to its place."""
    size = dist.get_world_size()
    chosen = gate(tokens).argmax(1)
    order = chosen.argsort(stable=True)
    gives = torch.bincount(chosen, minlength=size)
    gets = torch.empty_like(gives)
    dist.all_to_all_single(gets, gives)
    came = exchanged(tokens[order], gives.tolist(), gets.tolist())
    back = exchanged(expert(came), gets.tolist(), gives.tolist())
    result = torch.empty_like(back)
    result[order] = back
    return result


def main() -> None:
    """Mix, and compare with all experts on one rank."""
    dist.init_process_group(collectives.torch.NAME)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    gate, experts = nn.Linear(WIDTH, size), [nn.Linear(WIDTH, WIDTH) for _ in range(size)]
    tokens = torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(rank))
    with torch.no_grad():
        found = mixed(tokens, experts[rank], gate)
        chosen = gate(tokens).argmax(1)
        rows = zip(tokens, chosen.tolist(), strict=True)
        aim = torch.stack([experts[expert](token) for token, expert in rows])
    if not torch.allclose(found, aim, atol=1e-5):
        raise SystemExit(f"rank {rank}: tokens came back to the wrong places")
    if rank == 0:
        print(f"{TOKENS * size} tokens, {size} experts: equal to all experts on one rank")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
