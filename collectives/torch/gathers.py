# SPDX-License-Identifier: Apache-2.0
"""Collectives of a torch group that move tensors from one to all, or from all to all alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from collectives.torch.options import root_of
from collectives.torch.tensors import (
    apart,
    check_parts,
    in_place,
    landed,
    landing,
    one,
    plain,
    room_for,
    spread,
    tensors_of,
)
from collectives.torch.wording import Words, check_size, worded

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.torch.work import Work


_SINGLE = Words("all_gather_into_tensor", "output_tensor", "input_tensor")
_LIST = Words("all_gather", "tensor_list", "tensor", "the sizes of tensor_list")


class Gathers:
    """broadcast, allgather and its variants."""

    communicator: Communicator
    _start: Callable[..., Work]
    _limits: Callable[..., dict[str, Any]]

    def broadcast(
        self,
        tensors: Sequence[torch.Tensor] | torch.Tensor,
        opts: Any = None,
        root: int | None = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Give all the tensor of the root."""
        opts, of = root_of(opts, root)
        x, limits, comm = one(tensors), self._limits(opts, timeout), self.communicator
        if comm.rank == of:
            x = apart(x)

        def job() -> None:
            in_place(lambda y: comm.broadcast(y, root=of, **limits), x)

        return self._start("broadcast", job, [x], opts)

    def allgather(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[torch.Tensor] | torch.Tensor,
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Give all the tensors of all, which may differ in size."""
        x, parts = one(inputs), tensors_of(outputs)
        limits, comm = self._limits(opts, timeout), self.communicator
        return self._start(
            "all_gather", lambda: _gather_all(comm, x, parts, limits), [parts], opts, [x]
        )

    def allgather_coalesced(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        opts: Any = None,
    ) -> Work:
        """Give all several tensors of all: a list of a tensor for each rank, or for each tensor."""
        comm, xs, limits = self.communicator, tensors_of(inputs), self._limits(opts)
        lists = [tensors_of(some) for some in outputs]
        # Torch hands in a list for each rank; for each of its tensors all ranks' are wanted.
        by_tensor = [list(column) for column in zip(*lists, strict=True)]

        def job() -> None:
            for x, parts in zip(xs, by_tensor, strict=True):
                _gather_all(comm, x, parts, limits)

        return self._start("all_gather_coalesced", job, lists, opts, xs)

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        """Give all one tensor of the tensors of all."""
        limits, comm = self._limits(opts), self.communicator
        return self._start(
            "all_gather",
            lambda: _gather_single(comm, plain(input), plain(output), limits),
            [output],
            opts,
            [input],
        )

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """Give all several such tensors."""
        limits, comm = self._limits(opts), self.communicator
        pairs = list(zip(map(plain, inputs), map(plain, outputs), strict=True))

        def job() -> None:
            for x, out in pairs:
                _gather_single(comm, x, out, limits)

        return self._start("all_gather_coalesced", job, list(outputs), opts, inputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced


def _gather_single(
    comm: Communicator, x: torch.Tensor, out: torch.Tensor, limits: dict[str, Any]
) -> None:
    room = landing(out)
    worded(_SINGLE, comm.allgather, x.reshape(-1), room, **limits)
    landed(room, out)


def _gather_all(
    comm: Communicator, x: torch.Tensor, parts: list[torch.Tensor], limits: dict[str, Any]
) -> None:
    check_parts("all_gather", parts, comm.size)
    sizes, whole = [part.numel() for part in parts], room_for(parts, x)
    own = comm.rank
    check_size(_LIST.call, f"{_LIST.out}[{own}]", sizes[own], _LIST.x, x.numel())
    if len(set(sizes)) == 1:
        worded(_LIST, comm.allgather, x.reshape(-1), whole, **limits)
    else:
        worded(_LIST, comm.allgatherv, x.reshape(-1), sizes, whole, **limits)
    spread(whole, parts)
