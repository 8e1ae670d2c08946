# SPDX-License-Identifier: Apache-2.0
"""The repository keeps the rules of the house, and each rule notices a planted violation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import collectives
from tests import architecture_rules as rules

ROOT = Path(__file__).resolve().parents[1]
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"

Rule = Callable[[Path], list[str]]
RULES: list[Rule] = [
    rules.forbidden_includes,
    rules.forbidden_imports,
    rules.long_files,
    rules.long_functions,
    rules.missing_licence,
    rules.named_hosts,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_repository_keeps(rule: Rule) -> None:
    assert rule(ROOT) == []


def test_rules_look_at_real_files() -> None:
    names = {name for name, _ in rules.sources(ROOT)}
    assert {"native/include/collectives.h", "collectives/_ffi.py"} <= names


def planted(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        (rules.forbidden_includes, "native/schedule/a.cc", '#include "plan/plan.h"\n'),
        (rules.forbidden_includes, "native/engine/a.h", '#include "algorithms/algorithm.h"\n'),
        (rules.forbidden_includes, "native/communicator/a.cc", '#include "abi/guard.h"\n'),
        (rules.forbidden_includes, "native/kernels/a.cc", '#include "collectives.h"\n'),
        (rules.forbidden_includes, "native/plan/a.cc", '#include "neighbour.h"\n'),
        (rules.forbidden_includes, "native/unknown/a.cc", '#include "plan/plan.h"\n'),
        (rules.forbidden_includes, "native/nccl/a.cc", '#include "communicator/call.h"\n'),
        (rules.forbidden_includes, "native/abi/a.cc", '#include "nccl/nccl.h"\n'),
        (rules.forbidden_imports, "collectives/fast.py", "from collectives import _native\n"),
        (rules.forbidden_imports, "bench/a.py", "import collectives._native\n"),
        (rules.forbidden_imports, "collectives/a.py", "from collectives._native import lib\n"),
        (rules.forbidden_imports, "collectives/b.py", "from . import _native\n"),
        (rules.long_files, "native/plan/a.cc", "\n" * 401),
        (rules.long_files, "tests/a.py", "\n" * 401),
        (rules.long_functions, "a.py", "def f():\n" + "    x = 1\n" * 59),
        (rules.long_functions, "a.cc", "int f(int x) {\n" + "  ++x;\n" * 58 + "}\n"),
        (rules.missing_licence, "a.cc", "#pragma once\n"),
        (rules.missing_licence, "scripts/a.sh", "#!/bin/sh\necho\n"),
        (rules.missing_licence, "a.py", ""),
        (rules.named_hosts, "README.md", f"from https://{rules.HOSTS[0]}/simple\n"),
    ],
)
def test_planted_violation_is_named(tmp_path: Path, rule: Rule, name: str, text: str) -> None:
    found = rule(planted(tmp_path, name, text))
    assert len(found) == 1
    assert name in found[0]


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        (rules.forbidden_includes, "native/plan/a.cc", '#include "schedule/schedule.h"\n'),
        (rules.forbidden_includes, "native/engine/a.cc", '#include "schedule/layout.h"\n'),
        (rules.forbidden_includes, "native/kernels/a.cc", '#include "base/error.h"\n'),
        (rules.forbidden_includes, "native/communicator/a.cc", '#include "prove/report.h"\n'),
        (rules.forbidden_includes, "native/abi/a.cc", '#include "collectives.h"\n'),
        (rules.forbidden_imports, "collectives/_ffi.py", "from collectives import _native\n"),
        (rules.long_files, "native/plan/a.cc", "\n" * 400),
        (rules.long_functions, "a.py", "def f():\n" + "    x = 1\n" * 58),
        (rules.long_functions, "a.cc", "int f(int x) {\n" + "  ++x;\n" * 57 + "}\n"),
        (rules.missing_licence, "a.cc", LICENCE),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, rule: Rule, name: str, text: str) -> None:
    assert rule(planted(tmp_path, name, text)) == []


def test_native_functions_are_found_whatever_surrounds_them() -> None:
    text = """
namespace coll {
// a comment with a brace {
struct alignas(64) Line {
  int word[8];
};
class Group : public Base<int> {
 public:
  explicit Group(int n) : n_{n}, m_{int{n}} {
    use("}");
  }
  enum class Kind { a, b };
  template <class T>
  bool operator==(const T& o) const noexcept {
    if (o) {
      return true;
    }
    return '{' == o;
  }
  int table_[2] = {1, 2};
};
auto free_one() -> int { return 1; }
}  // namespace coll
TEST(name) {
  check();
}
"""
    found = {name: (line, lines) for name, line, lines in rules.native_functions(text)}
    assert found == {"Group": (9, 3), "operator==": (13, 7), "free_one": (22, 1), "TEST": (24, 3)}


def test_every_public_python_name_is_documented() -> None:
    assert rules.undocumented_names(collectives) == []


def test_undocumented_python_name_is_named() -> None:
    class Base:
        """A class whose method is not documented."""

        def inherited(self) -> None:
            pass

    class Documented(Base):
        """Another one."""

        def method(self) -> None:
            pass

    def function() -> None:
        pass

    module = ModuleType("planted")
    module.__dict__.update(Documented=Documented, function=function)
    module.__dict__["__all__"] = ["Documented", "function"]
    assert rules.undocumented_names(module) == [
        "planted.Documented.inherited has no docstring",
        "planted.Documented.method has no docstring",
        "planted.function has no docstring",
    ]


def test_every_public_c_function_is_documented() -> None:
    header = rules.interface(ROOT)
    assert rules.undocumented_functions(header) == []


def test_undocumented_c_function_is_named() -> None:
    header = (
        "/* Both. */\nint coll_a(void);\nint coll_b(int x);\n\nint coll_c(const void *p,\n int);\n"
    )
    assert rules.undocumented_functions(header) == ["collectives.h: coll_c has no comment"]


def test_stub_of_the_compiled_module_names_the_whole_header() -> None:
    header = re.sub(r"/\*.*?\*/", "", rules.interface(ROOT), flags=re.DOTALL)
    stub = (ROOT / "collectives/_native.pyi").read_text(encoding="utf-8")
    functions = set(re.findall(r"\b(coll_\w+)\(", header))
    constants = set(re.findall(r"\b(COLL_\w+) =", header))
    assert len(functions) > 30
    assert functions == set(re.findall(r"\bdef (coll_\w+)\(", stub))
    assert constants == set(re.findall(r"\b(COLL_\w+): int", stub))
