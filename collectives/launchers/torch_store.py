# SPDX-License-Identifier: Apache-2.0
"""The store of torch at MASTER_ADDR:MASTER_PORT, under a prefix of our own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

from collectives.errors import BootstrapError, UnsupportedError
from collectives.launchers.directory import Deadline, Store, StoreDirectory
from collectives.launchers.launch import Launch, whole_number
from collectives.launchers.torch_protocol import connected


class TorchStore:
    """A store of torch.distributed: TCPStore, or any other."""

    def __init__(self, store: Any, prefix: str) -> None:
        self._store, self._prefix = store, prefix

    def put(self, key: str, value: bytes) -> None:
        """Leave a value."""
        self._asked(lambda: self._store.set(self._prefix + key, value))

    def find(self, key: str) -> bytes | None:
        """Return a value, None where there is none yet."""
        name = self._prefix + key
        there = self._asked(lambda: self._store.check([name]))
        return bytes(self._asked(lambda: self._store.get(name))) if there else None

    def count(self, key: str) -> int:
        """Count up, and return how often that was done before."""
        return int(self._asked(lambda: self._store.add(self._prefix + key, 1))) - 1

    def close(self) -> None:
        """Let go of the connection."""
        self._store = None

    def _asked(self, request: Any) -> Any:
        try:
            return request()
        except RuntimeError as error:
            raise BootstrapError(f"torch's store has failed: {error}") from error


def open_store(
    launch: Launch, deadline: Deadline, env: Mapping[str, str] | None = None
) -> StoreDirectory:
    """Connect to the store: that of torchrun's agent, without torch where nobody has imported it.

    Raises UnsupportedError where torch is needed and cannot be imported, BootstrapError where
    nobody answers.
    """
    env = os.environ if env is None else env
    host, port = env["MASTER_ADDR"], whole_number(env, "MASTER_PORT", 0, 1, 65535)
    served = env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    prefix = f"collectives/{launch.job}/{launch.attempt}/"
    store: Store | None = None
    if served and "torch" not in sys.modules:
        store = connected(host, port, prefix, deadline)
    if store is None:
        server = None if served else 0
        store = TorchStore(_by_torch(launch, host, port, server, deadline), prefix)
    return StoreDirectory(store, launch.rank, launch.size)


def _by_torch(launch: Launch, host: str, port: int, server: int | None, deadline: Deadline) -> Any:
    """Return torch's own client. ``server``: the rank that serves the store, too; None: an agent.

    Where this is the one, `torch.distributed.init_process_group` uses the same, if it is called.
    """
    try:
        torch = import_module("torch.distributed")
    except ImportError as error:
        raise UnsupportedError(
            f"the ranks of {launch.launcher} find each other through torch's store, but torch "
            f"cannot be imported here ({error}): install it, or set COLLECTIVES_RENDEZVOUS to a "
            "folder that all ranks reach"
        ) from error
    try:
        return torch.TCPStore(
            host,
            port,
            is_master=server == launch.rank,
            timeout=timedelta(seconds=deadline.left()),
            wait_for_workers=False,
            multi_tenant=True,
        )
    except RuntimeError as error:
        awaited = server is not None and server != launch.rank
        who = f"; rank {server} serves it: look whether it has come" if awaited else ""
        raise BootstrapError(
            f"torch's store at {host}:{port} (MASTER_ADDR, MASTER_PORT) does not answer within "
            f"{deadline.seconds:g} s (timeout=... or COLLECTIVES_TIMEOUT): {error}{who}"
        ) from error
