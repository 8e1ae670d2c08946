# SPDX-License-Identifier: Apache-2.0
"""The types of the compiled module name all that the C header declares, and no more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from collectives._ffi import lib
from tests.architecture_rules import interface

ROOT = Path(__file__).resolve().parents[2]
HEADER = re.sub(r"/\*.*?\*/", "", interface(ROOT), flags=re.S)


def declared() -> dict[str, int]:
    """Return the functions of the header with their numbers of parameters."""
    found = re.findall(r"\b(coll_\w+)\(([^)]*)\);", HEADER)
    return {name: 0 if args.strip() == "void" else args.count(",") + 1 for name, args in found}


def stubbed() -> dict[str, int]:
    """Return the methods of the stub's _Lib with their numbers of parameters."""
    tree = ast.parse((ROOT / "collectives/_native.pyi").read_text())
    (library,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "_Lib")
    functions = [node for node in library.body if isinstance(node, ast.FunctionDef)]
    return {f.name: len(f.args.posonlyargs) + len(f.args.args) - 1 for f in functions}


def test_functions_agree() -> None:
    assert len(declared()) > 30
    assert stubbed() == declared()


def test_constants_agree() -> None:
    constants = set(re.findall(r"\b(COLL_[A-Z0-9_]+)\s*=", HEADER))
    stub = (ROOT / "collectives/_native.pyi").read_text()
    assert set(re.findall(r"\b(COLL_[A-Z0-9_]+): int", stub)) == constants
    assert all(isinstance(getattr(lib, name), int) for name in constants)
