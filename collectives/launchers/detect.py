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
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from collectives import environment
from collectives.errors import CollectiveError, UnsupportedError
from collectives.launchers import collrun, meeting, mpi, mpiexec, openmpi, plain, slurm, torchrun
from collectives.launchers.directory import Deadline, Directory
from collectives.launchers.folder import open_folder
from collectives.launchers.launch import RENDEZVOUS, Launch
from collectives.launchers.master import open_master
from collectives.launchers.plain import on_one_machine, why_on_one_machine
from collectives.launchers.pmi import PmiDirectory
from collectives.launchers.pmix import open_pmix
from collectives.launchers.refusal import PATIENCE
from collectives.launchers.secret import own_secret, secret_or_why_not
from collectives.launchers.torch_store import open_store
from collectives.launchers.transport import AUTO, Wish, needs_channel, wished_or_why_not
from collectives.launchers.wire import Wire
from collectives.names import checked_seconds
from collectives.start import tell, waiting

_DEFAULT_TIMEOUT = 300.0  # seconds, as everywhere
_ORDER = (collrun, torchrun, openmpi, mpiexec, slurm, plain)
_ALONE = Launch(
    "none", 0, 1, directory="none", how="no launcher's variables", lack="there is no other rank"
)


def detect(variables: Mapping[str, str] | None = None) -> Launch:
    """Return the place of this process. Raises InvalidArgumentError for variables without sense."""
    env = os.environ if variables is None else variables
    launch = next((found for one in _ORDER if (found := one.find(env))), _ALONE)
    folder = bool(env.get(RENDEZVOUS))
    if launch is _ALONE or not (folder or launch.directory == "tcp"):
        return launch
    given = settings_of(env)
    return replace(
        launch,
        directory="folder" if folder else launch.directory,
        job=given.job or launch.job,
        attempt=max(given.attempt, launch.attempt),
    )


def open_directory(
    launch: Launch,
    deadline: Deadline,
    variables: Mapping[str, str] | None = None,
    secret: bytes | None = None,
    trouble: CollectiveError | None = None,
) -> Directory:
    """Return the channel of a launch, which is opened once and lives until the process ends.

    ``secret``: of the store that rank 0 keeps; None: that of the file. ``trouble``: why this
    rank cannot take part. Launchers allow no second time. Raises UnsupportedError, with what to do,
    where there is none.
    """
    if launch.directory.startswith("pmi") and mpi.is_running():  # PMI_FD is MPI's
        launch = replace(launch, directory="mpi")
    with _opening:
        if launch not in _opened:
            env = os.environ if variables is None else variables
            directory = _open(launch, deadline, env, secret, trouble)
            _opened[launch] = directory
            atexit.register(_close, directory, os.getpid())
        return _opened[launch]


_opened: dict[Launch, Directory] = {}
_opening = threading.Lock()


def _close(directory: Directory, owner: int) -> None:
    if os.getpid() == owner:  # not a forked child, whose parent still uses it
        directory.close()


def _open(
    launch: Launch,
    deadline: Deadline,
    env: Mapping[str, str],
    secret: bytes | None,
    trouble: CollectiveError | None = None,
) -> Directory:
    match launch.directory:
        case "tcp":
            known = secret or own_secret(launch, env, insecure=False, one_host=False)
            assert known is not None  # or it would have been asked for
            silence = environment.silence_seconds(env)
            return open_master(launch, deadline, known, trouble, silence)
        case "folder":
            return open_folder(env[RENDEZVOUS], launch, deadline, trouble)
        case "torch":
            return open_store(launch, deadline, env)
        case "mpi":
            return mpi.open_world(launch.rank, launch.size)
        case "pmix":
            return open_pmix(launch, deadline, env)
        case "pmi1" | "pmi2":
            return PmiDirectory(int(launch.directory[-1]), deadline)
    raise UnsupportedError(launch.lack)


