# SPDX-License-Identifier: Apache-2.0
"""How torch makes groups: each is a communicator whose ranks met in torch's store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torch import distributed
from torch.distributed.constants import default_pg_timeout

from collectives.communicator import Communicator
from collectives.errors import InvalidArgumentError
from collectives.torch.group import CollectivesGroup
from collectives.torch.options import check_time

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def create_group(options: Any, backend_options: Any = None) -> CollectivesGroup:
    """Return a group for ``init_process_group`` or ``new_group``; called by torch on its ranks.

    ``options`` are torch's: store, group_rank, group_size, timeout. There are no ``pg_options``.
    """
    if backend_options is not None:
        raise InvalidArgumentError(
            f"collectives.torch: pg_options is {backend_options!r:.80}: there are none"
        )
    return CollectivesGroup.met(
        options.store,
        int(options.group_rank),
        int(options.group_size),
        _seconds(options.timeout),
        str(options.group_id),
        default=not distributed.is_initialized(),
    )


def communicator_of(group: ProcessGroup | None = None) -> Communicator:
    """Return the communicator of a group of this backend, the default group's for None.

    Its own calls and torch's may be mixed, in the same order on all ranks. It belongs to the group:
    do not close it. Raises InvalidArgumentError for a group of another backend.
    """
    found = distributed.group.WORLD if group is None else group
    if not isinstance(found, CollectivesGroup):
        raise InvalidArgumentError(
            f"communicator_of: {found!r} is no group of the backend 'collectives'"
        )
    return found.communicator


def _seconds(timeout: timedelta | None) -> float:
    if timeout is not None:
        check_time(timeout)
    given = default_pg_timeout if timeout is None or timeout <= timedelta(0) else timeout
    return float(given.total_seconds())
