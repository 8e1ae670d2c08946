# SPDX-License-Identifier: Apache-2.0
"""What ``import collectives`` loads, and what waits until it is needed. In new interpreters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

import pytest

import collectives as cl
from collectives import names

LATE = (
    "asyncio",
    "concurrent",
    "difflib",
    "hashlib",
    "html",
    "json",
    "logging",
    "pathlib",
    "secrets",
    "selectors",
    "socket",
    "ssl",
    "subprocess",
)
LATE_OF_OURS = (
    "collectives.cli",
    "collectives.compression.fp8",
    "collectives.exact",
    "collectives.last",
    "collectives.launch",
    "collectives.launchers",
    "collectives.measure",
    "collectives.packing",
    "collectives.panel",
    "collectives.simulation",
    "collectives.supervise",
    "collectives.svg",
    "collectives.symbolic",
    "collectives.topology",
)

BEGIN = """
import sys
import numpy as np
before = set(sys.modules)
import collectives as cl
"""
END = """
print(*sorted(set(sys.modules) - before))
"""


def loaded(program: str = "") -> set[str]:
    """Return the modules that a program loads besides NumPy and its own."""
    # A measurement of coverage would load modules of its own.
    env = {name: text for name, text in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program + END],
        env=env,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return set(done.stdout.split())


def of(names: Collection[str], modules: Collection[str]) -> set[str]:
    """Return the modules that are one of these, or within one."""
    return {one for one in modules for name in names if f"{one}.".startswith(f"{name}.")}


def test_a_first_call_loads_what_it_needs_and_no_more() -> None:
    modules = loaded("cl.allreduce, cl.init, cl.local")
    assert "collectives.quick" in modules
    assert of(LATE, modules) == set()
    assert of(LATE_OF_OURS, modules) == set()


def test_the_import_alone_loads_the_compiled_part_and_no_numpy() -> None:
    program = "import sys, collectives; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    modules = set(done.stdout.split())
    assert "numpy" not in modules
    ours = {name for name in of(["collectives"], modules) if "_native" not in name}
    assert ours == {"collectives", "collectives._ffi", "collectives.errors"}


@pytest.mark.parametrize("command", [["list"], ["verify", "ring", "--ranks", "3"]])
def test_collbench_and_collrun_begin_without_numpy(command: list[str]) -> None:
    program = f"""
import sys
sys.modules["numpy"] = None
import collectives.launch
from collectives.cli.app import collbench
collbench.main({command})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


FORKED = """
import os, signal, sys, threading, time
import collectives as cl
loads = threading.Thread(target=lambda: cl.local(1))
loads.start()
time.sleep({delay})
if (child := os.fork()) == 0:
    signal.alarm(20)
    cl.verify("ring", p=3)
    os._exit(0)
loads.join()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("delay", [0, 0.02, 0.1])
def test_a_process_that_is_forked_while_a_thread_loads_does_not_wait_for_it(delay: float) -> None:
    program = FORKED.format(delay=delay)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_can_be_caught_where_nothing_is_loaded_any_more() -> None:
    program = """
import builtins, os
import collectives as cl

class Held:
    def __init__(self, comm):
        self.comm = comm

    def __del__(self, write=os.write):
        try:
            self.comm.barrier()
        except cl.CollectiveError as error:
            write(1, str(error).encode())

builtins.held = Held(cl.init())
builtins.held.comm.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "has closed this communicator" in done.stdout
    assert done.stderr == ""
    assert issubclass(vars(cl)["PeerLostError"], vars(cl)["CollectiveError"])


def test_a_lack_of_the_compiled_part_is_told_by_its_name(tmp_path: Path) -> None:
    package = Path(cl.__file__).parent
    shutil.copytree(package, tmp_path / "collectives", ignore=shutil.ignore_patterns("_native*"))
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import collectives"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "cannot be loaded (No module named 'collectives._native')" in done.stderr


def test_a_numpy_that_is_being_loaded_has_no_values_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", ModuleType("numpy"))
    assert names.real(1.5) == 1.5
    assert names.integer("x") is None


