# SPDX-License-Identifier: Apache-2.0
"""The default communicator: how it begins and ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from collectives.communicator import Communicator
from collectives.ending import call_at_end
from collectives.errors import InvalidArgumentError, MismatchError
from collectives.start import join

_default: Communicator | None = None
_making = threading.RLock()


def init(
    timeout: float | None = None,
    *,
    insecure: bool = False,
    silence: float | None = None,
    transport: str | None = None,
    trusted: str | Iterable[str] | None = None,
) -> Communicator:
    """Meet the other ranks of this job and return the communicator, from now on the default one.

    The place of this process in its job comes from its launcher: ``collrun``, ``torchrun``,
    ``mpiexec`` or ``srun`` (docs/launching.md); without one the process is alone, rank 0 of 1.
    ``timeout`` bounds the meeting and each call, in seconds; None: COLLECTIVES_TIMEOUT, else 300.
    ``silence``: seconds after which another machine that does not answer is taken for dead, 2 to
    3600; None: COLLECTIVES_SILENCE, else 15.

    On several hosts without a launcher, where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are
    set by hand, ranks need a secret in COLLECTIVES_SECRET_FILE. ``insecure=True`` does without, on
    all ranks: anybody in that network can then take part; rank 0 warns, once. Where there is no
    such file to refuse it raises InvalidArgumentError.

    ``transport`` is ``"auto"`` (memory within a machine, TCP between machines) or ``"ucx"``
    (collectives go by UCX, whose connections prove nothing: for trusted networks,
    docs/transports.md), equal on all ranks; None: COLLECTIVES_TRANSPORT, else ``"auto"``.
    ``trusted`` are networks in which everybody is trusted, ``"10.1.0.0/16, fd00::/8"`` or a list,
    equal on all ranks; None: COLLECTIVES_TRUSTED. Where ranks of several machines all meet in them
    and all have the same UCX, ``"auto"`` takes it; ``"ucx"`` then raises InvalidArgumentError where
    a rank meets the others elsewhere. ``comm.transport`` tells what was taken.

    With COLLECTIVES_TUNE=seconds it also calls :meth:`Communicator.tune`, on all ranks, with
    COLLECTIVES_TUNE=kept :meth:`Communicator.use_kept_table`, which collrun asks for on one machine
    where such a table may be, with COLLECTIVES_TUNE=model :meth:`Communicator.use_model`, and with
    COLLECTIVES_TUNE=refine :meth:`Communicator.refine`. Without it ranks that share memory take a
    kept table some calls later, where rank 0's user has one.

    All ranks call it, once; after close() they may call it again. Raises InvalidArgumentError for
    an environment that makes no sense or while the default communicator is open (where the settings
    of one rank make none, on all ranks, which say whose, and why), BootstrapError
    or CollectiveTimeoutError when the ranks do not find each other, UnsupportedError where the
    launcher offers no way to exchange values, or there is no UCX.
    """
    global _default
    # Not with the package: launchers need sockets, JSON, hashes, which many a program never uses.
    from collectives.environment import tuning
    from collectives.launchers.detect import place

    with _making:
        if _default is not None and not _default.closed:
            raise InvalidArgumentError(
                "init() was called before in this process, by the program or by the first use of "
                "a function such as collectives.allreduce(): a second call would wait for the "
                "other ranks. Use what the first call returned, or close() it first"
            )
        env = _variables(silence)
        call_at_end(_leave)  # also where the ranks do not meet, and this one may tell collrun why
        found = place(timeout, env, insecure=insecure, transport=transport, trusted=trusted)
        _default = join(found, timeout)
        _tune(_default, tuning())
        return _default


def _announce_kept(comm: Communicator) -> None:
    """Let all ranks use a table of earlier runs on such a machine, where rank 0's user has one."""
    from collectives.tuning.kept import is_there

    if comm.transport != "memory" or comm.rank != 0 or comm.size == 1:
        return
    if is_there():
        from collectives.tuning.announced import announce_kept

        announce_kept(comm)


def _tune(comm: Communicator, wish: float | str | None) -> None:
    """Do what COLLECTIVES_TUNE says."""
    from collectives.environment import REFINE

    if wish is None:
        _announce_kept(comm)
    elif wish != REFINE:
        _take_table(comm, wish)
    elif comm.transport == "memory":
        comm.refine()


def _take_table(comm: Communicator, wish: float | str) -> None:
    """Tune for so many seconds, or take what is kept, or what the model says."""
    from collectives.environment import MODEL

    try:
        if isinstance(wish, float):
            comm.tune(wish)
        elif wish == MODEL:
            comm.use_model()
        else:
            comm.use_kept_table()
    except MismatchError as error:  # ranks without the variable have begun with something else
        raise MismatchError(
            f"COLLECTIVES_TUNE is set on rank {comm.rank}, so that init() looks for a table, and "
            f"must be set on all ranks: {error}",
            error.rank,
        ) from None


def _variables(silence: float | None) -> dict[str, str]:
    from collectives.environment import SILENCE, checked_silence

    said = {} if silence is None else {SILENCE: str(checked_silence("silence", silence))}
    return {**os.environ, **said}


def default() -> Communicator:
    """Return the default communicator; the first use makes it."""
    if _default is not None:
        return _default
    with _making:
        return _default if _default is not None else init()


def _leave() -> None:
    """Leave without waiting."""
    if _default is not None and not _default.closed:
        _default.close()
