# SPDX-License-Identifier: Apache-2.0
"""Collectives of a torch group in which ranks get different tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from collectives.errors import InvalidArgumentError
from collectives.torch.options import limits_of, root_of
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

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.torch.work import Work


class Exchanges:
    """gather, scatter, all_to_all."""

    communicator: Communicator
    _start: Callable[..., Work]

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
        limits, comm = limits_of(opts, timeout), self.communicator

        def job() -> None:
            if comm.rank != to:
                comm.gatherv(x.reshape(-1), root=to, **limits)
                return
            check_parts("gather", parts, comm.size)
            whole = comm.gatherv(x.reshape(-1), root=to, **limits)
            _check_sizes("gather", whole, parts)
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
        limits, comm = limits_of(opts, timeout), self.communicator

        def job() -> None:
            whole = None
            if comm.rank == of:
                check_parts("scatter", parts, comm.size)
                whole, _ = pieces(parts, out)
            room = landing(out)
            comm.scatter(whole, room, root=of, **limits)
            landed(room, out)

        return self._start("scatter", job, [out], opts, parts)

    def alltoall(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """Give each rank its tensor of every rank's list; pieces may differ in size."""
        comm, limits = self.communicator, limits_of(opts)
        outs, xs = tensors_of(outputs), tensors_of(inputs)

        def job() -> None:
            check_parts("all_to_all", xs, comm.size)
            check_parts("all_to_all", outs, comm.size)
            whole, sizes = pieces(xs, *outs)
            room = room_for(outs, *xs)
            comm.alltoallv(whole, sizes, [out.numel() for out in outs], room, **limits)
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
        comm, limits = self.communicator, limits_of(opts, timeout)
        gives = _elements(input, input_split_sizes, comm.size)
        gets = _elements(output, output_split_sizes, comm.size)

        def job() -> None:
            x, room = plain(input).reshape(-1), landing(plain(output))
            if not output_split_sizes and not input_split_sizes:
                comm.alltoall(x, room, **limits)
            else:
                comm.alltoallv(x, gives, gets, room, **limits)
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


def _check_sizes(name: str, whole: torch.Tensor, parts: Sequence[torch.Tensor]) -> None:
    room = sum(part.numel() for part in parts)
    if whole.numel() != room:
        raise InvalidArgumentError(
            f"{name}: {whole.numel()} elements have come, where the list has room for {room}"
        )
