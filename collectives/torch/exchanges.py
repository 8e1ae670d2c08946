# SPDX-License-Identifier: Apache-2.0
"""Collectives of a torch group in which ranks get different tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from collectives.errors import InvalidArgumentError, MismatchError
from collectives.torch.options import root_of
from collectives.torch.tensors import (
    check_parts,
    landed,
    landing,
    one,
    pieces,
    plain,
    room_for,
    spread,
    tensors_of,
)
from collectives.torch.wording import Words, check_sizes, worded

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.torch.work import Work


_SCATTER = Words("scatter", "tensor", "scatter_list")
_LISTS = Words(
    "all_to_all", "output_tensor_list", "input_tensor_list",
    "output_tensor_list", "input_tensor_list",
)  # fmt: skip
_SINGLE = Words(
    "all_to_all_single", "output", "input",
    "elements of output_split_sizes", "elements of input_split_sizes",
)  # fmt: skip


class Exchanges:
    """gather, scatter, all_to_all."""

    communicator: Communicator
    _start: Callable[..., Work]
    _limits: Callable[..., dict[str, Any]]

    def gather(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[torch.Tensor] | torch.Tensor,
        opts: Any = None,
        root: int | None = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Give the root the tensors of all, which may differ in size."""
        opts, to = root_of(opts, root)
        x, parts = one(inputs), tensors_of(outputs)
        limits, comm = self._limits(opts, timeout), self.communicator

        def job() -> None:
            room = [part.numel() for part in parts] if comm.rank == to else None
            sizes = _agreed_sizes(comm, x.numel(), room, to, limits)
            whole = comm.gatherv(x.reshape(-1), sizes, root=to, **limits)
            if room is not None:
                spread(whole, parts)

        return self._start("gather", job, [parts], opts, [x])

    def scatter(
        self,
        outputs: Sequence[torch.Tensor] | torch.Tensor,
        inputs: Sequence[Any],
        opts: Any = None,
        root: int | None = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Give each rank its tensor of the root's list."""
        opts, of = root_of(opts, root)
        out, parts = one(outputs), tensors_of(inputs)
        limits, comm = self._limits(opts, timeout), self.communicator

        def job() -> None:
            whole = None
            if comm.rank == of:
                check_parts("scatter", parts, comm.size)
                sizes = [part.numel() for part in parts]
                check_sizes("scatter", _SCATTER.x, sizes, _SCATTER.out, out.numel())
                whole, _ = pieces(parts, out)
            room = landing(out)
            worded(_SCATTER, comm.scatter, whole, room, root=of, **limits)
            landed(room, out)

        return self._start("scatter", job, [out], opts, parts)

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """Give each rank its tensor of every rank's list; pieces may differ in size."""
        comm, limits = self.communicator, self._limits(opts)
        outs, xs = tensors_of(outputs), tensors_of(inputs)

        def job() -> None:
            check_parts("all_to_all", xs, comm.size)
            check_parts("all_to_all", outs, comm.size)
            whole, sizes = pieces(xs, *outs)
            room = room_for(outs, *xs)
            gets = [out.numel() for out in outs]
            worded(_LISTS, comm.alltoallv, whole, sizes, gets, room, **limits)
            spread(room, outs)

        return self._start("all_to_all", job, outs, opts, xs)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Give each rank its rows of every rank's tensor; no sizes: equal parts."""
        comm, limits = self.communicator, self._limits(opts, timeout)
        gives = _elements(input, input_split_sizes, comm.size)
        gets = _elements(output, output_split_sizes, comm.size)

        def job() -> None:
            x, room = plain(input).reshape(-1), landing(plain(output))
            if not output_split_sizes and not input_split_sizes:
                worded(_SINGLE, comm.alltoall, x, room, **limits)
            else:
                worded(_SINGLE, comm.alltoallv, x, gives, gets, room, **limits)
            landed(room, plain(output))

        return self._start("all_to_all", job, [output], opts, [input])

    alltoall_base = all_to_all_single


def _elements(x: torch.Tensor, rows: Sequence[int], ranks: int) -> list[int]:
    """Return the elements of each part of a tensor that is split along its first axis."""
    count = x.shape[0] if x.dim() else 1
    sizes = list(rows) or [count // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != count:
        raise InvalidArgumentError(
            f"all_to_all_single: the parts {sizes} are no split of {count} rows for {ranks} ranks"
        )
    each = x.numel() // count if count else 0
    return [size * each for size in sizes]


def _agreed_sizes(
    comm: Communicator, elements: int, room: list[int] | None, root: int, limits: dict[str, Any]
) -> list[int]:
    """Return what each rank gives to a gather; all find out where the root's list has other room.

    ``room``: of the root's list, None on the others.
    """
    if room is not None and len(room) != comm.size:
        wanted = np.full(comm.size, -1)  # the others need not wait for a call that is refused
    else:
        wanted = np.zeros(comm.size, np.int64) if room is None else np.array(room, np.int64)
    comm.broadcast(wanted, root=root, **limits)
    if room is not None:
        check_parts("gather", room, comm.size)
    if wanted[0] < 0:
        raise MismatchError(
            f"gather: the gather_list of rank {root} has not one tensor for each of {comm.size} "
            "ranks",
            root,
        )
    gives = comm.allgather(np.array([elements]), **limits).tolist()
    for rank, (n, place) in enumerate(zip(gives, wanted.tolist(), strict=True)):
        if n != place:
            raise MismatchError(
                f"gather: rank {rank} gives {n} elements, where gather_list[{rank}] of rank {root} "
                f"has room for {place}",
                rank,
            )
    return list(gives)
