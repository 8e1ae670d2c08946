# SPDX-License-Identifier: Apache-2.0
"""What hwloc says of a machine, and that whatever its library does leaves us with /sys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import collectives as cl
from collectives.topology import hwloc, hwloc_library, machine

# Two sockets of two cores; one has a second node, of other memory, without CPUs of its own.
TWO_SOCKETS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x0000000f">
    <object type="Package" os_index="0" cpuset="0x00000005">
      <object type="NUMANode" os_index="3" cpuset="0x00000005"/>
      <object type="NUMANode" os_index="0" cpuset="0x00000005"/>
      <object type="L3Cache" cpuset="0x00000005">
        <object type="Core" os_index="0" cpuset="0x00000001"/>
        <object type="Core" os_index="1" cpuset="0x00000004"/>
      </object>
    </object>
    <object type="Package" os_index="7" cpuset="0x0000000a">
      <object type="NUMANode" os_index="1" cpuset="0x0000000a"/>
    </object>
  </object>
</topology>
"""

# What it exports is overwritten as it is freed. HWLOC_DOES says what goes wrong.
LIBRARY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int does(const char* what) {
  const char* said = getenv("HWLOC_DOES");
  return said != NULL && strcmp(said, what) == 0;
}
int hwloc_topology_init(void** topology) {
  *topology = malloc(1);
  return does("no beginning") ? -1 : 0;
}
int hwloc_topology_set_flags(void* topology, unsigned long flags) { return flags == 1 ? 0 : -1; }
int hwloc_topology_load(void* topology) {
  const char* others[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_COMPONENTS"};
  for (int i = 0; i < 4; ++i) if (getenv(others[i]) != NULL) return -1;
  if (does("crash")) abort();
  if (does("feast") && malloc(3UL << 30) == 0) abort();
  if (does("hang")) pause();
  return does("no machine") ? -1 : 0;
}
int hwloc_topology_export_xmlbuffer(void* topology, char** text, int* length, unsigned long flags) {
  if (does("no XML")) return -1;
  FILE* file = fopen(getenv("HWLOC_SAYS"), "r");
  *text = malloc(1 << 16);
  *length = (int)fread(*text, 1, 1 << 16, file);
  (*text)[(*length)++] = 0;
  fclose(file);
  return 0;
}
void hwloc_free_xmlbuffer(void* topology, char* text) {
  if (text != NULL) memset(text, 'x', 1 << 16);
  free(text);
}
void hwloc_topology_destroy(void* topology) { free(topology); }
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders "whole", "partial" and "garbage" with a library of hwloc's name in each."""
    folder = tmp_path_factory.mktemp("hwloc")
    compiler = [*os.environ.get("CXX", "g++").split(), "-x", "c", "-shared", "-fPIC"]
    for name, text in (("whole", LIBRARY), ("partial", "int hwloc_topology_init;")):
        (folder / name).mkdir()
        (folder / f"{name}.c").write_text(text)
        files = [str(folder / f"{name}.c"), "-o", str(folder / name / hwloc_library.NAME)]
        subprocess.run([*compiler, *files], check=True, timeout=60)
    (folder / "garbage").mkdir()
    (folder / "garbage" / hwloc_library.NAME).write_bytes(b"\x7fELF garbage")
    return folder


@pytest.fixture
def says(libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the whole library be the machine's; return the file of which it tells."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries / "whole"))
    monkeypatch.setenv("HWLOC_SAYS", str(tmp_path / "said.xml"))
    (tmp_path / "said.xml").write_text(TWO_SOCKETS)
    return tmp_path / "said.xml"


def test_the_library_tells_of_two_sockets(says: Path) -> None:
    found = machine.rooms()
    assert found.source == "hwloc"
    assert found.package == {0: 0, 2: 0, 1: 7, 3: 7}
    assert found.numa == {0: 0, 2: 0, 1: 1, 3: 1}
    assert found.around([1, 3, 0]) == (7, 1)


@pytest.mark.usefixtures("says")
def test_places_say_who_told_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 3})
    with cl.local(1)[0] as comm:
        topology = comm.topology(measure=False)
        place = topology.places[0]
        assert (place.package, place.numa, place.cpus, place.source) == (7, 1, (1, 3), "hwloc")
        topology.save(tmp_path / "here.json")
        assert cl.Topology.load(tmp_path / "here.json").places[0].source == "hwloc"
        monkeypatch.setenv("HWLOC_DOES", "no machine")
        assert comm.topology(measure=False).places[0].source == "/sys"


