# SPDX-License-Identifier: Apache-2.0
"""Write the documentation that is read off the code: ``python -m scripts.generate_docs``.

A page and a drawing for every algorithm, their index, the interface, the table of environment
variables, the comparison with others, the limits, the figures in README.md and docs/arithmetic.md,
and the diff in HACKING.md. With ``--check`` nothing is written: what is not as it would be written
is named, and the exit code is 1. The output depends on nothing but the sources, the compiled table
of algorithms and the files in bench/results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import collectives as cl
from collectives.catalogue import ROOTED
from collectives.environment import variables
from scripts import api_page, cheapest, comparison, measured, measured_regret, measured_torch
from scripts.markdown import table

ROOT = Path(__file__).resolve().parents[1]
PAGES = Path("docs/algorithms")
SOURCES = Path("native/algorithms")
COMMAND = "python -m scripts.generate_docs"
MARK = f"<!-- Written by {COMMAND}: do not edit. -->\n"

SHOWN = (2, 4, 5, 8, 64)  # numbers of ranks in the table of costs
PROVED = 64  # as in tests/native/prove_test.cc
CANONICAL = "[canonical tree](../arithmetic.md#reproducible), which `reproducible=True` asks for"
SUMMING = ("allreduce", "reduce_scatter", "reduce", "scan", "exscan")
MEANING = {
    "p": "p ranks",
    "L": "L = ceil(log2 p)",
    "K": "K = floor(log2 p)",
    "P": "P = 2^K",
    "lg": "lg(x) = ceil(log2 x), 0 up to 1",
    ">": "a comparison is 1 or 0",
}
LEGEND = (
    "Bytes are sent and reductions made by the busiest rank, as shares of the whole vector (in an "
    "alltoall: of one rank's); a message to several peers counts once for each."
)
EXAMPLE = "allreduce_circulant"  # whose diff HACKING.md shows


def documents(root: Path = ROOT, share: int = 1) -> dict[Path, str]:
    """Return every generated file below ``root``, by its path from there, with its text.

    ``share``: of the pages of algorithms, one of so many; and their index, which looks at the
    proofs of all, only where it is 1.
    """
    algorithms = cl.algorithms()
    made = {PAGES / "index.md": index(algorithms)} if share == 1 else {}
    for algorithm in algorithms[::share]:
        name = file_name(algorithm)
        made[PAGES / f"{name}.md"] = page(algorithm, root)
        made[PAGES / f"{name}.svg"] = cl.draw(algorithm.name, drawn(algorithm), algorithm.kind)
    made[Path("docs/environment.md")] = environment()
    made[Path("docs/api.md")] = MARK + api_page.page(root)
    made[Path("docs/comparison.md")] = comparison.page(table) + "\n"
    made[Path("docs/limits.md")] = MARK + measured.limits(
        sorted((root / "bench/results").glob("limits*.json"))
    )
    readme, hacking, torch = Path("README.md"), Path("HACKING.md"), Path("docs/torch.md")
    results = root / "bench/results"
    tables = {
        "table": measured.rivals(results / "peers.json"),
        "hosts": measured.between_hosts(results / "hosts.json"),
    }
    arithmetic = Path("docs/arithmetic.md")
    costs_of = {"reproducible": measured.reproducible(results / "reproducible.json")}
    made[arithmetic] = between(root / arithmetic, costs_of)
    tuning = Path("docs/tuning.md")
    regret = {"regret": measured_regret.regrets(results / "regret.json")}
    made[tuning] = between(root / tuning, regret)
    made[torch] = between(root / torch, {"speed": measured_torch.through_torch(results)})
    made[readme] = between(root / readme, tables)
    made[hacking] = between(root / hacking, {"diff": diff(root)})
    return made


def file_name(algorithm: cl.Algorithm) -> str:
    """Return the name of an algorithm's source and page, without its ending."""
    return f"{algorithm.kind}_{algorithm.name}"


def drawn(algorithm: cl.Algorithm) -> int:
    """Return for how many ranks an algorithm is drawn: 5, or 4 where it wants powers of two."""
    return 5 if algorithm.fits(5) else 4


