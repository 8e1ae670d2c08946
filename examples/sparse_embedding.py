# SPDX-License-Identifier: Apache-2.0
"""Train word vectors (skip-gram, negative sampling) whose gradients are sums of sparse vectors.

::

    collrun -n 4 examples/sparse_embedding.py

The text is the Python standard library's own source. Each rank takes its share of every batch of
neighbouring words; a batch meets few of the words, so few rows of the two matrices have a gradient.
All ranks get the sum by a sparse allreduce, and check it against the dense one.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

import collectives as cl

Matrix = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

FILES, VOCABULARY, DIMENSIONS = 40, 8192, 16
STEPS, BATCH, WINDOW, NEGATIVES, RATE = 15, 256, 2, 3, 0.1


def text() -> Words:
    """Return the words of some modules, each as its place among the most frequent ones."""
    files = sorted(Path(os.__file__).parent.glob("*.py"))[:FILES]
    found = [w for f in files for w in re.findall(r"[a-z]{2,}", f.read_text("utf-8").lower())]
    common = {word: i for i, (word, _) in enumerate(Counter(found).most_common(VOCABULARY))}
    return np.array([common[word] for word in found if word in common])


def gradient(tables: Matrix, words: Words, random: np.random.Generator) -> tuple[cl.Sparse, float]:
    """Return the gradient of one rank's share of a batch, and its loss.

    ``tables``: (2, VOCABULARY, DIMENSIONS), of words and of their contexts.
    """
    places = random.integers(WINDOW, len(words) - WINDOW, BATCH)
    context = words[places + random.choice([-2, -1, 1, 2], BATCH)]
    others = words[random.integers(0, len(words), (BATCH, NEGATIVES))]
    center, pairs = words[places], np.column_stack([context, others])
    w, c = tables[0, center], tables[1, pairs]
    chance = 1 / (1 + np.exp(-np.einsum("bd,bnd->bn", w, c)))
    label = np.eye(1, 1 + NEGATIVES)
    slope = (chance - label) / BATCH
    of_centers = np.einsum("bn,bnd->bd", slope, c)
    of_pairs = slope[:, :, None] * w[:, None]
    rows = np.concatenate([center, VOCABULARY + pairs.reshape(-1)])
    values = np.concatenate([of_centers, of_pairs.reshape(-1, DIMENSIONS)])
    # Rows that come several times add up.
    indices = rows[:, None] * DIMENSIONS + np.arange(DIMENSIONS)
    loss = -np.log(np.abs(1 - label - chance)).sum(1).mean()
    return cl.Sparse(indices.reshape(-1), values.reshape(-1), tables.size), float(loss)


def main() -> None:
    """Train, and compare with the dense sum."""
    comm = cl.init()
    words, random = text(), np.random.default_rng(comm.rank)
    tables = np.random.default_rng(1).normal(0, 0.3, (2, VOCABULARY, DIMENSIONS))
    losses, sent, apart = [], 0, 0.0
    for _ in range(STEPS):
        share, loss = gradient(tables, words, random)
        total = comm.allreduce(share, op="avg", output="sparse")
        last = comm.last
        assert last is not None
        sent += last.nbytes
        whole = comm.allreduce(share.dense(), op="avg")
        apart = max(apart, float(np.abs(total.dense() - whole).max()))
        tables.reshape(-1)[total.indices] -= RATE * BATCH * total.values
        losses.append(float(comm.allreduce(np.array([loss]), op="avg")[0]))
    assert apart < 1e-12, apart
    if comm.rank == 0:
        dense = 2 * (comm.size - 1) / comm.size * tables.nbytes
        print(f"{len(words)} words; a step has {total.density:.1%} of the gradient")
        print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")
        print("all sums are the dense ones, but for rounding")
        if comm.size > 1:
            print(f"a rank sent {sent / STEPS:.0f} bytes a step, dense it is {dense:.0f}")


if __name__ == "__main__":
    main()
