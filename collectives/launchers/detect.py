# SPDX-License-Identifier: Apache-2.0
"""Which launcher started this process, and the channel that it offers.

The order is from the inside to the outside. What is started last knows best: collrun, torchrun and
mpiexec are started *by* srun or by a batch system, one for each node or one for all, and their
processes inherit its variables, which then count nodes or something else. Never the other way
round. RANK and WORLD_SIZE come last: they are anyone's, all other names those of a launcher.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from dataclasses import replace

from collectives import environment
from collectives.errors import UnsupportedError
from collectives.launchers import collrun, meeting, mpi, mpiexec, openmpi, plain, slurm, torchrun
from collectives.launchers.directory import Deadline, Directory
from collectives.launchers.folder import open_folder
from collectives.launchers.launch import RENDEZVOUS, Launch
from collectives.launchers.plain import on_one_machine
from collectives.launchers.pmi import PmiDirectory
from collectives.launchers.torch_store import open_store
from collectives.names import checked_seconds

_DEFAULT_TIMEOUT = 300.0  # seconds, as everywhere
_ORDER = (collrun, torchrun, openmpi, mpiexec, slurm, plain)
_ALONE = Launch(
    "none", 0, 1, directory="none", how="no launcher's variables", lack="there is no other rank"
)


def detect(variables: Mapping[str, str] | None = None) -> Launch:
    """Return the place of this process. Raises InvalidArgumentError for variables without sense."""
    env = os.environ if variables is None else variables
    launch = next((found for one in _ORDER if (found := one.find(env))), _ALONE)
    if launch is _ALONE or not env.get(RENDEZVOUS):
        return launch
    given = environment.place(_settings(env))
    return replace(
        launch,
        directory="folder",
        job=given.job or launch.job,
        attempt=max(given.attempt, launch.attempt),
    )


def open_directory(
    launch: Launch, deadline: Deadline, variables: Mapping[str, str] | None = None
) -> Directory:
    """Return the channel of a launch, which is opened once and lives until the process ends.

    Launchers allow no second time. Raises UnsupportedError, with what to do, where there is none.
    """
    if launch.directory.startswith("pmi") and mpi.is_running():  # PMI_FD is MPI's
        launch = replace(launch, directory="mpi")
    with _opening:
        if launch not in _opened:
            env = os.environ if variables is None else variables
            directory = _open(launch, deadline, env)
            _opened[launch] = directory
            atexit.register(_close, directory, os.getpid())
        return _opened[launch]


_opened: dict[Launch, Directory] = {}
_opening = threading.Lock()


def _close(directory: Directory, owner: int) -> None:
    if os.getpid() == owner:  # not a forked child, whose parent still uses it
        directory.close()


def _open(launch: Launch, deadline: Deadline, env: Mapping[str, str]) -> Directory:
    match launch.directory:
        case "folder":
            return open_folder(env[RENDEZVOUS], launch, deadline)
        case "torch":
            return open_store(launch, deadline, env)
        case "mpi":
            return mpi.open_world(launch.rank, launch.size)
        case "pmi1" | "pmi2":
            return PmiDirectory(int(launch.directory[-1]), deadline)
    raise UnsupportedError(launch.lack)


def place(
    timeout: float | None = None, variables: Mapping[str, str] | None = None
) -> environment.Place:
    """Return the place of this process in its job.

    Ranks of collrun know their job from the environment; under other launchers they agree on one
    through the launcher's channel, within ``timeout`` seconds.
    """
    env = os.environ if variables is None else variables
    launch = detect(env)
    if launch.launcher in ("collrun", "none"):
        return environment.place(env)
    settings = environment.place(_settings(env))
    if launch.size == 1:
        return settings
    if launch.launcher == "environment" and launch.directory == "none" and on_one_machine(env):
        job = settings.job or launch.job
        return replace(settings, rank=launch.rank, size=launch.size, job=job)
    seconds = settings.timeout or _DEFAULT_TIMEOUT
    deadline = Deadline(seconds if timeout is None else checked_seconds("timeout", timeout))
    directory = open_directory(launch, deadline, env)
    job, wire = meeting.agree(directory, launch.rank, launch.size, deadline, variables=env)
    return replace(settings, rank=launch.rank, size=launch.size, job=job, attempt=0, wire=wire)


def _settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those of a place: job, attempt and time-out are settings."""
    places = (environment.RANK, environment.SIZE)
    return {name: value for name, value in env.items() if name not in places}
