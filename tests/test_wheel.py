# SPDX-License-Identifier: Apache-2.0
"""The wheel works in an empty environment, away from the sources, and holds what it should."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# The build may have to compile everything, and the installation fetches the dependencies.
pytestmark = pytest.mark.timeout(300)

PROGRAM = """
import threading
import numpy as np
import collectives as cl

assert "site-packages" in cl.__file__, cl.__file__
comms = cl.local(3)
arrays = [np.full(1000, rank + 1.0) for rank in range(3)]
threads = [threading.Thread(target=c.allreduce, args=(a,)) for c, a in zip(comms, arrays)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for comm in comms:
    comm.close()
assert all((array == 6.0).all() for array in arrays), arrays
print("reduced by threads")
"""

RANK_PROGRAM = """
import numpy as np
import collectives as cl

with cl.init() as comm:
    total = comm.allreduce(np.arange(4.0) * (comm.rank + 1))
    assert (total == np.arange(4.0) * 3).all(), total
print("reduced by processes")
"""


def run(*command: str | Path, folder: Path) -> str:
    """Run ``command`` in ``folder`` and return what it printed; show all of it if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built from the objects of the last build where they are current."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    # A native build beside us may bring the same library up to date (cmake/CollBuiltCore.cmake).
    with (ROOT / "build" / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(*pip, "--wheel-dir", folder, ROOT, folder=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bin folder of an environment with nothing but the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    binaries = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(binaries / "python")]
    run(*pip, "install", "--quiet", "--no-compile", wheel, folder=folder)
    return binaries


def test_one_wheel_serves_every_python_from_3_11(wheel: Path) -> None:
    name, _, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("pycollectives", "cp311", "abi3")
    assert platform.startswith(("linux_", "manylinux_"))


def test_content(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert [name for name in names if name.endswith(".so")] == ["collectives/_native.abi3.so"]
    assert {"collectives/__init__.py", "collectives/py.typed"} <= set(names)
    assert {top for top in tops if not top.endswith(".dist-info")} == {"collectives"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any("__pycache__" in name or "test" in name for name in names)


def test_extension_exports_its_entry_only(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        module = archive.extract("collectives/_native.abi3.so", tmp_path)
    symbols = run("nm", "-D", "--defined-only", module, folder=tmp_path).split()[2::3]
    assert symbols == ["PyInit__native"]


def test_libnccl_exports_its_functions_only(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        library = archive.extract("collectives/nccl_library/libnccl.so.2", tmp_path)
    symbols = run("nm", "-D", "--defined-only", library, folder=tmp_path).split()[2::3]
    listed = (ROOT / "native/nccl/functions.txt").read_text(encoding="utf-8").splitlines()
    names = [name for name in listed if name.startswith("nccl")]
    assert sorted(symbols) == sorted([*names, *(f"p{name}" for name in names)])


def test_threads_reduce_from_another_folder(environment: Path, tmp_path: Path) -> None:
    printed = run(environment / "python", "-P", "-c", PROGRAM, folder=tmp_path)
    assert printed == "reduced by threads\n"


def test_collrun_starts_ranks_that_reduce(environment: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RANK_PROGRAM, encoding="utf-8")
    printed = run(environment / "collrun", "-n", "2", script, folder=tmp_path)
    assert printed.count("reduced by processes") == 2
