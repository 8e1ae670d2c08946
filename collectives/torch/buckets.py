# SPDX-License-Identifier: Apache-2.0
"""Gradients that lie side by side in memory that all ranks reach, and are added up where they lie.

The idea of DistributedDataParallel's buckets, for programs that do without it: Li et al., "PyTorch
Distributed: Experiences on Accelerating Data Parallel Training", VLDB'20.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from collectives.errors import InvalidArgumentError
from collectives.torch.creation import communicator_of

if TYPE_CHECKING:
    from collectives.communicator import Communicator


@dataclass
class _Bucket:
    flat: torch.Tensor
    views: list[tuple[torch.nn.Parameter, torch.Tensor]]


class GradientBuckets:
    """The gradients of some parameters, in few vectors: ``buckets.reduce()`` averages them.

    Each ``parameter.grad`` becomes a view of a vector of ``comm.empty``, of parameters of one dtype
    and at most so many bytes together; a larger parameter has one of its own. So nothing is copied,
    and ranks of a machine add in the memory where gradients lie. All ranks give the same
    parameters in the same order.

    Args:
        parameters: Dense parameters in CPU memory; those without ``requires_grad`` are left out.
        group: A process group of this backend; None: the default one.
        most_bytes: Of a bucket.

    Raises InvalidArgumentError for a parameter that is no such.
    """

    def __init__(
        self,
        parameters: Iterable[torch.nn.Parameter],
        group: Any = None,
        *,
        most_bytes: int = 25 << 20,
    ) -> None:
        """Point all gradients at zeros."""
        self._comm = communicator_of(group)
        self._buckets: list[_Bucket] = []
        for some in _shared_out(parameters, most_bytes):
            self._buckets.append(_bucket(self._comm, some))

    def __len__(self) -> int:
        """Return the number of buckets."""
        return len(self._buckets)

    def zero(self) -> None:
        """Set all gradients to zero; ``optimizer.zero_grad(set_to_none=False)`` does as well."""
        for bucket in self._buckets:
            bucket.flat.zero_()
            self._keep(bucket)

    def reduce(self, op: str = "avg", **options: Any) -> None:
        """Reduce all gradients over the ranks, in place; ``options`` are those of allreduce."""
        for bucket in self._buckets:
            self._keep(bucket)
            self._comm.allreduce(bucket.flat, op=op, **options)

    def _keep(self, bucket: _Bucket) -> None:
        """Bring back gradients that were put elsewhere, as zero_grad() does by default."""
        for parameter, view in bucket.views:
            gradient = parameter.grad
            if gradient is not None and gradient.data_ptr() == view.data_ptr():
                continue
            if gradient is None:
                view.zero_()
            else:
                view.copy_(gradient)
            parameter.grad = view


def _shared_out(
    parameters: Iterable[torch.nn.Parameter], most_bytes: int
) -> list[list[torch.nn.Parameter]]:
    """Return parameters by bucket, in their order."""
    found: list[list[torch.nn.Parameter]] = []
    open_by_dtype: dict[torch.dtype, list[torch.nn.Parameter]] = {}
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        if parameter.device.type != "cpu" or parameter.layout != torch.strided:
            raise InvalidArgumentError(
                f"GradientBuckets: a parameter is {parameter.layout} on {parameter.device}: dense "
                "ones in CPU memory are taken"
            )
        present = open_by_dtype.get(parameter.dtype)
        held = sum(one.numel() for one in present) * parameter.element_size() if present else 0
        if present is None or held + parameter.nbytes > most_bytes:
            present = open_by_dtype[parameter.dtype] = []
            found.append(present)
        present.append(parameter)
    return found


def _bucket(comm: Communicator, parameters: list[torch.nn.Parameter]) -> _Bucket:
    flat = comm.empty(sum(one.numel() for one in parameters), parameters[0].dtype)
    flat.zero_()
    views, begin = [], 0
    for parameter in parameters:
        view = flat[begin : begin + parameter.numel()].view(parameter.shape)
        begin += parameter.numel()
        if parameter.grad is not None:
            view.copy_(parameter.grad)
        parameter.grad = view
        views.append((parameter, view))
    return _Bucket(flat, views)
