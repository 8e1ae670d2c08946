# SPDX-License-Identifier: Apache-2.0
"""torchrun (torch.distributed.run), whose agent keeps a store at MASTER_ADDR:MASTER_PORT.

The port is taken by that store, so nothing of ours can listen there: we are a client of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from collectives.errors import InvalidArgumentError
from collectives.launchers.launch import Launch, optional, rank_and_size

RUN = "TORCHELASTIC_RUN_ID"


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that torchrun gave this process."""
    if RUN not in env:
        return None
    rank, size = rank_and_size(env, "torchrun", "RANK", "WORLD_SIZE")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not env.get(name):
            raise InvalidArgumentError(
                f"{RUN} is set but {name} is not: torchrun sets both; take {RUN} out of the "
                "environment if this process was not started by it"
            )
    return Launch(
        "torchrun",
        rank,
        size,
        directory="torch",
        how="TORCHELASTIC_RUN_ID, RANK, WORLD_SIZE",
        local_rank=optional(env, "LOCAL_RANK"),
        hosts=optional(env, "GROUP_WORLD_SIZE", 1),
        job=env[RUN],
        attempt=optional(env, "TORCHELASTIC_RESTART_COUNT") or 0,
    )