# ---- one page per algorithm ----------------------------------------------------------------------


def page(algorithm: cl.Algorithm, root: Path) -> str:
    """Return the page of an algorithm. Raises ValueError where a proof fails."""
    name, kind = algorithm.name, algorithm.kind
    source = SOURCES / f"{file_name(algorithm)}.cc"
    proofs = proved(algorithm)
    argument = "" if kind == "barrier" else "x, "
    picture = f"{file_name(algorithm)}.svg"
    parts = [
        MARK + f"# {kind} {name}",
        algorithm.summary,
        *quoted(root / source),
        table(
            ["", ""],
            [
                ["paper", algorithm.paper],
                ["ranks", algorithm.restriction or "any"],
                ["source", f"[{source}](../../{source})"],
                ["use", f'`comm.{kind}({argument}algorithm="{name}")`'],
                ["measure", f"`collbench {kind} -n 4 --algorithms {name}`"],
            ],
        ),
        "## Cost",
        costs(algorithm),
        "## When it wins",
        cheapest.section(algorithm, table),
        "## Proof",
        proof(algorithm, proofs),
        *(["## Summation tree", tree(algorithm, proofs)] if kind in SUMMING else []),
        f"## {drawn(algorithm)} ranks",
        f"![{kind} {name}, {drawn(algorithm)} ranks: arrows are messages]({picture})",
        "## 4 ranks, step by step",
        f"```text\n{cl.draw(name, 4, kind, format='text')}```",
        "[All algorithms](index.md)",
    ]
    return "\n\n".join(parts) + "\n"


def quoted(source: Path) -> list[str]:
    """Return the comment at the top of a source, where it says more than its citation."""
    words = []
    for line in source.read_text(encoding="utf-8").splitlines()[1:]:
        if not line.startswith("//"):
            break
        words.append(line.removeprefix("//").strip())
    comment = " ".join(words)
    # A citation ends in its year.
    beyond = re.split(r"\b(?:19|20)\d\d\b", comment, maxsplit=1)[-1]
    return [f"> {comment}"] if beyond.strip(" .") else []


def costs(algorithm: cl.Algorithm) -> str:
    """Return the table of costs, claimed or else counted, and what the letters mean."""
    ranks = [p for p in SHOWN if algorithm.fits(p)]
    rows, used = [], ""
    for name in ("rounds", "bytes", "reductions"):
        claim: str = getattr(algorithm, name)
        used += claim
        if claim:
            values = [algorithm.formula(name, p) for p in ranks]
        else:
            values = [max(getattr(o, name) for o in proved(algorithm) if o.p == p) for p in ranks]
        # What a barrier sends is empty.
        if claim or algorithm.kind != "barrier":
            formula = f"`{claim}`" if claim else "counted"
            rows.append([name, formula, *(number(value) for value in values)])
    letters = ", ".join(words for sign, words in MEANING.items() if sign in used or sign == "p")
    heads = ["", "formula", *(f"p = {p}" for p in ranks)]
    return f"{table(heads, rows)}\n\n{letters}. {LEGEND}"


@cache
def proved(algorithm: cl.Algorithm) -> list[cl.Proof]:
    """Return the proofs for every p that fits, up to 64. Raises ValueError where one fails."""
    proofs = cl.verify(algorithm.name, range(1, PROVED + 1), algorithm.kind)
    for one in proofs:
        if not one.proved:
            raise ValueError(f"{file_name(algorithm)}, p = {one.p}: {one.message}")
    return proofs


def proof(algorithm: cl.Algorithm, proofs: Sequence[cl.Proof]) -> str:
    """Say what is proved, and where."""
    every = "every root, " if algorithm.kind in ROOTED else ""
    fitting = "p" if not algorithm.restriction else f"p that fits ({algorithm.restriction})"
    return (
        f"The schedule is proved for every {fitting} ≤ {PROVED}, {every}in place and out of place, "
        f"and the costs above are counted and compared: {len(proofs)} proofs, repeated whenever "
        "this page is written or checked. [prove_test.cc](../../tests/native/prove_test.cc), part "
        "of `make test`, proves all that again, and samples up to p = 1024; of the plans of the "
        "shared-memory engine all for p ≤ 8, in four modes, and for more ranks up to 64 some in "
        "turn ([which](../../CONTRIBUTING.md)). By hand: "
        f"`collbench verify {algorithm.name} --kind {algorithm.kind} --plans`."
    )


