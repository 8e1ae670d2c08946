# SPDX-License-Identifier: Apache-2.0
"""What others do with the same vectors on the same stream, where they are installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from bench.gpu.arrays import GpuArray
from bench.gpu.operands import Operands
from bench.gpu.rounds import Enqueue, captured
from bench.gpu.yardsticks import GpuError

CUPY, TORCH = "CuPy ElementwiseKernel", "torch add and copy"


class MissingError(Exception):
    """A peer is not there; the text says which, and why."""


def peer(name: str, operands: Operands) -> Enqueue:
    """Return a way of CUPY or TORCH; raise MissingError."""
    module = "cupy" if name == CUPY else "torch"
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise MissingError(f"{name}: {error}") from None
    return _elementwise(found, operands) if name == CUPY else _add_and_copy(found, operands)


def _elementwise(cupy: ModuleType, operands: Operands) -> Enqueue:
    """One kernel that reads all inputs and writes all outputs: the same bytes as the fused plan."""
    ranks = range(operands.ranks)
    body = "float sum = " + " + ".join(f"x{r}" for r in ranks) + "; "
    body += "; ".join(f"y{r} = sum" for r in ranks)
    kernel = cupy.ElementwiseKernel(
        ", ".join(f"float32 x{r}" for r in ranks),
        ", ".join(f"float32 y{r}" for r in ranks),
        body,
        f"sum_of_{operands.ranks}",
    )
    arrays = [cupy.asarray(array) for array in (*operands.inputs, *operands.outputs)]
    stream = cupy.cuda.ExternalStream(operands.yard.stream)

    def enqueue() -> None:
        with stream:
            kernel(*arrays)

    return enqueue


def _add_and_copy(torch: ModuleType, operands: Operands) -> Enqueue:
    """Add into the first output, input after input, then copy it to the others."""
    if not torch.cuda.is_available():
        raise MissingError(f"{TORCH}: this torch sees no GPU")
    device = f"cuda:{operands.yard.device}"
    inputs = [torch.as_tensor(x, device=device) for x in operands.inputs]
    first, *others = [torch.as_tensor(out, device=device) for out in operands.outputs]
    stream = torch.cuda.ExternalStream(operands.yard.stream)

    def enqueue() -> None:
        with torch.cuda.stream(stream):
            torch.add(inputs[0], inputs[1], out=first)
            for x in inputs[2:]:
                first.add_(x)
            for out in others:
                out.copy_(first)

    return enqueue


def largest(x: GpuArray, k: int) -> Enqueue:
    """Return torch's selection of the ``k`` largest magnitudes; raise MissingError.

    It takes memory while it runs, which a capture may forbid: that is tried here.
    """
    name = "torch.topk of abs"
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingError(f"{name}: {error}") from None
    if not torch.cuda.is_available():
        raise MissingError(f"{name}: this torch sees no GPU")
    yard = x.memory.yard
    given = torch.as_tensor(x, device=f"cuda:{yard.device}")
    magnitude = torch.empty_like(given)
    stream = torch.cuda.ExternalStream(yard.stream)

    def enqueue() -> None:
        with torch.cuda.stream(stream):
            torch.abs(given, out=magnitude)
            torch.topk(magnitude, k, sorted=False)

    try:
        enqueue()
        captured(yard, enqueue, 1).close()
    except (GpuError, RuntimeError) as error:
        raise MissingError(f"{name}: it cannot be captured ({error})") from None
    return enqueue