@pytest.mark.usefixtures("says")
def test_variables_that_stand_for_another_machine_are_not_heeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("XMLFILE", "SYNTHETIC", "FSROOT", "COMPONENTS"):
        monkeypatch.setenv(f"HWLOC_{name}", "package:8 core:4 pu:2")
    assert machine.rooms().source == "hwloc"
    assert os.environ["HWLOC_XMLFILE"] == "package:8 core:4 pu:2"


@pytest.mark.usefixtures("says")
@pytest.mark.parametrize(
    "fault", ["no beginning", "no machine", "no XML", "crash", "feast", "hang"]
)
def test_a_library_that_fails_leaves_us_with_sys(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hwloc, "PATIENCE", 0.5 if fault == "hang" else 30.0)
    monkeypatch.setenv("HWLOC_DOES", fault)
    ends = subprocess.TimeoutExpired if fault == "hang" else subprocess.CalledProcessError
    with pytest.raises(ends):
        hwloc.told()
    assert hwloc.by_hwloc() is None


@pytest.mark.parametrize("library", ["partial", "garbage"])
def test_another_library_leaves_us_with_sys(
    library: str, libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries / library))
    assert hwloc.by_hwloc() is None
    done = subprocess.run(
        [sys.executable, str(hwloc.ASKED)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("libhwloc.so.15: ")


def test_without_a_library_there_is_a_reason() -> None:
    with pytest.raises(OSError, match="libnowhere"):
        hwloc_library.opened("libnowhere.so.15")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no XML",
        TWO_SOCKETS[:400],
        "<topology/>",
        TWO_SOCKETS.replace('os_index="7"', 'os_index="-7"'),
        TWO_SOCKETS.replace('os_index="7"', 'os_index="2147483648"'),
        TWO_SOCKETS.replace('os_index="7"', 'os_index="seven"'),
        TWO_SOCKETS.replace("0x0000000a", "0xf...f"),
        TWO_SOCKETS.replace("UTF-8", "UTF-99"),
    ],
)
def test_what_cannot_be_read_leaves_us_with_sys(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hwloc, "told", TWO_SOCKETS.encode)
    assert machine.rooms().source == "hwloc"
    monkeypatch.setattr(hwloc, "told", text.encode)
    assert machine.rooms() == machine.by_sys()


def test_sockets_without_numbers_are_counted() -> None:
    bare = TWO_SOCKETS.replace('type="Package" os_index="7"', 'type="Package"')
    found = hwloc.read_xml(bare)
    assert found is not None
    assert found.package == {0: 0, 2: 0, 1: 1, 3: 1}


def test_masks_of_cpus() -> None:
    assert hwloc.cpus_in_mask("0x00000003") == [0, 1]
    assert hwloc.cpus_in_mask("0x00000001,,0x80000000") == [31, 64]
    assert hwloc.cpus_in_mask("") == []


@pytest.mark.parametrize("program", ["/usr/bin/myapp", "", None])
def test_a_program_with_python_inside_is_not_begun_again(
    program: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(subprocess, "run", None)  # whoever calls it fails
    assert machine.rooms() == machine.by_sys()


def installed() -> bool:
    """Return whether this machine has the library."""
    try:
        hwloc_library.opened()
    except OSError:
        return False
    return True


def test_the_real_library_agrees_with_sys() -> None:
    if not installed():
        pytest.skip("there is no libhwloc.so.15: scripts/hwloc.sh installs it")
    found = hwloc.by_hwloc()
    assert found is not None
    assert found.source == "hwloc"
    sys_says = machine.by_sys()
    assert (found.package, found.numa) == (sys_says.package, sys_says.numa)