def tree(algorithm: cl.Algorithm, proofs: Sequence[cl.Proof]) -> str:
    """Say what the proofs found out about the order in which a sum is made."""
    vector = all(one.same_tree_in_vector for one in proofs)
    if all(one.rank_order for one in proofs):
        order = "Each element's operands are folded in the order of their ranks."
    elif all(one.rank_order for one in proofs if one.root == 0) and algorithm.kind in ROOTED:
        order = "Operands are folded in the order of their ranks where the root is rank 0."
    else:
        order = "Operands are not always folded in the order of their ranks."
    facts = [
        order,
        "All elements are folded in the same order: the bits of a result depend neither on its "
        "place in the vector nor on how many elements there are."
        if vector
        else "Elements in different parts of the vector are folded in different orders: the bits "
        "of a floating-point sum depend on its place.",
    ]
    if algorithm.kind == "allreduce":
        same = all(one.same_tree_on_ranks for one in proofs)
        facts.insert(0, "All ranks get the same bits." if same else "Bits may differ by rank.")
    among = sorted({one.p for one in proofs} - {one.p for one in proofs if not one.canonical})
    if len(among) == len({one.p for one in proofs}):
        facts.append(f"It is the {CANONICAL} among any number of ranks.")
    else:
        few = ", ".join(map(str, among[:-1])) + f" and {among[-1]}"
        facts.append(f"Among {few} ranks it is the {CANONICAL}; among others up to {PROVED} not.")
    facts.append(roundings(algorithm))
    return "\n".join(f"* {fact}" for fact in facts)


def roundings(algorithm: cl.Algorithm) -> str:
    """Say how often a sum of bfloat16 is rounded: once for each round in which it is folded."""
    p = max(p for p in SHOWN if algorithm.fits(p))
    steps = [step for rank in cl.schedule(algorithm.name, p, algorithm.kind).ranks for step in rank]
    times = len({step.round for step in steps if step.op in ("recv_reduce", "reduce")})
    said = (
        "a sum is made in float32 and rounded once"
        if times == 1
        else f"partial sums are rounded on every hop: up to {times} times among {p} ranks"
    )
    return f"In bfloat16 {said} ([arithmetic](../arithmetic.md))."


# ---- tables --------------------------------------------------------------------------------------


def index(algorithms: Sequence[cl.Algorithm]) -> str:
    """Return the tables of all algorithms, one for each kind of collective."""
    sections = []
    for kind in dict.fromkeys(a.kind for a in algorithms):
        heads = ["", "rounds", "bytes", "reductions", "ranks", "paper"]
        rows = [entry(a) for a in algorithms if a.kind == kind]
        if kind in SUMMING:
            heads.insert(5, "one order")
        sections.append(f"## {kind}\n\n{table(heads, rows)}")
    letters = "; ".join(MEANING.values())
    return (
        f"{MARK}# Algorithms\n\n{letters}. {LEGEND} "
        '"One order": all elements are folded in the same order, so the bits of a sum do not '
        "depend on its place in the vector.\n\n"
        f"Every one is proved for every p ≤ {PROVED}: each page says how.\n\n"
        + "\n\n".join([*sections, taken(algorithms)])
        + "\n"
    )


def taken(algorithms: Sequence[cl.Algorithm]) -> str:
    """Return which algorithms the library takes by itself."""
    kinds = dict.fromkeys(a.kind for a in algorithms)
    rows = [[kind, *rule] for kind in kinds for rule in cheapest.rules(kind)]
    return (
        "## Taken on one machine\n\n"
        "What `algorithm=None` takes, by bytes of the whole vector: the rules of "
        "[choose.cc](../../native/select/choose.cc), asked for each number of ranks. An operation "
        "that does not commute gets one that keeps the order of ranks.\n\n"
        + table(["collective", "ranks", "algorithm"], rows)
    )


