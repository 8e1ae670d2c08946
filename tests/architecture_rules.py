# SPDX-License-Identifier: Apache-2.0
"""The rules of the house, as functions: each returns one sentence per violation under a root."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

LINES_PER_FILE = 400
LINES_PER_FUNCTION = 60
NATIVE = {".cc", ".h", ".c", ".inc", ".cu"}
SOURCES = NATIVE | {".py"}

# The arrows of the design. A folder may include itself, base, and what its arrows reach: who reads
# plans also reads the schedules that plans are made of. None: all but abi.
ARROWS: dict[str, set[str] | None] = {
    "base": set(),
    "include": set(),
    "schedule": set(),
    "topology": set(),
    "kernels": set(),
    "transport": set(),
    "ucx": {"transport"},
    "plan": {"schedule"},
    "algorithms": {"schedule", "topology"},
    "prove": {"schedule", "plan"},
    "simulate": {"schedule", "plan", "topology"},
    "engine": {"plan", "kernels", "transport"},
    "cuda": {"plan", "kernels", "transport"},
    "probe": {"transport", "topology"},
    "sparse": {"schedule", "kernels"},
    "select": {"algorithms", "simulate", "plan", "topology"},
    "mailbox": {"transport"},
    "bootstrap": {"transport"},
    "bindings": set(),
    "communicator": None,
    "abi": None,
    # A library of its own over the C interface; below that only what meets, and what multiplies.
    "nccl": {"bootstrap", "kernels", "topology"},
}
# Who may include the C interface: the layers that speak it.
SPEAKS_C = {"include", "bindings", "communicator", "abi", "nccl"}

# Registries and model hubs, in pieces: this file is looked at too.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("download", "pytorch", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("proxy", "golang", "org"),
        ("huggingface", "co"),
    )
]


def files(root: Path) -> list[Path]:
    """All files that git tracks or would add, or, outside a repository, all files.

    But for those of an environment of Python's that a reader has made here.
    """
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
        found = [root / name for name in listed.stdout.split("\0") if name]
    else:
        found = list(root.rglob("*"))
    environments = {path.parent for path in found if path.name == "pyvenv.cfg"}
    return sorted(
        path for path in set(found) if path.is_file() and environments.isdisjoint(path.parents)
    )


def sources(root: Path, suffixes: set[str] = SOURCES) -> Iterator[tuple[str, str]]:
    """(path below root, text) of every source file."""
    for path in files(root):
        if path.suffix in suffixes:
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def forbidden_includes(root: Path) -> list[str]:
    wrong = []
    for name, text in sources(root, NATIVE):
        if not name.startswith("native/"):
            continue
        own = name.split("/")[1]
        for target in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
            public = "/" not in target and target.startswith("collectives")
            folder = "include" if public else target.split("/")[0]
            if not _may_include(own, folder):
                wrong.append(f'{name} includes "{target}": {own} must not depend on {folder}')
    return wrong


def _may_include(own: str, folder: str) -> bool:
    if own not in ARROWS or folder not in ARROWS:
        return False
    if folder == "include":
        return own in SPEAKS_C
    allowed = _reached(own)
    if allowed is None:
        return folder == own or folder not in {"abi", "nccl"}
    return folder in {own, "base"} or folder in allowed


def _reached(own: str) -> set[str] | None:
    arrows = ARROWS[own]
    if arrows is None:
        return None
    return arrows.union(*(_reached(folder) or set() for folder in arrows))


def forbidden_imports(root: Path) -> list[str]:
    """Python files other than collectives/_ffi.py that import the compiled module."""
    wrong = []
    for name, text in sources(root, {".py"}):
        imported = {module for node in ast.walk(ast.parse(text)) for module in _imports(node)}
        if name != "collectives/_ffi.py" and "collectives._native" in imported:
            wrong.append(f"{name} imports collectives._native: only collectives/_ffi.py may")
    return wrong


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = node.module or "collectives"
        return [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return []


def long_files(root: Path) -> list[str]:
    counted = ((name, len(text.splitlines())) for name, text in sources(root))
    return [
        f"{name} has {lines} lines, above {LINES_PER_FILE}: split it by idea"
        for name, lines in counted
        if lines > LINES_PER_FILE
    ]


def long_functions(root: Path) -> list[str]:
    wrong = []
    for name, text in sources(root):
        functions = python_functions(text) if name.endswith(".py") else native_functions(text)
        for function, line, lines in functions:
            if lines >= LINES_PER_FUNCTION:
                wrong.append(f"{name}:{line}: {function} has {lines} lines: split it")
    return wrong


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, line, lines) of every function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def native_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, line, lines) of every function of C or C++, by counting braces.

    A brace opens a function where the text before it, back to the last ``;`` or brace, holds a
    parenthesis and is not that of a namespace, class or enum.
    """
    plain = _without_initialisers(_without_literals(text))
    depth, start, head, name = 0, 0, 0, ""  # depth: of braces inside the function
    for match in re.finditer(r"[{};]", plain):
        at, mark = match.start(), match.group()
        if depth == 0:
            before = plain[head:at]
            if mark == "{" and (named := _function_name(before)):
                depth, name = 1, named
                labels = re.match(r"\s*(?:(?:public|private|protected)\s*:\s*)*", before)
                start = head + (labels.end() if labels else 0)
            head = at + 1
            continue
        depth += {"{": 1, "}": -1, ";": 0}[mark]
        if depth == 0:
            line = plain.count("\n", 0, start) + 1
            yield name, line, plain.count("\n", start, at) + 1
            head = at + 1


