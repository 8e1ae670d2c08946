# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors, as torch hands them in, and the one tensor that travels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from collectives.errors import InvalidArgumentError

# What the communicator does not add up, and so knows nothing of; older torch has not all of them.
_NAMES = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
_ONLY_BYTES = {getattr(torch, name) for name in _NAMES if hasattr(torch, name)}


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values of a tensor, in its memory: collectives are no part of a gradient.

    What a functional collective has returned is waited for.
    """
    if type(tensor) is not torch.Tensor:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"collectives.torch: {type(tensor).__name__} is no tensor: pass one")
        wait = getattr(tensor, "trigger_wait", None)  # of AsyncCollectiveTensor
        tensor = tensor if wait is None else wait()
    return tensor.detach() if tensor.requires_grad else tensor


def dense(call: str, tensors: Sequence[Any]) -> None:
    """Refuse a tensor, also one of a list, whose elements do not lie in memory as an array."""
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            dense(call, tensor)
        elif tensor.layout is not torch.strided:
            raise InvalidArgumentError(
                f"{call}: a {tensor.layout} tensor was given: pass its to_dense()"
            )
        elif tensor.is_nested:
            raise InvalidArgumentError(
                f"{call}: a nested tensor was given: pass the tensors of its unbind()"
            )
        elif (tensor.is_cpu or tensor.is_cuda) and _lacks_memory(tensor):
            raise InvalidArgumentError(
                f"{call}: a tensor without memory of its own was given, of {tensor.shape}"
            )


def _lacks_memory(tensor: torch.Tensor) -> bool:
    """Whether the storage is freed or cut, as of FSDP's parameters between steps."""
    if not tensor.numel():
        return False
    if not tensor.data_ptr():
        return True
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    end = tensor.storage_offset() + 1 + sum((n - 1) * step for n, step in steps)
    return tensor.untyped_storage().nbytes() < end * tensor.element_size()


def apart(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that is read only, with memory for each element: of ``expand`` a copy."""
    is_array = tensor.layout is torch.strided  # others are refused elsewhere
    if is_array and not tensor.is_contiguous() and 0 in tensor.stride():
        return tensor.contiguous()
    return tensor


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that only travels: as bytes, where its 8-bit floats are of no known kind."""
    return tensor.view(torch.uint8) if tensor.dtype in _ONLY_BYTES else tensor


def one(tensors: Sequence[torch.Tensor] | torch.Tensor) -> torch.Tensor:
    """Return the tensor of a list of one: a rank has one device."""
    if isinstance(tensors, torch.Tensor) or not isinstance(tensors, Sequence):
        return plain(tensors)
    if len(tensors) != 1:
        raise InvalidArgumentError(
            f"collectives.torch: a rank hands in one tensor, not {len(tensors)}"
        )
    return plain(tensors[0])


def tensors_of(lists: Sequence[Any]) -> list[torch.Tensor]:
    """Return the list of a list of one list, or of one list."""
    if len(lists) == 1 and not isinstance(lists[0], torch.Tensor):
        lists = lists[0]
    return [plain(tensor) for tensor in lists]


def landing(out: torch.Tensor) -> torch.Tensor:
    """Return the memory of a tensor as a vector, or new memory where it is not contiguous."""
    return out.view(-1) if out.is_contiguous() else out.new_empty(out.numel())


def landed(vector: torch.Tensor, out: torch.Tensor) -> None:
    """Put what has come to its :func:`landing` where it belongs."""
    if not out.is_contiguous():
        out.copy_(vector.view(out.shape))


def in_place(call: Callable[[torch.Tensor], Any], x: torch.Tensor) -> None:
    """Make a call that reads and writes a tensor: on a GPU, where it is strided, by a copy."""
    if not x.is_cuda or x.is_contiguous():
        call(x)
        return
    room = x.contiguous()
    call(room)
    x.copy_(room)


def check_parts(name: str, parts: Sequence[Any], ranks: int) -> None:
    """Refuse a list that has not a tensor for each rank."""
    if len(parts) != ranks:
        raise InvalidArgumentError(f"{name}: a list of {len(parts)} tensors for {ranks} ranks")


def pieces(parts: Sequence[torch.Tensor], *others: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
    """Return parts one after another, and how many elements each has.

    They stay where they lie, if that is one after another, and if ``others``, which the same call
    writes or reads, lie elsewhere; else they are copied.
    """
    sizes = [part.numel() for part in parts]
    whole = _side_by_side(parts, others)
    return torch.cat([part.reshape(-1) for part in parts]) if whole is None else whole, sizes


def room_for(parts: Sequence[torch.Tensor], *others: torch.Tensor) -> torch.Tensor:
    """Return memory for all elements of some tensors: their own, as in :func:`pieces`, or new."""
    whole = _side_by_side(parts, others)
    return parts[0].new_empty(sum(part.numel() for part in parts)) if whole is None else whole


def spread(whole: torch.Tensor, parts: Sequence[torch.Tensor]) -> None:
    """Copy elements that lie one after another into tensors, unless they lie there."""
    begin = 0
    for part in parts:
        if part.data_ptr() != whole.data_ptr() + begin * whole.element_size():
            part.copy_(whole[begin : begin + part.numel()].view(part.shape))
        begin += part.numel()


def _side_by_side(
    parts: Sequence[torch.Tensor], others: Sequence[torch.Tensor]
) -> torch.Tensor | None:
    """Return the vector that parts are pieces of, in order and without gaps, as of ``chunk``."""
    first = parts[0]
    storage, offset = first.untyped_storage().data_ptr(), first.storage_offset()
    if any(other.untyped_storage().data_ptr() == storage for other in others):
        return None
    for part in parts:
        if (
            not part.is_contiguous()
            or part.dtype != first.dtype
            or part.is_conj()
            or part.is_neg()
            or part.storage_offset() != offset
            or part.untyped_storage().data_ptr() != storage
        ):
            return None
        offset += part.numel()
    return first.as_strided((offset - first.storage_offset(),), (1,))
