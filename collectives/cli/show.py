# SPDX-License-Identifier: Apache-2.0
"""The subcommands that read algorithms as data: list, verify, draw; and env."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.table import Table

import collectives as cl
from collectives import environment
from collectives.catalogue import Proof
from collectives.cli.options import FILE, KIND, RANK_RANGE
from collectives.cli.screen import Screen, console
from collectives.cli.sizes import format_ranks
from collectives.errors import CollectiveError
from collectives.stopping import ended_by


@click.command("list")
@click.argument("kind", type=KIND, required=False)
def list_algorithms(kind: str | None) -> None:
    """List the algorithms: their claims, which are proved, and their papers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("collective", "algorithm", "rounds", "bytes sent", "reductions", "ranks", "paper"):
        table.add_column(head, overflow="fold")
    before = None
    for a in cl.algorithms(kind):
        shown = "" if a.kind == before else a.kind
        claims = (a.rounds or "-", a.bytes or "-", a.reductions or "-", a.restriction or "any")
        table.add_row(shown, a.name, *claims, a.paper)
        before = a.kind
    console().print(table, markup=False, highlight=False)
    click.echo(
        "\np ranks, L = ceil(log2 p), K = floor(log2 p), P = 2^K, lg(x) = ceil(log2 x);"
        "\na > b is 1 or 0; bytes and reductions of the busiest rank, as a share of the vector."
    )


def proofs_of(
    fitting: dict[cl.Algorithm, list[int]], plans: bool, step: Callable[[], None]
) -> Generator[tuple[cl.Algorithm, list[Proof], list[str]], None, None]:
    """Prove on all cores; yield each algorithm in turn with its proofs. ``step`` is called per p.

    The sentences at the end say for which p there are none, and why. The native prover lets go of
    the interpreter lock, and ends when the program is interrupted.
    """
    ended = threading.Event()

    def prove(a: cl.Algorithm, p: int) -> tuple[list[Proof], list[str]]:
        try:
            with ended_by(ended):
                return cl.verify(a.name, [p], kind=a.kind, plans=plans), []
        except CollectiveError as error:
            return [], [f"p = {p}: {error}"]
        finally:
            step()

    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        work = {a: [pool.submit(prove, a, p) for p in many] for a, many in fitting.items()}
        for a, futures in work.items():
            found: list[Proof] = []
            unproved: list[str] = []
            for proofs, why in (future.result() for future in futures):
                found += proofs
                unproved += why
            yield a, found, unproved
    finally:
        ended.set()
        pool.shutdown(wait=False, cancel_futures=True)


def verdict(a: cl.Algorithm, ranks: list[int], fitting: list[int], proofs: int, word: str) -> str:
    """Say of one algorithm what was proved, and for which numbers of ranks it is not defined."""
    left = [p for p in ranks if p not in fitting] if fitting else []
    return (
        f"{a.kind:<15} {a.name:<20} {word} for p = {format_ranks(fitting or ranks)}"
        f"  ({proofs} proofs)" + (f", not defined for p = {format_ranks(left)}" if left else "")
    )


@click.command()
@click.argument("name", required=False)
@click.option("--ranks", type=RANK_RANGE, default="1:64", show_default=True, metavar="RANKS")
@click.option("-k", "--kind", type=KIND, help="Only this collective.  [default: all]")
@click.option("--plans", is_flag=True, help="Prove the lowered plans of all modes as well.")
def verify(name: str | None, ranks: list[int], kind: str | None, plans: bool) -> None:
    """Prove algorithm NAME, or all, for every number of ranks in RANKS (as 1:64)."""
    chosen = [a for a in cl.algorithms(kind) if name is None or a.name == name]
    if not chosen:
        known = ", ".join(dict.fromkeys(a.name for a in cl.algorithms(kind)))
        of_kind = f" of {kind}" if kind else ""
        raise click.UsageError(f"there is no algorithm {name!r}{of_kind}; there are {known}")
    begin = time.perf_counter()
    fitting = {a: [p for p in ranks if a.fits(p)] for a in chosen}
    total, failed = 0, []
    with Screen("proving", sum(map(len, fitting.values()))) as screen:
        what = "schedules and plans" if plans else "schedules"
        algorithms = "1 algorithm" if len(chosen) == 1 else f"{len(chosen)} algorithms"
        screen.line(f"proving {what} of {algorithms} for p = {format_ranks(ranks)}")
        for a, found, unproved in proofs_of(fitting, plans, screen.step):
            wrong = [f"p = {proof.p}: {proof.message}" for proof in found if not proof.proved]
            word = "WRONG" if wrong else "not proved" if unproved else "proved"
            wrong = [*dict.fromkeys(wrong), *unproved]
            screen.line(
                verdict(a, ranks, fitting[a], len(found), word if fitting[a] else "not defined")
            )
            total += len(found)
            failed += [f"{a.kind} {a.name}, {sentence}" for sentence in wrong]
    for sentence in failed:
        click.echo(f"collbench: {sentence}", err=True)
    if failed:
        click.get_current_context().exit(1)
    click.echo(f"{total} proofs in {time.perf_counter() - begin:.1f} s")


@click.command()
@click.argument("name")
@click.option("-p", "--ranks", type=click.IntRange(1, 256), default=4, show_default=True)
@click.option("-k", "--kind", type=KIND, help="The collective, where NAME belongs to several.")
@click.option("--root", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="An .svg or .txt file.  [default: text on standard output]",
)
def draw(name: str, ranks: int, kind: str | None, root: int, output: Path | None) -> None:
    """Draw the schedule of algorithm NAME for a number of ranks."""
    kinds = [a.kind for a in cl.algorithms(kind) if a.name == name]
    if not kinds:
        known = ", ".join(dict.fromkeys(a.name for a in cl.algorithms(kind)))
        raise click.UsageError(f"there is no algorithm {name!r}; there are {known}")
    if root >= ranks:
        raise click.UsageError(f"--root {root} is not one of {ranks} ranks")
    suffix = output.suffix.lower() if output else ".txt"
    if suffix not in (".svg", ".txt"):
        raise click.UsageError(f"cannot draw to {output}; its name must end in .svg or .txt")
    drawing = cl.draw(
        name, ranks, kind=kinds[0], root=root, format="svg" if suffix == ".svg" else "text"
    )
    if output is None:
        click.echo(drawing.rstrip("\n"))
        return
    try:
        output.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot write {output}: {error.strerror}") from None
    click.echo(f"{output}: {kinds[0]} {name}, {ranks} ranks")


@click.command()
def env() -> None:
    """Show the environment variables and their present values."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("variable", "now", "default", "meaning"):
        table.add_column(head)
    for variable in environment.variables():
        now = os.environ.get(variable.name, "-")
        table.add_row(variable.name, now, variable.default or "-", variable.sentence)
    console().print(table, markup=False, highlight=False)
