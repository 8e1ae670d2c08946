# SPDX-License-Identifier: Apache-2.0
"""Where real gradients have elements: of word vectors, and the largest of a network's.

text: skip-gram with negative sampling over the Python standard library's own source, whose words
are frequent by a power law; an element is there where its word is in the rank's share of a batch.
digits: the hundredth of the gradient of examples/digits.py that is largest, after some training.
The driver finds them and keeps them in build/, from where ranks of all libraries read them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

REAL = ("text", "digits")
FOLDER = Path(__file__).resolve().parents[2] / "build" / "sparse"
VOCABULARY, DIMENSIONS = 1 << 15, 64
BATCH, NEGATIVES = 256, 5  # of a rank
EPOCHS, SHARE = 3, 0.01


def make(support: str, ranks: int) -> tuple[int, int]:
    """Find and keep the supports of so many ranks; return the length and the first one's elements.

    Raises:
        ImportError: the digits are scikit-learn's.
    """
    length, parts = {"text": _text, "digits": _digits}[support](ranks)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for rank, part in enumerate(parts):
        np.save(_file(support, ranks, rank), part.astype(np.int32))
    return length, parts[0].size


def support_of(support: str, ranks: int, rank: int) -> Array:
    """Return the ascending indices of a rank."""
    return np.asarray(np.load(_file(support, ranks, rank)))


def _file(support: str, ranks: int, rank: int) -> Path:
    return FOLDER / f"{support}-{ranks}-{rank}.npy"


def _text(ranks: int) -> tuple[int, list[Array]]:
    files = sorted(Path(os.__file__).parent.glob("*.py"))
    found = [w for f in files for w in re.findall(r"[a-z]+", f.read_text("utf-8").lower())]
    common = {word: i for i, (word, _) in enumerate(Counter(found).most_common(VOCABULARY))}
    words = np.array([common[word] for word in found if word in common])
    parts = []
    for rank in range(ranks):
        random = np.random.default_rng(rank)
        places = random.integers(2, words.size - 2, BATCH)
        near = words[places + random.choice([-2, -1, 1, 2], BATCH)]
        others = words[random.integers(0, words.size, BATCH * NEGATIVES)]
        rows = np.unique(np.concatenate([words[places], VOCABULARY + near, VOCABULARY + others]))
        parts.append((rows[:, None] * DIMENSIONS + np.arange(DIMENSIONS)).reshape(-1))
    return 2 * VOCABULARY * DIMENSIONS, parts


def _digits(ranks: int) -> tuple[int, list[Array]]:
    from sklearn.datasets import load_digits

    from examples.digits import BATCH as IMAGES
    from examples.digits import TRAINING, Descent, gradients

    data = load_digits()
    images, labels = data.data / 16, data.target
    descent, order = Descent(), np.random.default_rng(2)
    for _ in range(EPOCHS):
        shuffled = order.permutation(TRAINING)
        for first in range(0, TRAINING, IMAGES):
            batch = shuffled[first : first + IMAGES]
            descent.step(gradients(descent.weights, images[batch], labels[batch], len(batch))[0])
    parts, batch = [], order.permutation(TRAINING)[:IMAGES]
    for rank in range(ranks):
        mine = batch[rank::ranks]
        slopes, _ = gradients(descent.weights, images[mine], labels[mine], IMAGES)
        flat = np.concatenate([slope.reshape(-1) for slope in slopes])
        parts.append(np.sort(np.argsort(-np.abs(flat), kind="stable")[: round(SHARE * flat.size)]))
    return flat.size, parts
