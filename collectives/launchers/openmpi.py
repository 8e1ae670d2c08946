# SPDX-License-Identifier: Apache-2.0
"""mpirun of Open MPI, whose key-value store is reached through MPI, or by libpmix."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from collectives.launchers.launch import Launch, optional, rank_and_size

_LACK = (
    "this process was started by Open MPI, whose key-value store is reached through mpi4py or "
    "libpmix: mpi4py cannot be imported here, and no libpmix can be used. Install mpi4py for this "
    "Open MPI, let LD_LIBRARY_PATH name the folder of its libpmix.so.2, or set "
    "COLLECTIVES_RENDEZVOUS to a folder that all ranks reach"
)


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that Open MPI gave this process."""
    rank_name, size_name = "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"
    if rank_name not in env and size_name not in env:
        return None
    rank, size = rank_and_size(env, "mpirun of Open MPI", rank_name, size_name)
    return Launch(
        "Open MPI",
        rank,
        size,
        directory=_directory(env),
        how=f"{rank_name}, {size_name}",
        local_rank=optional(env, "OMPI_COMM_WORLD_LOCAL_RANK"),
        job=env.get("PMIX_NAMESPACE", "default"),
        lack=_LACK,
    )


def _directory(env: Mapping[str, str]) -> str:
    if find_spec("mpi4py"):
        return "mpi"
    return "pmix" if "PMIX_NAMESPACE" in env and "PMIX_RANK" in env else "none"
