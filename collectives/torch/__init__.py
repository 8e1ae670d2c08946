# SPDX-License-Identifier: Apache-2.0
"""A backend for torch.distributed: ``dist.init_process_group("collectives")``.

Importing this module registers the backend; torch 2.11 or later is needed. Everything else is
torch's own interface: DistributedDataParallel, FSDP, DTensor and others take the group as they take
gloo's. docs/torch.md.
"""

from __future__ import annotations

from torch import distributed

from collectives.torch import autograd
from collectives.torch.buckets import GradientBuckets
from collectives.torch.creation import communicator_of, create_group
from collectives.torch.group import CollectivesGroup, monitored_barrier
from collectives.torch.hooks import (
    QSGDState,
    TopKState,
    adasum_hook,
    fp8_hook,
    qsgd_hook,
    reproducible_hook,
    topk_hook,
)
from collectives.torch.inner import DEVICES

NAME = "collectives"

if NAME not in distributed.Backend.backend_list:
    distributed.Backend.register_backend(NAME, create_group, extended_api=True, devices=[*DEVICES])

__all__ = [
    "NAME",
    "CollectivesGroup",
    "GradientBuckets",
    "QSGDState",
    "TopKState",
    "adasum_hook",
    "autograd",
    "communicator_of",
    "fp8_hook",
    "monitored_barrier",
    "qsgd_hook",
    "reproducible_hook",
    "topk_hook",
]