def entry(a: cl.Algorithm) -> list[str]:
    """Return the line of an algorithm."""
    claims = [f"`{claim}`" if claim else "-" for claim in (a.rounds, a.bytes, a.reductions)]
    bits = ["yes" if all(one.same_tree_in_vector for one in proved(a)) else "no"]
    return [
        f"[{a.name}]({file_name(a)}.md)",
        *claims,
        a.restriction or "any",
        *(bits if a.kind in SUMMING else []),
        a.paper,
    ]


def environment() -> str:
    """Return the page of environment variables, from the table that the library reads."""
    rows = []
    for v in variables():
        shown = f"`{v.default}`" if v.default else "none"
        rows.append([f"`{v.name}`", f"`{v.type}`", shown, v.sentence])
    return (
        f"{MARK}# Environment variables\n\n"
        "All that the library reads. `collrun` sets the first four for the ranks that it starts. "
        "COLLECTIVES_RANK and COLLECTIVES_SIZE: set both or neither; without them the "
        "variables of other launchers count ([launching](launching.md)). The name of a job is "
        "printable text of at most 255 bytes. "
        "`collbench env` prints their present values.\n\n"
        + table(["variable", "type", "default", "meaning"], rows)
        + "\n"
    )


def diff(root: Path) -> str:
    """Return the change that adds an algorithm, as it would be for one that is there."""
    table_lines = (root / SOURCES / "algorithms.inc").read_text(encoding="utf-8").splitlines()
    at = table_lines.index(f"ALGORITHM({EXAMPLE})")
    around = [table_lines[at - 1], table_lines[at], table_lines[at + 1]]
    source = (root / SOURCES / f"{EXAMPLE}.cc").read_text(encoding="utf-8").splitlines()
    lines = [
        f"--- a/{SOURCES}/algorithms.inc",
        f"+++ b/{SOURCES}/algorithms.inc",
        f"@@ -{at},2 +{at},3 @@",
        *(sign + line for sign, line in zip(" + ", around, strict=True)),
        "--- /dev/null",
        f"+++ b/{SOURCES}/{EXAMPLE}.cc",
        f"@@ -0,0 +1,{len(source)} @@",
        *(f"+{line}" for line in source),
    ]
    return "```diff\n" + "\n".join(lines) + "\n```"


def number(value: float) -> str:
    """Write a number with up to four digits."""
    return f"{value:.4g}"


# ---- files ---------------------------------------------------------------------------------------


def between(path: Path, contents: Mapping[str, str]) -> str:
    """Return the text of a file with what stands between the two marks of each name replaced."""
    text = path.read_text(encoding="utf-8")
    for mark, content in contents.items():
        begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{path} lacks its marks {begin} and {end}")
        text = f"{before}{begin}\n{content}\n{end}{after}"
    return text


def stale(root: Path, made: dict[Path, str]) -> list[str]:
    """Name the files below ``root`` that are missing or not as they would be made."""
    wrong = []
    for path, content in made.items():
        if not (root / path).exists():
            wrong.append(f"{path} is missing")
        elif (root / path).read_text(encoding="utf-8") != content:
            wrong.append(f"{path} is stale")
    return wrong


def left_over(root: Path) -> list[str]:
    """Name the pages and drawings below ``root`` of algorithms that are not there."""
    names = {"index", *map(file_name, cl.algorithms())}
    there = (path.relative_to(root) for path in (root / PAGES).glob("*") if path.is_file())
    return [f"{path} belongs to no algorithm" for path in sorted(there) if path.stem not in names]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with --check only look. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__.partition(":")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; name what is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the checkout (this one)")
    chosen = parser.parse_args(arguments)
    made = documents(chosen.root)
    if chosen.check:
        wrong = stale(chosen.root, made) + left_over(chosen.root)
        for sentence in wrong:
            sys.stderr.write(f"{sentence}: run {COMMAND}\n")
        return 1 if wrong else 0
    (chosen.root / PAGES).mkdir(parents=True, exist_ok=True)
    for old in (chosen.root / PAGES).glob("*"):
        if old.relative_to(chosen.root) not in made:
            old.unlink()
    for path, content in made.items():
        (chosen.root / path).write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
