# SPDX-License-Identifier: Apache-2.0
"""The short way of a synchronous all_reduce: what a small one can afford.

As in :mod:`collectives.quick`, what is not plain is never judged here: then nothing was sent or
written, and the long way serves the call or says what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributed import AllreduceOptions

from collectives.errors import CollectiveError
from collectives.torch.options import OPERATIONS
from collectives.torch.profiled import profiler_enabled
from collectives.torch.wording import in_torchs_words

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_Tensor, _strided = torch.Tensor, torch.strided


def reduced(comm: Communicator, tensors: Any, opts: Any) -> list[torch.Tensor] | None:
    """Reduce the tensor of a list of one in place, and return the list; None where it is not plain.

    It is plain where the caller waits, has set no time-out, records no profile, has no other
    call in flight on this communicator, and the tensor is in CPU memory.
    """
    if type(opts) is not AllreduceOptions or opts.asyncOp:
        return None
    worker = comm._worker
    if worker is not None and worker.busy:
        return None
    if type(tensors) is not list or len(tensors) != 1 or opts.timeout.days >= 0:
        return None
    x, op = tensors[0], OPERATIONS.get(hash(opts.reduceOp))
    if type(x) is not _Tensor or x.layout is not _strided or x.requires_grad or x.is_nested:
        return None
    if op is None or x.is_cuda or profiler_enabled():
        return None
    try:
        with comm._turn:
            comm.allreduce(x, op=op)
    except CollectiveError as error:
        in_torchs_words(error)
        raise
    return tensors