def _without_literals(text: str) -> str:
    """``text`` with comments, strings and preprocessor lines blanked, line breaks kept."""
    pattern = r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^\s*#(?:\\\n|[^\n])*"
    return re.sub(
        pattern,
        lambda match: "\n" * match.group().count("\n"),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )


def _without_initialisers(text: str) -> str:
    """``text`` with the braces of member initialisers, ``: n_{n} {``, blanked."""
    pattern = re.compile(r"(?<=[\w>])\{[^{};]*\}(?=\s*[,{})])")
    found = 1
    while found:  # from the innermost outwards
        text, found = pattern.subn(lambda match: re.sub(r"\S", " ", match.group()), text)
    return text


def _function_name(before: str) -> str:
    outside = re.sub(r"template\s*<[^>]*>|alignas\([^)]*\)|\[\[.*?\]\]", "", before)
    if re.search(r"\b(namespace|class|struct|union|enum)\b[^()]*$|=\s*$", outside):
        return ""
    match = re.search(r"([~\w:]+|operator\S+)\s*\(", outside)
    return match.group(1) if match else ""


def missing_licence(root: Path) -> list[str]:
    """Source files whose first line (the second below a ``#!``) does not name the licence."""
    wrong = []
    for name, text in sources(root, SOURCES | {".pyi", ".sh", ".cmake"}):
        lines = text.splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
            wrong.append(f"{name} does not begin with its SPDX-License-Identifier")
    return wrong


def named_hosts(root: Path) -> list[str]:
    """Files that name a package registry: where packages come from is the user's setting."""
    wrong = []
    for path in files(root):
        data = path.read_bytes()
        wrong += [f"{path.relative_to(root)} names {h}" for h in HOSTS if h.encode() in data]
    return wrong


def interface(root: Path) -> str:
    """The text of the C interface: collectives.h, and what it includes from beside it."""
    headers = sorted((root / "native/include").glob("*.h"))
    return "\n".join(header.read_text(encoding="utf-8") for header in headers)


def undocumented_functions(header: str) -> list[str]:
    """Public functions of the C header without a comment.

    A comment covers the declarations right below it, up to the next empty line.
    """
    wrong: list[str] = []
    for paragraph in re.split(r"\n\s*\n", header):
        first_comment = paragraph.find("/*")
        for match in re.finditer(r"\b(coll_\w+)\([^;{]*\);", _blank_comments(paragraph)):
            if first_comment < 0 or match.start() < first_comment:
                wrong.append(f"collectives.h: {match.group(1)} has no comment")
    return wrong


def _blank_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", lambda match: " " * len(match.group()), text, flags=re.DOTALL)


def undocumented_names(module: ModuleType) -> list[str]:
    """Public functions and classes, and public methods of the latter, without a docstring.

    Those count, too, that a class has from a base class of the same package.
    """
    wrong = []
    for name in module.__all__:
        value = getattr(module, name)
        if not callable(value):
            continue
        members = {name: value}
        if isinstance(value, type):
            members |= {
                f"{name}.{key}": member
                for base in reversed(value.__mro__)
                if base.__module__.partition(".")[0] == value.__module__.partition(".")[0]
                for key, member in vars(base).items()
                if not key.startswith("_") and (callable(member) or isinstance(member, property))
            }
        wrong += [
            f"{module.__name__}.{key} has no docstring"
            for key, member in members.items()
            if not (vars(member).get("__doc__") if isinstance(member, type) else member.__doc__)
        ]
    return wrong
