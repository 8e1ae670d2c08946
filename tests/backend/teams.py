# SPDX-License-Identifier: Apache-2.0
"""Processes that are a torch process group, of one backend, and do what a test names."""

from __future__ import annotations

import faulthandler
import importlib
import os
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.ports import free_port

PATIENCE = 200.0  # seconds for one program on all ranks; the first that imports much takes 60
TIMEOUT = timedelta(seconds=30)


@dataclass
class Failed:
    """What a rank tells where a program has raised."""

    error: str
    text: str
    trace: str


class Team:
    """Ranks of a backend; a program is ``module.function`` under tests.backend."""

    def __init__(self, backend: str, size: int) -> None:
        """Start the processes."""
        import torch.multiprocessing as mp

        context = mp.get_context("spawn")
        self.backend, self.size = backend, size
        port = free_port()
        self._pipes, self._processes = [], []
        for rank in range(size):
            mine, theirs = context.Pipe()
            process = context.Process(target=_rank, args=(theirs, backend, rank, size, port))
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)

    def results(self, program: str, *arguments: Any) -> list[Any]:
        """Run a program on all ranks; return what it returns, or :class:`Failed`."""
        for pipe in self._pipes:
            pipe.send((program, arguments))
        return [self._result(rank, program) for rank in range(self.size)]

    def run(self, program: str, *arguments: Any) -> list[Any]:
        """Run a program that is to raise on no rank."""
        found = self.results(program, *arguments)
        for rank, result in enumerate(found):
            assert not isinstance(result, Failed), f"{self.backend}, rank {rank}: {result.trace}"
        return found

    def _result(self, rank: int, program: str) -> Any:
        pipe = self._pipes[rank]
        if not pipe.poll(PATIENCE):
            raise AssertionError(f"{self.backend}: rank {rank} hangs in {program}")
        try:
            return pipe.recv()
        except EOFError:
            raise AssertionError(f"{self.backend}: rank {rank} died in {program}") from None

    def close(self) -> None:
        """End all ranks."""
        for pipe in self._pipes:
            with suppress(OSError):  # it has died
                pipe.send(None)
        for process in self._processes:
            process.join(20)
            if process.is_alive():
                process.kill()
                process.join()
        left = [process.exitcode for process in self._processes]
        assert left == [0] * self.size, f"{self.backend}: ranks ended with {left}"


@contextmanager
def team(backend: str, size: int) -> Iterator[Team]:
    """Give a team; behind it no process is left."""
    made = Team(backend, size)
    try:
        yield made
    finally:
        made.close()


def _rank(pipe: Any, backend: str, rank: int, size: int, port: int) -> None:
    import torch
    from torch import distributed

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": size}
    os.environ.update({name: str(value) for name, value in where.items()})
    if backend == "collectives":
        importlib.import_module("collectives.torch")  # registers the backend
    distributed.init_process_group(backend, timeout=TIMEOUT)
    while (order := pipe.recv()) is not None:
        program, arguments = order
        module, name = program.rsplit(".", 1)
        faulthandler.dump_traceback_later(PATIENCE - 10)
        try:
            place = module if "." in module else f"tests.backend.{module}"
            found = getattr(importlib.import_module(place), name)(*arguments)
        except BaseException as error:
            trace = "".join(traceback.format_exception(error))
            found = Failed(type(error).__name__, str(error), trace)
        faulthandler.cancel_dump_traceback_later()
        pipe.send(found)
    distributed.destroy_process_group()
