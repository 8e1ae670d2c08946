# SPDX-License-Identifier: Apache-2.0
"""docs/api.md: every public name of the Python package and every declaration of the C headers.

Signatures and docstrings are read from the package, declarations and comments from native/include:
what is missing there is missing here. A public name that is in no group below is an error.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, is_typeddict

import collectives as cl

MAIN = "collectives.h"  # which includes the others
WIDTH = 100

COLLECTIVES = (
    "allreduce", "reduce_scatter", "reduce_scatterv", "reduce", "scan", "exscan", "exact_sum",
    "broadcast", "allgather", "allgatherv", "gather", "gatherv", "scatter", "scatterv", "alltoall",
    "alltoallv", "barrier",
)  # fmt: skip
MESSAGES = ("send", "recv", "sendrecv", "isend", "irecv", "probe", "iprobe")
DROP_IN = (*COLLECTIVES, *MESSAGES, "force")  # methods that are functions, too


# Classes that programs make themselves; others come from a function or a communicator.
MADE = ("Sparse", "TopK")
# Methods that the library itself calls, or that only repeat one of Communicator.
OURS = ("of_result", "operands", "run", "finish", "fail", "barrier", "encoded", "proved", "prove")


class Group(NamedTuple):
    """A section: what is said first, public names, members of Communicator, and what modules have.

    Those are told with their module, as they are not names of the package.
    """

    title: str
    sentence: str = ""
    names: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    within: tuple[tuple[str, str], ...] = ()  # modules and names


GROUPS = (
    Group(
        "Start",
        names=("__version__", "init", "local", "Communicator"),
        members=(
            "rank", "size", "closed", "sequence", "transport", "close", "abort", "revoke",
            "from_mpi", "from_store",
        ),
    ),
    Group(
        "Collectives",
        "Methods of a communicator. Each is also a function of the package, "
        "`collectives.allreduce(x)` and so on, on the communicator of `init()`. `x` and `out` of "
        "type `Array` are NumPy arrays, torch tensors, or objects with DLPack or the buffer "
        "protocol, of any stride, on GPUs too ([docs/gpu.md](gpu.md)). Structures "
        "(lists, tuples and dicts of arrays) are taken by allreduce and broadcast only. `Op` is "
        "a name such as \"sum\", or an "
        "[Operation](#operation). The options `algorithm`, `mode` and `timeout` are explained "
        "under [Communicator](#communicator); `async_op=True` returns a [Pending](#pending).",
        names=COLLECTIVES,
    ),
    Group(
        "Messages",
        "Between two ranks: methods of a communicator, and functions on that of `init()`.",
        names=(*MESSAGES, "ANY_SOURCE", "ANY_TAG", "Status", "Request"),
    ),
    Group("Groups", names=("Mesh",), members=("split", "subgroup", "dup", "mesh", "shrink")),
    Group(
        "Sparse vectors",
        "What most collectives take as `x` in the place of an array, and what it costs: "
        "[sparse](sparse.md).",
        names=("Sparse", "sparse_algorithms", "SparseAlgorithm", "SparsePlan"),
        members=("sparse_plan",),
        within=(
            ("collectives.sparse.calls", "SparseOptions"),
            ("collectives.sparse.selection", "top_k"),
            ("collectives.sparse.selection", "select_above"),
        ),
    ),
    Group(
        "Compressed sums",
        "What `compress=` of allreduce takes: [compression](compression.md).",
        names=("QSGD", "TopK", "FP8", "codec", "Codec"),
    ),
    Group("Non-blocking calls", names=("Pending",), members=("group",)),
    Group(
        "Persistent calls",
        names=("PersistentCalls", "PersistentCall"),
        members=("persistent",),
    ),
    Group(
        "Choice",
        "Which plan a call runs: [tuning](tuning.md). `force` is a method of a communicator, and a "
        "function, on that of `init()`.",
        names=("force",),
        members=("tune", "refine", "use_table", "use_kept_table", "use_model", "explain"),
    ),
    Group(
        "Traces",
        "What ranks did, and when: [tracing](tracing.md).",
        names=("trace", "Trace", "LastCall"),
        members=("trace", "last"),
    ),
    Group("Arrays that all ranks reach", members=("empty", "is_symmetric")),
    Group("Hierarchical algorithms", names=("product", "torus", "Product")),
    Group(
        "Trees for networks of any shape",
        "As many as the links carry: [trees](pack.md).",
        names=("pack", "Pack", "SpanningTree"),
    ),
    Group(
        "Topology",
        "Where ranks are, and the links between them: [topology](topology.md).",
        names=("Topology",),
        members=("topology",),
    ),
    Group(
        "GPUs",
        "Arrays in their memory: [GPUs](gpu.md).",
        names=("devices", "Devices", "Device", "DeviceArray", "on_stream"),
        within=(("collectives.cupy", "Backend"), ("collectives.cupy", "register")),
    ),
    Group(
        "Programs that use NCCL",
        "On this library, unchanged: [from NCCL](from_nccl.md).",
        names=("preload_nccl",),
        within=(("collectives.preloading", "nccl_library"),),
    ),
    Group(
        "Operations and algorithms of your own",
        names=("op", "Operation", "algorithm", "OwnAlgorithm", "ScheduleBuilder", "SELF"),
    ),
    Group(
        "Algorithms as data",
        names=(
            "algorithms", "Algorithm", "verify", "Proof", "schedule", "Schedule", "Step",
            "Segment", "draw",
        ),
    ),
    Group(
        "Simulation",
        "On networks that need not be here: [simulation](simulate.md).",
        names=("simulate", "Simulation", "Moment"),
    ),
    Group(
        "Errors",
        "What each means, and what to do: [errors](errors.md).",
        names=(
            "CollectiveError", "InvalidArgumentError", "UnsupportedError", "MismatchError",
            "CollectiveTimeoutError", "PeerLostError", "AbortedError", "ClosedError",
            "OutOfMemoryError", "SystemCallError", "BootstrapError", "InternalError",
        ),
    ),
)  # fmt: skip


class _Plain:
    """An annotation that is written as it stands in the source, without quotes."""

    def __init__(self, text: object) -> None:
        self._text = text if isinstance(text, str) else getattr(text, "__name__", str(text))

    def __repr__(self) -> str:
        return str(self._text)


def page(root: Path) -> str:
    """Return the page. Raises ValueError where a public name belongs to no group."""
    check_complete()
    from scripts import api_nccl  # which takes functions from here

    titles = [group.title for group in GROUPS] + ["NCCL", "C"]
    contents = "\n".join(f"* [{title}](#{title.lower().replace(' ', '-')})" for title in titles)
    parts = [
        "# Interface",
        "Every public name of the Python package, `import collectives as cl`, then the C headers.",
        contents,
    ]
    for group in GROUPS:
        parts += [f"## {group.title}", *([group.sentence] if group.sentence else [])]
        for name in group.names:
            # What is a method and a function is described once: as the method.
            parts += member(cl.Communicator, name) if name in DROP_IN else public(name)
        for name in group.members:
            parts += member(cl.Communicator, name, "Communicator.")
        for module, name in group.within:
            parts += of_module(module, name)
    parts += api_nccl.section()
    return "\n\n".join([*parts, *c_section(root / "native/include")]) + "\n"


def check_complete() -> None:
    """Raise ValueError where a public name or a member of Communicator is in no group."""
    listed = {name for group in GROUPS for name in group.names}
    held = {*DROP_IN, *(name for group in GROUPS for name in group.members)}
    everything = {name for name in dir(cl.Communicator) if not name.startswith("_")}
    wrong = (set(cl.__all__) ^ listed) | (everything ^ held)
    if wrong:
        raise ValueError(f"scripts/api_page.py: not in a group, or not public: {sorted(wrong)}")


def public(name: str) -> Iterator[str]:
    """Yield the paragraphs of a public name."""
    value = getattr(cl, name)
    yield f"### {name}"
    if not callable(value):
        shown = "" if name == "__version__" else f" It is {value!r}."
        yield f"{constant(name)}{shown}"
        return
    if not isinstance(value, type) or is_dataclass(value) or name in MADE:
        yield signature(value.__name__, value)
    elif issubclass(value, Exception):
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        yield f"Also {bases}. {markdown(value.__doc__ or '')}"
        return
    yield markdown(value.__doc__ or "")
    if isinstance(value, type) and value is not cl.Communicator:
        ours = [owner for owner in value.__mro__ if owner.__module__.startswith("collectives")]
        held = {key: held for owner in reversed(ours) for key, held in vars(owner).items()}
        for key in held:
            if not key.startswith("_") and key not in OURS and is_method(held[key]):
                yield from member(value, key, f"{name}.")


def of_module(module: str, name: str) -> Iterator[str]:
    """Yield the paragraphs of a function, or of a dict of options, that a module has."""
    value = getattr(import_module(module), name)
    yield f"### {name}"
    if is_typeddict(value):  # as it stands in the source
        hints = inspect.get_annotations(value).items()
        shown = "\n".join(f"{key}: {getattr(hint, '__forward_arg__', hint)}" for key, hint in hints)
        yield f"```text\n{shown}\n```"
    else:
        yield f"In `{module}`."
        yield signature(name, value)
    yield markdown(value.__doc__ or "")


def constant(name: str) -> str:
    """Say what a constant is for."""
    said = {
        "ANY_SOURCE": "For `source`: a message of any rank.",
        "ANY_TAG": "For `tag`: a message with any tag.",
        "SELF": "The place of a rank's own value in the order of a recv_reduce.",
        "__version__": "The version of the library, as text.",
    }
    return said[name]


def is_method(value: object) -> bool:
    """Whether what a class holds is a method or property."""
    return isinstance(value, (property, classmethod, staticmethod)) or (
        callable(value) and not isinstance(value, type)
    )


def member(owner: type, name: str, prefix: str = "") -> Iterator[str]:
    """Yield the paragraphs of a method or property."""
    value = inspect.getattr_static(owner, name)
    yield f"### {prefix}{name}"
    if isinstance(value, property):
        returns = inspect.get_annotations(value.fget).get("return") if value.fget else None
        yield f"Property: `{_Plain(returns)!r}`. {markdown(value.__doc__ or '')}"
    else:
        bound = getattr(owner, name) if isinstance(value, classmethod) else value
        yield signature(name, bound)
        yield markdown(value.__doc__ or "")


def signature(name: str, value: Any) -> str:
    """Return a fenced signature, in one line where it fits."""
    found = inspect.signature(value)
    parameters = [
        one.replace(
            annotation=one.annotation if one.annotation is one.empty else _Plain(one.annotation)
        )
        for one in found.parameters.values()
        if one.name != "self"
    ]
    result = found.return_annotation
    returns = "" if result is found.empty or isinstance(value, type) else f" -> {_Plain(result)!r}"
    if hasattr(value, "__wrapped__"):  # of contextlib.contextmanager
        returns = returns.replace("Iterator[", "AbstractContextManager[")
    made = found.replace(parameters=parameters, return_annotation=found.empty)
    line = f"{name}{made}{returns}"
    if len(line) > WIDTH:
        lines, marked = [], False
        for one in parameters:
            if one.kind is one.KEYWORD_ONLY and not marked:
                lines.append("    *,")
                marked = True
            lines.append(f"    {one},")
        line = "\n".join([f"{name}(", *lines, f"){returns}"])
    return f"```text\n{line}\n```"


def markdown(docstring: str) -> str:
    """Turn a docstring to Markdown: roles and literals to code, Args to a list, :: to a fence."""
    text = inspect.cleandoc(docstring)
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = text.replace("``", "`")
    paragraphs = re.split(r"\n\s*\n", text)
    made: list[str] = []
    for paragraph in paragraphs:
        if made and made[-1].endswith("::") and paragraph.startswith("    "):
            before = made.pop().removesuffix("::")
            made += [f"{before}:"] if before else []
            made.append(f"```text\n{textwrap.dedent(paragraph)}\n```")
        elif paragraph.startswith("Args:\n"):
            made.append(arguments(paragraph.partition("\n")[2]))
        else:
            made.append(paragraph)
    return "\n\n".join(made)


def arguments(block: str) -> str:
    """Turn the lines below ``Args:`` to a list."""
    lines: list[str] = []
    for line in textwrap.dedent(block).splitlines():
        found = re.match(r"(\w+): (.*)", line)
        lines.append(f"* `{found[1]}`: {found[2]}" if found else f"  {line.strip()}")
    return "\n".join(lines)


# ---- C -------------------------------------------------------------------------------------------


def c_section(folder: Path) -> Iterator[str]:
    """Yield the paragraphs on the C headers: what they say of themselves, their declarations."""
    yield "## C"
    yield (
        "The headers, whole but for their frames: [collectives.h](../native/include/collectives.h) "
        "includes the others. [From C](c.md) has a program, and how to build it."
    )
    headers = sorted(folder.glob("*.h"), key=lambda path: (path.name != MAIN, path.name))
    for header in headers:
        text = header.read_text(encoding="utf-8")
        opening = re.search(r"/\* SPDX[^\n]*\n(.*?)\*/", text, re.DOTALL)
        yield f"### {header.name}"
        yield comment_text(opening[1] if opening else "")
        body = text.partition('extern "C" {\n#endif\n')[2].partition("\n#ifdef __cplusplus\n}")[0]
        yield from declarations(body)


def declarations(body: str) -> Iterator[str]:
    """Yield the declarations of a header, under the titles that stand between them."""
    pieces = re.split(r"^/\* -{4} (.*?)(?: ?-+)(.*?)\*/$", body, flags=re.DOTALL | re.MULTILINE)
    yield from fenced(pieces[0])
    for title, said, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        yield f"#### {title[0].upper()}{title[1:]}"
        if comment_text(said):
            yield comment_text(said)
        yield from fenced(text)


def fenced(text: str) -> Iterator[str]:
    """Yield declarations as they stand, where there are any."""
    if text.strip():
        yield f"```cpp\n{text.strip()}\n```"


def comment_text(comment: str) -> str:
    """Return the words of a comment without its stars."""
    lines = [re.sub(r"^ ?\* ?", "", line).strip() for line in comment.splitlines()]
    return "\n".join(lines).strip(" -\n")
