# SPDX-License-Identifier: Apache-2.0
"""Communication hooks of DistributedDataParallel: how gradients are added up.

``model.register_comm_hook(state, hook)``. Each gives the average over the ranks, in its own way;
`state` is the process group, None for the default one, where a hook has no state of its own. The
group must be one of this backend. Torch looks at the annotations of hooks, so these are no strings.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.distributed import GradBucket

from collectives.compression.fp8 import FP8
from collectives.compression.topk import TopK
from collectives.errors import UnsupportedError
from collectives.sparse.compression import QSGD
from collectives.sparse.vector import Sparse
from collectives.torch.creation import communicator_of
from collectives.torch.on_gpu import lanes_of
from collectives.torch.work import Work

if TYPE_CHECKING:
    from collectives.communicator import Communicator

Future: TypeAlias = torch.futures.Future[torch.Tensor]


class TopKState:
    """What :func:`topk_hook` keeps: a :class:`collectives.TopK` for each bucket.

    Args:
        share: Which share of the elements travels, above 0 and at most 1.
        group: The process group; None: the default one.
        start: How many steps are made without it. Buckets are built anew after the first step, and
            what was left out of the old ones would be lost.
        options: Those of :class:`collectives.TopK`.
    """

    def __init__(self, share: float, group: Any = None, *, start: int = 2, **options: Any) -> None:
        """Keep nothing yet. Raises InvalidArgumentError for what TopK refuses."""
        TopK(share, **options)
        self.share, self.group, self.start, self.options = share, group, start, options
        self.compressors: dict[int, TopK] = {}
        self.steps = 0

    def of(self, bucket: GradBucket) -> TopK | None:
        """Return the compressor of a bucket; None in the first steps."""
        plain = self.steps < self.start
        if bucket.is_last():
            self.steps += 1
        if plain:
            return None
        return self.compressors.setdefault(bucket.index(), TopK(self.share, **self.options))


def topk_hook(state: TopKState, bucket: GradBucket) -> Future:
    """Add up the largest elements of each rank; what is left out is added to the next gradient.

    Lin et al., "Deep Gradient Compression", ICLR'18; :class:`collectives.TopK`.
    """
    comm, x, compressor = communicator_of(state.group), bucket.buffer(), state.of(bucket)
    wide = x if compressor is None else _wide(x)
    call = comm.allreduce(wide, op="avg", compress=compressor, async_op=True)
    return _rounded(wide, call, x)


class QSGDState:
    """What :func:`qsgd_hook` keeps: how many bits a number has, and the seed of its chance."""

    def __init__(self, bits: int = 8, seed: int = 0, group: Any = None) -> None:
        """Raise InvalidArgumentError for what :class:`collectives.QSGD` refuses."""
        self.codec, self.group = QSGD(bits, seed), group


def qsgd_hook(state: QSGDState, bucket: GradBucket) -> Future:
    """Round the sums to a few levels, by chance and right on average, before all get them.

    Alistarh et al., "QSGD", NIPS 2017; :class:`collectives.QSGD`. Gradients travel in full to the
    rank that adds them, sums in 2, 4 or 8 bits. Raises UnsupportedError for gradients on a GPU.
    """
    comm, x = communicator_of(state.group), bucket.buffer()
    if x.is_cuda:
        raise UnsupportedError(f"qsgd_hook: gradients are on {x.device}: it takes CPU memory only")

    def job() -> None:
        total = comm.allreduce(
            _all_of(_wide(x)),
            op="avg",
            algorithm="dsar_split_allgather",
            compress=state.codec,
            output="dense",
        )
        x.copy_(torch.as_tensor(total))

    return _future(x, comm._submit("qsgd_hook", job))


def fp8_hook(group: Any, bucket: GradBucket) -> Future:
    """Add gradients up as 8-bit floats with a scale that all agree on: :class:`collectives.FP8`."""
    comm, x = communicator_of(group), bucket.buffer()
    wide = _wide(x)
    call = comm.allreduce(wide, op="avg", compress=FP8(), async_op=True)
    return _rounded(wide, call, x)


def adasum_hook(group: Any, bucket: GradBucket) -> Future:
    """Combine gradients by Adasum, which averages what they agree on and adds what they do not.

    Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys'21. Of a whole
    bucket, not of each layer.
    """
    return _reduced(communicator_of(group), bucket, op="adasum")


def reproducible_hook(group: Any, bucket: GradBucket) -> Future:
    """Average gradients to the same bits, whichever algorithm runs."""
    return _reduced(communicator_of(group), bucket, op="avg", reproducible=True)


def _reduced(comm: "Communicator", bucket: GradBucket, **options: Any) -> Future:
    x = bucket.buffer()
    return _future(x, comm.allreduce(x, async_op=True, **options))


def _rounded(wide: torch.Tensor, call: Any, x: torch.Tensor) -> Future:
    """Return a future of ``x``, which gets the values of ``wide`` when they are there."""
    done = _future(wide, call)
    return done if wide is x else done.then(lambda ended: x.copy_(ended.value()))


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Return bfloat16, which NumPy does not know, as float32; anything else as it is."""
    return x.float() if x.dtype == torch.bfloat16 else x


def _all_of(x: torch.Tensor) -> Sparse:
    places = torch.arange(x.numel(), dtype=torch.int32)
    return Sparse(places.numpy(), x.detach().numpy(), x.numel())


def _future(x: torch.Tensor, call: Any) -> Future:
    return Work([x], call, lanes_of([x])).get_future().then(lambda done: done.value()[0])
