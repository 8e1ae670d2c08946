# SPDX-License-Identifier: Apache-2.0
"""The text that these examples learn from: some of the Python standard library's own source."""

from __future__ import annotations

import os
from pathlib import Path

import torch

FILES = 12
CHARACTERS = 128  # what is not ASCII is left out


def characters() -> torch.Tensor:
    """Return the characters of some modules, as numbers below 128."""
    files = sorted(Path(os.__file__).parent.glob("*.py"))[:FILES]
    text = "".join(path.read_text("utf-8") for path in files)
    return torch.tensor([ord(c) for c in text if ord(c) < CHARACTERS])


def batch(
    text: torch.Tensor, size: int, length: int, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return lines of characters, and for each place the one that comes next."""
    begins = torch.randint(len(text) - length - 1, (size,), generator=random).tolist()
    lines = torch.stack([text[begin : begin + length + 1] for begin in begins])
    return lines[:, :-1], lines[:, 1:]
