# SPDX-License-Identifier: Apache-2.0
"""The documentation is true: its commands run, its links lead somewhere, its pages are current."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import collectives as cl
from collectives import environment, errors, nccl
from collectives._ffi import check, ffi, lib
from collectives.lowering import lowering
from collectives.names import KINDS, algorithm_index
from scripts import cheapest, generate_docs
from tests import architecture_rules, pages
from tests.shares import some_or_all

ROOT = Path(__file__).resolve().parents[1]
README, HACKING = ROOT / "README.md", ROOT / "HACKING.md"
WITH_COMMANDS = [README, HACKING, ROOT / "CONTRIBUTING.md"]
HEADER = architecture_rules.interface(ROOT)
ALL = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

# Commands that other tests run, and which.
INSTALL = "python3 -m venv ../there && source ../there/bin/activate && pip install ."
ELSEWHERE = {
    INSTALL: "tests/test_wheel.py",
    "source .venv/bin/activate": "tests/test_tooling.py",
    "python -m scripts.generate_docs": "tests/test_docs.py",  # --check, and by hand
    "python -m pytest -q tests/test_algorithm_table.py": "tests/test_algorithm_table.py",
}
NOT_COPIED = ("build", "dist", ".*", "__pycache__")


def ident(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# ---- generated pages -----------------------------------------------------------------------------


@some_or_all(24)
def test_generated_pages_are_current(share: int) -> None:
    assert generate_docs.stale(ROOT, generate_docs.documents(share=share)) == []
    assert generate_docs.left_over(ROOT) == []


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout to run commands in, with the programs that pages name."""
    folder = tmp_path_factory.mktemp("docs") / "checkout"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    for page in ALL:
        for fence in pages.fences(read(page)):
            if fence.language == "python" and fence.name:
                (folder / fence.name).write_text(fence.text, encoding="utf-8")
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as its reader would, within a minute."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("COLLECTIVES")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return subprocess.run(
        command,
        cwd=folder,
        env=kept | {"PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.all_cases  # it makes all pages
def test_stale_missing_and_left_over_files_are_named(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "checkout"
    shutil.copytree(workspace, folder)
    (folder / "docs/algorithms/allreduce_ring.md").unlink()
    (folder / "docs/algorithms/allreduce_old.svg").write_text("old", encoding="utf-8")
    readme = read(folder / "README.md")
    assert "| Gloo (torch) 2" in readme
    (folder / "README.md").write_text(
        readme.replace("| Gloo (torch) 2", "| Gloo (torch) 1"), encoding="utf-8"
    )
    assert generate_docs.main(["--root", str(folder), "--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{what}: run python -m scripts.generate_docs"
        for what in (
            "docs/algorithms/allreduce_ring.md is missing",
            "README.md is stale",
            "docs/algorithms/allreduce_old.svg belongs to no algorithm",
        )
    ]
    assert generate_docs.main(["--root", str(folder)]) == 0
    assert generate_docs.main(["--root", str(folder), "--check"]) == 0
    assert read(folder / "README.md") == readme
    assert not (folder / "docs/algorithms/allreduce_old.svg").exists()


def test_a_file_without_its_marks_is_named(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- table:begin -->\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks its marks"):
        generate_docs.between(page, {"table": "new"})


def test_costs_are_counted_on_the_schedules() -> None:
    counted = {
        ("allreduce", "recursive_doubling"): cheapest.Cost(3, 3.0),
        ("allreduce", "ring"): cheapest.Cost(14, 1.75),
        ("broadcast", "binomial"): cheapest.Cost(3, 3.0),
        ("gather", "linear"): cheapest.Cost(7, 7 / 8),
        ("barrier", "dissemination"): cheapest.Cost(3, 0.0),
    }
    assert {key: cheapest.cost(*key, 8) for key in counted} == counted
    assert cheapest.cost("alltoall", "pairwise", 8).share == 1.0


def test_the_cheapest_is_found_for_every_size() -> None:
    few, middle, short = cheapest.Cost(3, 3.0), cheapest.Cost(5, 2.0), cheapest.Cost(6, 1.75)
    assert cheapest.cheapest(few, [middle, short]) == (0.0, 2.0)
    assert cheapest.cheapest(middle, [few, short]) == (2.0, 4.0)
    assert cheapest.cheapest(short, [few, middle]) == (4.0, float("inf"))
    assert cheapest.cheapest(cheapest.Cost(4, 3.0), [few]) is None
    assert cheapest.cheapest(cheapest.Cost(6, 2.9), [few, middle]) is None
    assert cheapest.cheapest(few, [few]) == (0.0, float("inf"))


def test_one_algorithm_is_taken_for_every_size() -> None:
    for kind in KINDS:
        for p in cheapest.RANKS:
            told = [cheapest.on_one_machine(a, p) for a in cl.algorithms(kind) if a.fits(p)]
            assert [words for words in told if words == "always" or "up to" in words]
            assert [words for words in told if words == "always" or "above" in words]


# ---- commands and programs -----------------------------------------------------------------------


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))


def presets(kind: str) -> set[str]:
    return {preset["name"] for preset in json.loads(read(ROOT / "CMakePresets.json"))[kind]}


def wrong_if_long(command: str) -> str | None:
    """For a command that takes more than a minute what is wrong with it, or ""; else None."""
    if command in ELSEWHERE:
        return "" if (ROOT / ELSEWHERE[command]).exists() else "its test is gone"
    made = re.fullmatch(r"make ([\w-]+)", command)
    if made:
        return "" if made[1] in make_targets() else f"there is no target {made[1]}"
    preset = re.match(r"(cmake --workflow|ctest) --preset (\w+)", command)
    if preset:
        kind = "testPresets" if preset[1] == "ctest" else "workflowPresets"
        return "" if preset[2] in presets(kind) else f"there is no preset {preset[2]}"
    return None


BLOCKS = [
    pytest.param(fence, id=f"{ident(page)}-{number}")
    for page in WITH_COMMANDS
    for number, fence in enumerate(pages.fences(read(page)))
    if fence.commands
]
PROGRAMS = [
    pytest.param(fence, id=f"{ident(page)}-{number}")
    for page in ALL
    for number, fence in enumerate(pages.fences(read(page)))
    if fence.language == "python" and not fence.name
    if page.name != "nccl.md"  # tests/nccl/test_page.py runs its programs, on a libnccl
]


@pytest.mark.processes
@pytest.mark.parametrize("fence", BLOCKS)
def test_commands_run(fence: pages.Fence, workspace: Path) -> None:
    printed = ""
    for command in fence.commands:
        wrong = wrong_if_long(command)
        if wrong is None:
            done = run(workspace, "bash", "-ec", command)
            wrong = done.stderr + done.stdout if done.returncode else ""
            printed += done.stdout
        assert not wrong, f"{command}: {wrong}"
    if fence.output is not None:  # ranks print in any order
        assert sorted(printed.splitlines()) == sorted(fence.output.splitlines())


def test_commands_are_found_and_wrong_ones_noticed() -> None:
    commands = [command for block in BLOCKS for command in block.values[0].commands]  # type: ignore[union-attr]
    assert {"collrun -n 4 sum.py", "make bench", "make test", "make check"} <= set(commands)
    assert wrong_if_long("make tea") == "there is no target tea"
    assert wrong_if_long("cmake --workflow --preset fast") == "there is no preset fast"
    assert wrong_if_long("collbench list") is None


@pytest.mark.parametrize("fence", PROGRAMS)
def test_programs_print_what_is_shown(fence: pages.Fence, workspace: Path) -> None:
    done = run(workspace, sys.executable, "-c", fence.text)
    assert done.returncode == 0, done.stderr
    if fence.output is not None:
        assert done.stdout.split() == fence.output.split()


def test_c_programs_compile(tmp_path: Path) -> None:
    found = [
        fence.text for page in ALL for fence in pages.fences(read(page)) if fence.language == "c"
    ]
    assert found
    for text in found:
        source = tmp_path / "total.c"
        source.write_text(text, encoding="utf-8")
        compiler = [*os.environ.get("CXX", "g++").split(), "-x", "c", "-std=c11", "-fsyntax-only"]
        include = str(ROOT / "native/include")
        done = run(tmp_path, *compiler, "-Wall", "-Wextra", "-Werror", "-I", include, str(source))
        assert done.returncode == 0, done.stderr


# ---- what pages name -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", ALL, ids=ident)
def test_links_lead_somewhere(page: Path) -> None:
    assert pages.broken_links(page) == []


def test_broken_links_are_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](#one-two) [b](gone.md) [c](#three) [d](http://x/)\n")
    assert pages.broken_links(page) == [
        "page.md links to gone.md: there is no such file",
        "page.md links to #three: there is no such heading",
    ]


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [README]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            waiting += pages.targets(page)
    assert set(ALL) - reached == set()


@pytest.mark.parametrize("page", ALL, ids=ident)
def test_names_exist(page: Path) -> None:
    text = read(page)
    for name in re.findall(r"\b(?:coll_(?!limits)|COLL_)\w+", text):
        assert name in HEADER, f"{name} is not in collectives.h"
    for name in re.findall(r"\bcl\.(\w+)", text):
        assert hasattr(cl, name), f"there is no collectives.{name}"
    for name in re.findall(r"\bcomm\.(\w+)\(", text):
        known = hasattr(cl.Communicator, name) or hasattr(nccl.Communicator, name)
        assert known, f"there is no Communicator.{name}"
    for name in re.findall(r"`make ([\w-]+)`", text):
        assert name in make_targets(), f"there is no target {name}"
    for name in pages.code(text):
        if re.fullmatch(r"(?!build/|dist/)[\w-]+(/[\w.-]+)+/?", name):
            assert (ROOT / name).exists() or (ROOT / "native" / name).exists(), f"no {name}"


def test_errors_are_all_explained() -> None:
    rows = {
        cells[1].strip("` "): cells[2]
        for line in read(ROOT / "docs/errors.md").splitlines()
        if (cells := line.split("|"))[0] == "" and "COLL_" in line
    }
    statuses = re.findall(r"\b(COLL_\w+) = (\d+)", HEADER.partition("} coll_status;")[0])
    assert len(statuses) == 13
    for name, number in statuses:
        cls = errors.CLASSES.get(int(number))
        if cls is not None:
            bases = {base.__name__ for base in cls.__bases__} - {"CollectiveError"}
            assert {cls.__name__, *bases} == set(re.findall(r"`(\w+)`", rows[name])), name
    assert set(rows) == {name for name, number in statuses if int(number) in errors.CLASSES}


def test_variables_are_those_that_python_reads() -> None:
    page = read(ROOT / "docs/environment.md")
    known = {environment.RANK, environment.SIZE, environment.JOB, environment.ATTEMPT}
    assert known | {environment.TIMEOUT} <= set(re.findall(r"`(COLLECTIVES_\w+)`", page))


def test_encodings_are_those_that_are_shown() -> None:
    page = read(ROOT / "docs/encoding.md")
    shown = re.findall(r"<!-- (\w+) (\w+) (\w+) (\d+) -->\n```text\n(.*?)```", page, re.DOTALL)
    assert [level for level, *_ in shown] == ["schedule", "plan"]
    for level, kind, name, p, words in shown:
        data, length = ffi.new("int32_t **"), ffi.new("size_t *")
        index = algorithm_index(kind, name)
        if level == "schedule":
            check(lib.coll_schedule(index, int(p), 0, data, length))
        else:
            check(lib.coll_plan(index, int(p), 0, lowering("staged", 4, 0), data, length))
        try:
            assert [int(word) for word in words.split()] == ffi.unpack(data[0], length[0])
        finally:
            lib.coll_free(data[0])


# ---- README and HACKING --------------------------------------------------------------------------


def test_the_first_screen() -> None:
    screen = "\n".join(read(README).splitlines()[:56])
    first, *_ = pages.prose(screen).partition("# pycollectives\n\n")[2].split("\n\n")
    assert re.fullmatch(r"[^.!]+\.", first.replace("\n", " ")), "one sentence"
    blocks = pages.fences(screen)
    assert blocks[0].commands == [INSTALL]
    (program,) = [block for block in blocks if block.language == "python"]
    assert len([line for line in program.text.splitlines() if line]) == 5
    assert any(block.output for block in blocks)
    assert re.search(r"!\[[^\]]+\]\(docs/algorithms/\w+\.svg\)", screen)
    for words in ("Gloo", "MPICH", "Open MPI", "pycollectives |", "make test"):
        assert words in screen
    assert re.search(r"measured on 20\d\d-\d\d-\d\d", screen)
    assert not re.search(r"badge|shields", read(README))


@pytest.mark.parametrize(("mark", "target"), [("table", "bench-peers"), ("hosts", "bench-hosts")])
def test_the_figures_have_date_machine_and_command(mark: str, target: str) -> None:
    _, _, rest = read(README).partition(f"<!-- {mark}:begin -->")
    figures = rest.partition(f"<!-- {mark}:end -->")[0]
    rows = [line for line in figures.splitlines() if line.startswith("| ")]
    assert len(rows) > 2
    for pattern in (f"make {target}", r"20\d\d-\d\d-\d\d", r"\d+ cores", "commit"):
        assert re.search(pattern, figures)


def test_the_map_shows_every_folder_and_python_module() -> None:
    shown = pages.fences(read(HACKING))[0].text
    native = shown.partition("native/")[2].partition("\ncollectives/")[0]
    there = {path.parent.name for path in (ROOT / "native").glob("*/*") if path.is_file()}
    assert set(re.findall(r"^  (\w+)/", native, re.MULTILINE)) == there
    modules = shown.partition("\ncollectives/")[2].partition("\nbench/")[0]
    assert set(re.findall(r"\b\w+\.py\b", modules)) == {
        path.name for path in (ROOT / "collectives").glob("*.py")
    }


def test_the_arrows_are_those_that_are_enforced() -> None:
    shown = pages.fences(read(HACKING))[1].text
    lines = (line.split("->") for line in shown.splitlines() if "->" in line)
    arrows = {left.strip(): {name.strip() for name in right.split(",")} for left, right in lines}
    assert arrows.pop("communicator") == {"all but abi"}
    assert arrows.pop("abi") == {"all"}
    there = {path.parent.name for path in (ROOT / "native").glob("*/*") if path.is_file()}
    for folder, reached in architecture_rules.ARROWS.items():
        if folder in there and reached is not None:
            assert arrows.pop(folder, set()) == reached & there, folder
    assert arrows == {}