def place(
    timeout: float | None = None,
    variables: Mapping[str, str] | None = None,
    *,
    insecure: bool = False,
    transport: str | None = None,
    trusted: str | Iterable[str] | None = None,
) -> environment.Place:
    """Return the place of this process in its job.

    Ranks of collrun on one machine know their job from the environment; else they agree on one
    through the launcher's channel, or where rank 0 is, within ``timeout`` seconds. ``insecure``:
    in the latter case, without a secret.

    Where ``transport``, ``trusted`` or variables that are no rank, size, job or attempt make no
    sense, and there are other ranks, these are told before it raises: it waits for them for ten
    seconds at most.
    """
    given = os.environ if variables is None else variables
    env, senseless = environment.sensible_settings(given)
    launch = detect(env)
    wish, trouble = wished_or_why_not(transport, trusted, env, launch.size)
    trouble = senseless or trouble
    way = wish.transport
    alone = launch.launcher == "collrun" and launch.master is None and way == AUTO
    known = launch.launcher == "none" or alone
    by_hand = launch.launcher == "environment" and launch.directory == "none"
    one_host = known or launch.size == 1 or (by_hand and on_one_machine(env))
    secret, untold = secret_or_why_not(launch, env, insecure=insecure, one_host=one_host)
    trouble = trouble or untold
    if launch.size == 1 and trouble is not None:
        raise trouble
    if known:
        return _here(environment.place(env), wish, trouble, timeout)
    settings = settings_of(env)
    if launch.size == 1:
        return settings
    met_by_rank_0 = launch.master is not None or (by_hand and not one_host)
    if launch.directory == "none" and way != AUTO and not met_by_rank_0:
        raise needs_channel(launch)
    if one_host and way == AUTO:
        job = settings.job or launch.job
        why = why_on_one_machine(env)
        found = replace(settings, rank=launch.rank, size=launch.size, job=job, only_here=why)
        return _here(found, wish, trouble, timeout)
    deadline = deadline_of(settings, timeout)
    job, wire = _agreed(launch, deadline, env, secret, wish, trouble)
    return replace(settings, rank=launch.rank, size=launch.size, job=job, attempt=0, wire=wire)


def _agreed(
    launch: Launch,
    deadline: Deadline,
    env: Mapping[str, str],
    secret: bytes | None,
    wish: Wish,
    trouble: CollectiveError | None,
) -> tuple[str, Wire | None]:
    """Meet the others by the channel of the launch; in ``trouble``, to tell them of it."""
    if trouble is not None:
        deadline = deadline.at_most(PATIENCE)
    try:
        with waiting(deadline.seconds):
            directory = open_directory(launch, deadline, env, secret, trouble)
    except CollectiveError:
        if trouble is None:
            raise
        raise trouble from None
    with waiting(deadline.seconds):
        return meeting.agree(
            directory, launch.rank, launch.size, deadline,
            variables=env, secret=secret, wish=wish, trouble=trouble,
        )  # fmt: skip


def _here(
    found: environment.Place, wish: Wish, trouble: CollectiveError | None, timeout: float | None
) -> environment.Place:
    """Return the place of a rank where all are on this machine, and meet without a channel."""
    if trouble is None:
        return replace(found, trusted=wish.terms)
    seconds = deadline_of(found, timeout).at_most(PATIENCE).left()
    with suppress(CollectiveError):  # whatever comes of it, this rank knows why it is here
        tell(found, str(trouble), seconds)
    raise trouble


def settings_of(env: Mapping[str, str]) -> environment.Place:
    """Return what the variables say but for a place: job, attempt and times are settings."""
    places = (environment.RANK, environment.SIZE)
    return environment.place({name: value for name, value in env.items() if name not in places})


def deadline_of(settings: environment.Place, timeout: float | None) -> Deadline:
    """Return when to give up a meeting that begins now."""
    seconds = settings.timeout or _DEFAULT_TIMEOUT
    return Deadline(seconds if timeout is None else checked_seconds("timeout", timeout))