def test_every_public_name_is_found_where_it_is_said_to_be() -> None:
    late = set(cl._LATE)
    assert late < set(cl.__all__)
    at_once = set(cl.__all__) - late - {"__version__"}
    assert all(issubclass(getattr(cl, name), cl.CollectiveError) for name in at_once)
    assert {name for name in cl.__all__ if not hasattr(cl, name)} == set()


def test_names_that_are_loaded_late_are_there() -> None:
    late = ["FP8", "LastCall", "Moment", "Simulation", "TopK", "Topology", "allreduce", "simulate"]
    program = f"""
names = {late}
assert not any(name in vars(cl) for name in names)
assert set(dir(cl)) >= set(cl.__all__)
assert "collectives.simulation" not in sys.modules
assert [getattr(cl, name).__name__ for name in names] == names
assert all(name in vars(cl) for name in names)
"""
    assert "collectives.simulation" in loaded(program)
    with pytest.raises(AttributeError, match="module 'collectives' has no attribute 'simulator'"):
        cl.simulator  # type: ignore[attr-defined]  # noqa: B018  it is asked for, no more


def test_the_import_loads_no_other_package() -> None:
    packages = {name.partition(".")[0] for name in loaded()}
    assert packages - sys.stdlib_module_names == {"collectives", "_cffi_backend"}


STOPPED = """
import builtins
theirs = builtins.__import__

def stop(name, globals=None, locals=None, fromlist=(), level=0):
    if name == "collectives._native" and isinstance(fromlist, list):  # as C asks for it
        raise {error}
    return theirs(name, globals, locals, fromlist, level)

builtins.__import__ = stop
import collectives.quick
"""


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (STOPPED.format(error="KeyboardInterrupt"), ["KeyboardInterrupt"]),
        (STOPPED.format(error="MemoryError('none')"), ["MemoryError: none", "stands above"]),
        (
            "import sys; sys.modules['numpy'] = None; import collectives as cl; cl.init",
            ["import of numpy halted"],
        ),
    ],
    ids=["ctrl_c", "memory", "numpy"],
)
def test_what_ends_an_import_is_told_by_its_name(before: str, words: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", before], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode != 0
    for word in words:
        assert word in ended.stderr, ended.stderr
    assert "KeyboardInterrupt" not in words or "ImportError" not in ended.stderr


def test_plain_calls_and_groups_load_nothing_more() -> None:
    program = """
comm, = cl.local(1)
x = np.ones(1)
comm.allreduce(x)
with comm.group():
    comm.allreduce(x)
"""
    assert loaded(program) <= loaded("cl.allreduce, cl.local")


@pytest.mark.parametrize(
    ("program", "needed", "spared"),
    [
        ("cl.init()", "collectives.launchers.detect", "asyncio"),
        ("cl.local(1)[0].barrier(async_op=True).wait()", "concurrent.futures", "asyncio"),
        ("cl.draw('ring', 4)", "collectives.svg", "asyncio"),
        ("cl.draw('ring', 4, format='text')", "collectives.drawing", "collectives.svg"),
        ("import ml_dtypes", "ml_dtypes", "asyncio"),
    ],
)  # fmt: skip
def test_the_first_use_loads_what_it_needs(program: str, needed: str, spared: str) -> None:
    modules = loaded(program)
    assert needed in modules
    assert of([spared], modules) == set()


def test_dtypes_that_join_after_the_import_are_known() -> None:
    program = """
assert "ml_dtypes" not in sys.modules
import ml_dtypes
comm, = cl.local(1)
for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
    x = np.full(3, 2, dtype)
    assert comm.allreduce(x) is x
    assert x.dtype == dtype
    assert x.tolist() == [2, 2, 2]
"""
    assert "ml_dtypes" in loaded(program)


def test_a_handle_can_be_awaited_where_asyncio_comes_late() -> None:
    program = """
comm, = cl.local(1)
x = np.ones(2)
with comm.group():
    handle = comm.allreduce(x, async_op=True)
import asyncio
async def main():
    return await handle
assert asyncio.run(main()) is x
"""
    assert "asyncio" in loaded(program)


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """The import of a submodule sets an attribute of the package."""
    folder = Path(cl.__file__).parent
    assert [n for n in cl.__all__ if (folder / f"{n}.py").exists() or (folder / n).is_dir()] == []
