# SPDX-License-Identifier: Apache-2.0
"""srun without PMI-2. A batch script is no task of srun: it runs alone."""

from __future__ import annotations

from collections.abc import Mapping

from collectives.launchers.launch import Launch, optional, rank_and_size

_STEP = "SLURM_STEP_ID"
_LACK = (
    "this process was started by srun without a key-value store that we speak: use "
    "`srun --mpi=pmi2`, or set COLLECTIVES_RENDEZVOUS to a folder that all ranks reach"
)


def is_task(env: Mapping[str, str]) -> bool:
    """Whether srun has started this process, or one that it descends from."""
    return _STEP in env and "SLURM_PROCID" in env


def job(env: Mapping[str, str]) -> str:
    """Return a name that no other step of the cluster has."""
    return f"slurm {env.get('SLURM_JOB_ID', '')}.{env.get(_STEP, '')}"


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that srun gave this process."""
    if not is_task(env):
        return None
    rank, size = rank_and_size(env, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
    return Launch(
        "srun",
        rank,
        size,
        directory="none",
        how="SLURM_PROCID, SLURM_STEP_NUM_TASKS",
        local_rank=optional(env, "SLURM_LOCALID"),
        hosts=optional(env, "SLURM_STEP_NUM_NODES", 1),
        job=job(env),
        attempt=optional(env, "SLURM_RESTART_COUNT") or 0,
        lack=_LACK,
    )
