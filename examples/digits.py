# SPDX-License-Identifier: Apache-2.0
"""Train a small network on handwritten digits, data-parallel: every rank a share of each batch.

::

    python examples/digits.py               # one rank
    collrun -n 4 examples/digits.py         # four: the same training, step by step

The gradients of the ranks' shares are summed by allreduce, one array at a time. Rank 0 also trains
alone on whole batches, and after every step the weights of all ranks must equal its own to 1e-9.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import numpy.typing as npt

import collectives as cl

Vector = npt.NDArray[np.float64]
Weights = list[Vector]

PIXELS, HIDDEN, CLASSES = 64, 128, 10
TRAINING = 1440  # of 1797 images; the rest tests
BATCH = 96
TOLERANCE = 1e-9
SHAPES = [(PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]


def load(comm: cl.Communicator) -> tuple[Vector, Vector]:
    """Read the images on rank 0 and give them to all: (1797, 64) in 0 ... 1, and labels (1797,)."""
    images, labels = np.empty((1797, PIXELS)), np.empty(1797)
    if comm.rank == 0:
        from sklearn.datasets import load_digits

        data = load_digits()
        order = np.random.default_rng(0).permutation(len(labels))
        images[:], labels[:] = data.data[order] / 16, data.target[order]
    cl.broadcast(images)
    cl.broadcast(labels)
    return images, labels


def initial() -> Weights:
    """Return the same weights on every rank: each layer's matrix and bias."""
    random = np.random.default_rng(1)
    return [
        random.normal(0, 1 / np.sqrt(shape[0]), shape) if len(shape) == 2 else np.zeros(shape)
        for shape in SHAPES
    ]


def forward(weights: Weights, images: Vector) -> tuple[Vector, Vector]:
    """Return the hidden layer (n, 128) and the probabilities of the classes (n, 10)."""
    first, first_bias, second, second_bias = weights
    hidden = np.tanh(images @ first + first_bias)
    scores = hidden @ second + second_bias
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def gradients(
    weights: Weights, images: Vector, labels: Vector, batch: int
) -> tuple[Weights, float]:
    """Return this share's part of the gradient of the batch's mean loss, and of the loss."""
    hidden, probabilities = forward(weights, images)
    rows, right = np.arange(len(labels)), labels.astype(int)
    loss = -np.log(probabilities[rows, right]).sum() / batch
    error = probabilities
    error[rows, right] -= 1
    error /= batch
    inner = (error @ weights[2].T) * (1 - hidden**2)
    return [images.T @ inner, inner.sum(axis=0), hidden.T @ error, error.sum(axis=0)], float(loss)


class Descent:
    """Gradient descent with momentum."""

    def __init__(self, rate: float = 0.2, momentum: float = 0.9) -> None:
        """Begin with the initial weights."""
        self.weights = initial()
        self._rate, self._momentum = rate, momentum
        self._speed: Weights = [np.zeros_like(weight) for weight in self.weights]

    def step(self, slopes: Weights) -> None:
        """Go one step down."""
        for weight, speed, slope in zip(self.weights, self._speed, slopes, strict=True):
            speed *= self._momentum
            speed -= self._rate * slope
            weight += speed


def accuracy(weights: Weights, images: Vector, labels: Vector) -> float:
    """Return the share of images that are recognised."""
    return float((forward(weights, images)[1].argmax(axis=1) == labels).mean())


def deviation(mine: Weights, alone: Descent | None) -> float:
    """Return the largest difference of any weight on any rank from rank 0's training alone."""
    reference = np.concatenate([w.ravel() for w in (alone.weights if alone else mine)])
    cl.broadcast(reference)
    flat = np.concatenate([weight.ravel() for weight in mine])
    largest = np.array([np.abs(flat - reference).max()])
    cl.allreduce(largest, op="max")
    return float(largest[0])


def train(comm: cl.Communicator, epochs: int) -> None:
    """Train, check every step, and say how it goes on rank 0."""
    images, labels = load(comm)
    together, alone = Descent(), Descent() if comm.rank == 0 else None
    order, worst, steps = np.random.default_rng(2), np.float64(0), 0
    begin = time.perf_counter()
    for epoch in range(1, epochs + 1):
        total, shuffled = np.zeros(1), order.permutation(TRAINING)
        for first in range(0, TRAINING, BATCH):
            batch = shuffled[first : first + BATCH]
            share = batch[comm.rank :: comm.size]
            slopes, loss = gradients(together.weights, images[share], labels[share], len(batch))
            for slope in slopes:
                cl.allreduce(slope)
            together.step(slopes)
            if alone is not None:
                alone.step(gradients(alone.weights, images[batch], labels[batch], len(batch))[0])
            worst = np.maximum(worst, deviation(together.weights, alone))  # keeps NaN
            steps += 1
            if not worst <= TOLERANCE:
                raise SystemExit(f"step {steps}: weights differ from one rank's by {worst:.1e}")
            total += loss * len(batch) / TRAINING
        cl.allreduce(total)
        if comm.rank == 0 and (epoch % max(epochs // 5, 1) == 0 or epoch == epochs):
            recognised = accuracy(together.weights, images[TRAINING:], labels[TRAINING:])
            print(f"epoch {epoch:3}  loss {total[0]:.4f}  accuracy {recognised:.1%}", flush=True)
    if comm.rank == 0:
        print(
            f"{steps} steps, ranks: {comm.size}, in {time.perf_counter() - begin:.1f} s; after "
            f"every step all weights equalled one rank's to {worst:.1e} (allowed {TOLERANCE:.0e})"
        )


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description="Handwritten digits, data-parallel.")
    parser.add_argument("--epochs", type=int, default=15)
    epochs = parser.parse_args().epochs
    if epochs < 1:
        sys.exit("digits: --epochs must be 1 or more")
    with cl.init() as comm:
        train(comm, epochs)


if __name__ == "__main__":
    main()
