# SPDX-License-Identifier: Apache-2.0
"""mpiexec of MPICH and Intel MPI, and srun --mpi=pmi2: whoever hands down PMI_FD."""

from __future__ import annotations

from collections.abc import Mapping

from collectives.launchers import slurm
from collectives.launchers.launch import Launch, optional, rank_and_size


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that a process manager with PMI_FD gave this process."""
    if "PMI_RANK" not in env and "PMI_SIZE" not in env:
        return None
    by_srun = slurm.is_task(env) and "PMI_JOBID" in env and "MPI_LOCALRANKID" not in env
    launcher = "srun" if by_srun else "mpiexec"
    rank, size = rank_and_size(env, launcher, "PMI_RANK", "PMI_SIZE")
    version = env.get("PMI_VERSION", "2" if by_srun else "1")
    has_store = "PMI_FD" in env
    return Launch(
        launcher,
        rank,
        size,
        directory=("pmi2" if version == "2" else "pmi1") if has_store else "none",
        how="PMI_RANK, PMI_SIZE, PMI_FD",
        local_rank=optional(env, "SLURM_LOCALID" if by_srun else "MPI_LOCALRANKID"),
        hosts=optional(env, "SLURM_STEP_NUM_NODES", 1) if by_srun else None,
        job=slurm.job(env) if by_srun else "default",
        lack="PMI_RANK is set but PMI_FD is not, so there is no key-value store: start the "
        "program with mpiexec, or set COLLECTIVES_RENDEZVOUS to a folder that all ranks reach",
    )
