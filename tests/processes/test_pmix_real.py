# SPDX-License-Identifier: Apache-2.0
"""The real mpirun of Open MPI starts ranks that have no mpi4py, and speak PMIx with it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.processes.jobs import ROOT, environment
from tests.processes.test_launchers_real import SCRIPT, command, said

pytestmark = [pytest.mark.extras, pytest.mark.processes]

SUM = (
    "import collectives as cl, numpy as np, os, sys, time\n"
    "rank = int(os.environ['PMIX_RANK'])\n"
    "{first}\n"
    "try:\n"
    "  with cl.init(timeout={seconds}) as comm:\n"
    "    said = comm.allreduce(np.full(2, rank + 1.0)).tolist()\n"
    "except cl.CollectiveError as error:\n"
    "  said = f'{{type(error).__name__}}: {{error}}'\n"
    "{last}\n"
    "sys.stdout.write(f'rank {{rank}} says {{said}}\\n')\n"
)


def program(folder: Path, first: str = "", last: str = "", seconds: float = 30) -> str:
    path = folder / "program.py"
    path.write_text(SUM.format(first=first, last=last, seconds=seconds))
    return str(path)


def test_ranks_exchange_values() -> None:
    words, env = command("openmpi", 3, alone=True)
    printed = said([*words, "-m", "collectives.launchers"], env)
    assert sorted(re.findall(r"rank (\d) of 3, ", printed)) == ["0", "1", "2"]
    assert printed.count("directory pmix, got 0 1 2") == 3


def test_init_meets_twice(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(SCRIPT.format(first="", last="assert 'mpi4py' not in sys.modules"))
    words, env = command("openmpi", 3, alone=True)
    printed = said([*words, str(path)], env)
    for rank in range(3):
        assert f"rank {rank} of 3: [6.0, 6.0]\n" in printed


def test_ranks_meet_where_a_shell_stands_between(tmp_path: Path) -> None:
    """Whose library is open is asked of the launcher, not of the shell."""
    words, env = command("openmpi", 2, alone=True)
    shell = ["sh", "-c", '"$0" "$@"; exit $?', words[-1]]
    printed = said([*words[:-1], *shell, program(tmp_path)], env)
    assert printed.count("says [3.0, 3.0]") == 2


def test_ranks_may_end_at_different_times(tmp_path: Path) -> None:
    words, env = command("openmpi", 3, alone=True)
    last = "if rank == 1: time.sleep(1); assert comm.closed"
    printed = said([*words, program(tmp_path, last=last)], env)
    assert printed.count("says [6.0, 6.0]") == 3


def test_mpi_may_have_begun_without_mpi4py(tmp_path: Path) -> None:
    """PMIx counts who has begun it, so each may end it."""
    words, env = command("openmpi", 2, alone=True)
    library = Path(words[0]).parents[1] / "lib" / "libmpi.so.40"
    begin = (
        f"import ctypes; mpi = ctypes.CDLL({str(library)!r}); assert mpi.MPI_Init(None, None) == 0"
    )
    printed = said([*words, program(tmp_path, begin, "assert mpi.MPI_Finalize() == 0")], env)
    assert printed.count("says [3.0, 3.0]") == 2


def test_a_rank_that_does_not_come_is_waited_for_as_long_as_asked(tmp_path: Path) -> None:
    words, env = command("openmpi", 2, alone=True)
    late = "if rank == 1: time.sleep(3); sys.exit(0)"
    done = subprocess.run(
        [*words, program(tmp_path, late, seconds=1)],
        cwd=ROOT, env=environment(env), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "rank 0 says CollectiveTimeoutError: after " in done.stdout
    assert "not all ranks have come to meet" in done.stdout


def test_without_libpmix_the_error_names_both_ways(tmp_path: Path) -> None:
    words, env = command("openmpi", 2, alone=True)
    hide = "from collectives.launchers import pmix; pmix.places = lambda env: ['/no/libpmix.so.2']"
    printed = said([*words, program(tmp_path, hide)], env)
    for told in ("mpi4py cannot be imported", "/no/libpmix.so.2 (", "COLLECTIVES_RENDEZVOUS"):
        assert printed.count(told) == 2
