# SPDX-License-Identifier: Apache-2.0
"""Train the network of digits.py twice: with whole gradients, and with 1 % of each.

::

    collrun -n 4 python -m examples.digits_topk

Each rank sends the hundredth of its gradient that is largest, and keeps the rest for the next step
(error feedback). Both trainings end about equally well.
"""

from __future__ import annotations

import argparse

import numpy as np

import collectives as cl
from examples.digits import BATCH, SHAPES, TRAINING, Descent, accuracy, gradients, load

RATE = 0.1


def train(comm: cl.Communicator, epochs: int, share: float, *, of_sum: bool = False) -> float:
    """Return the accuracy after so many epochs; `share` of each gradient travels, 1: all."""
    images, labels = load(comm)
    # Gradients that come late go astray with a momentum of the optimiser: TopK has one of its own.
    momentum = 0.9 if share == 1 else 0.0
    descent, order = Descent(RATE, momentum), np.random.default_rng(2)
    chosen = [cl.TopK(share, momentum=0.9, of_sum=of_sum) for _ in SHAPES]
    for _ in range(epochs):
        shuffled = order.permutation(TRAINING)
        for first in range(0, TRAINING, BATCH):
            batch = shuffled[first : first + BATCH]
            mine = batch[comm.rank :: comm.size]
            slopes, _ = gradients(descent.weights, images[mine], labels[mine], len(batch))
            for slope, topk in zip(slopes, chosen, strict=True):
                if share == 1:
                    comm.allreduce(slope)
                else:
                    comm.allreduce(slope, compress=topk)
            descent.step(slopes)
    return accuracy(descent.weights, images[TRAINING:], labels[TRAINING:])


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description="Digits with the largest of each gradient only.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--of-sum", action="store_true", help="of the sum, too, only that share")
    options = parser.parse_args()
    with cl.init() as comm:
        whole = train(comm, options.epochs, 1)
        some = train(comm, options.epochs, options.share, of_sum=options.of_sum)
        if comm.rank == 0:
            print(
                f"accuracy with whole gradients {whole:.2%}, with {options.share:.1%} of each "
                f"{some:.2%}: {100 * (some - whole):+.2f} points"
            )


if __name__ == "__main__":
    main()
