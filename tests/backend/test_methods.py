# SPDX-License-Identifier: Apache-2.0
"""Every method of a process group, from Python, and what C++ asks for by functional collectives."""

from __future__ import annotations

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

PROGRAMS = (
    "allreduce",
    "coalesced",
    "broadcast_and_reduce",
    "gathers",
    "gathers_into_one",
    "scatters",
    "exchanges",
    "messages",
    "objects",
    "groups",
    "splits",
    "roots",
    "functional_gradients",
    "works",
    "monitored",
)


# Of torch's ProcessGroup: names of kinds, what keeps lists of backends, and what moves no data.
NOT_OURS = [
    "BackendType",
    "CUSTOM",
    "GLOO",
    "MPI",
    "NCCL",
    "UCC",
    "UNDEFINED",
    "XCCL",
    "boxed",
    "unbox",
    "bound_device_id",
    "_backend_id",
    "_device_types",
    "_get_backend",
    "_get_backend_name",
    "_id",
    "_register_backend",
    "_set_default_backend",
    "_enable_collectives_timing",
    "_has_hooks",
    "_register_on_completion_hook",
    "_wait_for_pending_works",
    "merge_remote_group",
    "use_pg_for_symm_mem_rendezvous",
    "_pybind11_conduit_v1_",
]


def test_no_method_of_torchs_group_is_forgotten() -> None:
    from torch import distributed

    from collectives.torch.group import CollectivesGroup

    names = [name for name in dir(distributed.ProcessGroup) if not name.startswith("__")]
    theirs = {name: getattr(distributed.ProcessGroup, name) for name in names}
    left = {name for name, one in theirs.items() if getattr(CollectivesGroup, name) is one}
    assert left <= {*NOT_OURS}, "a new torch has methods that this backend has not"


def test_pieces_of_one_tensor_stay_where_they_lie() -> None:
    import torch

    from collectives.torch.tensors import pieces, room_for

    whole = torch.arange(6.0)
    parts = list(whole[1:].split([2, 3]))
    found, sizes = pieces(parts)
    assert (found.data_ptr(), found.numel(), sizes) == (whole[1:].data_ptr(), 5, [2, 3])
    assert room_for(parts).data_ptr() == whole[1:].data_ptr()
    others = ([parts[1], parts[0]], [*parts, torch.ones(1)], [parts[0], parts[1][1:]])
    for apart in others:
        assert pieces(apart)[0].tolist() == torch.cat(apart).tolist()
        assert pieces(apart)[0].data_ptr() not in (whole.data_ptr(), apart[0].data_ptr())
    assert room_for(parts, whole[:1]).data_ptr() != whole[1:].data_ptr()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_method_gives_what_torch_says(ours: Team, program: str) -> None:
    ours.run(f"methods.{program}")


@pytest.mark.parametrize("program", ["allreduce_of_every_dtype", "allreduce_of_views", "sparse"])
def test_tensors_of_every_kind(ours: Team, program: str) -> None:
    ours.run(f"elements.{program}")


@pytest.mark.parametrize(
    "program", ["unattended", "by_threads", "awaited_for_a_moment", "then_called", "of_any_bytes"]
)
def test_messages_go_on_by_themselves(ours: Team, program: str) -> None:
    ours.run(f"mail.{program}")


@pytest.mark.parametrize(
    "program",
    ["lists.lists", "profiles.profiled", "blocks.blocks", "blocks.expanded", "turns.threads"],
)
def test_lists_blocks_and_profiles(ours: Team, program: str) -> None:
    ours.run(program)
