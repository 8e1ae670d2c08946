# SPDX-License-Identifier: Apache-2.0
"""``collrun``: start the ranks of a job on this machine. Also ``python -m collectives.launch``."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys

import click

from collectives import environment
from collectives.cli.seconds import Seconds
from collectives.printers import with_prefixes, without_prefixes
from collectives.standard_output import Command, say
from collectives.supervise import Job, Outcome, Printer

MOST_RANKS = 1024  # as native/abi/communicator.cc has it


def checked_ranks(_: click.Context, __: click.Parameter, ranks: int | None) -> int | None:
    """Return a number of ranks that the library takes: else every one of them would refuse it."""
    if ranks is not None and not 1 <= ranks <= MOST_RANKS:
        raise click.BadParameter(
            f"{ranks} ranks cannot be started: a job on one machine has 1 to {MOST_RANKS}."
        )
    return ranks


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@click.version_option(package_name="pycollectives", prog_name="collrun")
@click.option(
    "-n", "--ranks", type=int, callback=checked_ranks,
    help=f"How many ranks, 1 to {MOST_RANKS}; with --hosts as many as these have slots.",
)  # fmt: skip
@click.option(
    "--hosts", help="Hosts and how many ranks on each, filled in this order: a,b:2 (1 without).",
)  # fmt: skip
@click.option(
    "--ssh", help="Command that reaches a host, before its name. Default: COLLECTIVES_SSH, else "
    "ssh, which must not ask for a password.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(1, 65535),
    help="Where rank 0 meets the ranks of other hosts. Default: any that is free.",
)  # fmt: skip
@click.option(
    "--connect", type=Seconds(0), default=30.0, show_default=True,
    help="Seconds in which all hosts must have been reached.",
)  # fmt: skip
@click.option(
    "--env", "variables", multiple=True, metavar="NAME",
    help="A variable to take along to the hosts; COLLECTIVES_* and PYTHONPATH go anyway.",
)  # fmt: skip
@click.option("-m", "--module", is_flag=True, help="COMMAND is a module, as for python -m.")
@click.option("--attempt", type=click.IntRange(0), default=0, help="Counts restarts of the job.")
@click.option(
    "--grace", type=Seconds(0), default=2.0, show_default=True,
    help="Seconds that the others have to end by themselves after one has failed.",
)  # fmt: skip
@click.option("--timestamps", is_flag=True, help="Print seconds since the start on each line.")
@click.option("--no-prefix", is_flag=True, help="Let the ranks write unchanged, as they like.")
@click.option("--stdin", "feed", is_flag=True, help="Rank 0 reads standard input; else nobody.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(
    ranks: int | None,
    hosts: str | None,
    ssh: str | None,
    port: int | None,
    connect: float,
    variables: tuple[str, ...],
    module: bool,
    attempt: int,
    grace: float,
    timestamps: bool,
    no_prefix: bool,
    feed: bool,
    command: tuple[str, ...],
) -> None:
    """Start COMMAND once for each rank: a Python file, or any program.

    Each rank gets COLLECTIVES_RANK, _SIZE, _JOB and _ATTEMPT, and OMP_NUM_THREADS=1 unless it is
    set. When one fails, the others have some time to end by themselves before they are ended
    (SIGTERM, then SIGKILL), and its exit code is collrun's (128 + the number for a signal). When
    nobody reads the output any more, as in `collrun ... | head -1`, the ranks are ended likewise
    and the exit code is 141 (SIGPIPE); where it cannot be written, the exit code is 1. The first
    Ctrl-C is passed on to the ranks, the second kills them.

    No rank outlives collrun, be it killed, nor does what the ranks have started, unless it has
    left their process groups (as daemons do, with setsid).

    With --hosts, each host is reached by ssh, and has this Python, library, folder and COMMAND
    under the same paths. Their ranks share a secret that goes through ssh.
    """
    line = command_line(module, command)
    name = os.urandom(8).hex()
    if hosts is not None:
        _refuse_feed(feed)
        wishes = (hosts, ssh, port or 0, connect, variables)
        outcome, total = _run_on_hosts(
            wishes, ranks, line, (name, attempt, grace), no_prefix, timestamps
        )
    elif ranks is None:
        raise click.UsageError("Missing how many ranks: -n 4, or hosts: --hosts a,b:2.")
    elif ssh is not None or port is not None or variables:
        raise click.UsageError("--ssh, --port and --env belong to --hosts, which is missing.")
    else:
        printers = None if no_prefix else with_prefixes(ranks, timestamps)
        kept = {environment.TUNE: environment.KEPT} if _may_use_kept(ranks) else {}
        environments = [_environment(rank, ranks, name, attempt) | kept for rank in range(ranks)]
        outcome, total = _start(line, environments, printers, feed, grace).run(), ranks
    if outcome.culprit is not None:
        say(f"collrun: {closing_line(outcome, total)}")
    sys.exit(exit_code(outcome))


def _refuse_feed(feed: bool) -> None:
    if feed:
        raise click.UsageError("--stdin does not reach other hosts: leave it out, or --hosts.")


def _start(
    line: list[str],
    environments: list[dict[str, str]],
    printers: tuple[Printer, Printer] | None,
    feed: bool,
    grace: float,
) -> Job:
    try:
        return Job(line, environments, printers, feed, grace)
    except OSError as error:
        raise click.ClickException(f"{_what_failed(line[0], error)}: {error.strerror}") from error


def _what_failed(program: str, error: OSError) -> str:
    if error.errno not in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM):
        return f"cannot run {program}"
    return "cannot start so many ranks within the limits of this process (ulimit -a)"


def _run_on_hosts(
    wishes: tuple[str, str | None, int, float, tuple[str, ...]],
    ranks: int | None,
    line: list[str],
    job: tuple[str, int, float],
    no_prefix: bool,
    timestamps: bool,
) -> tuple[Outcome, int]:
    # Not with this module: most jobs are on one host, and need neither.
    from collectives.remote.run import Wishes, run_on_hosts

    def printers(total: int) -> tuple[Printer, Printer]:
        return without_prefixes() if no_prefix else with_prefixes(total, timestamps)

    return run_on_hosts(Wishes(*wishes), ranks, line, job, printers)


def command_line(module: bool, command: tuple[str, ...]) -> list[str]:
    """Return the command of a rank."""
    if not command:
        raise click.UsageError("Missing what to run: a Python file, a program, or -m and a module.")
    if module:
        return [sys.executable, "-m", *command]
    program, *arguments = command
    if program.endswith(".py"):
        if not os.path.isfile(program):
            raise click.UsageError(f"There is no file {program}.")
        return [sys.executable, program, *arguments]
    if shutil.which(program) is None:
        raise click.UsageError(f"There is no program {program}; a Python file ends in .py.")
    return [program, *arguments]


def exit_code(outcome: Outcome) -> int:
    """Return the exit code of the rank at fault, as a shell gives it."""
    if outcome.culprit is None and outcome.passed_on and outcome.ended:
        return 128 + signal.SIGKILL  # a second Ctrl-C has killed ranks of other hosts
    code = outcome.culprit.code if outcome.culprit is not None else 0
    assert code is not None
    return code if code >= 0 else 128 - code


def closing_line(outcome: Outcome, ranks: int) -> str:
    """Say which rank failed and how, and what became of the others."""
    culprit = outcome.culprit
    assert culprit is not None
    assert culprit.code is not None
    if culprit.code < 0:
        how = f"was ended by {_signal_name(-culprit.code)}"
    else:
        how = f"ended with exit code {culprit.code}"
    line = f"rank {culprit.number} ({culprit.where}) {how}"
    if outcome.passed_on:
        line = f"{_signal_name(outcome.passed_on)} was passed on to all ranks: {line}"
    if outcome.ended:
        numbers = ", ".join(str(number) for number in sorted(outcome.ended))
        line += f"; ended after it: rank {numbers}"
    elif ranks > 1:
        line += "; the others ended by themselves"
    return line


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"


def _may_use_kept(ranks: int) -> bool:
    """Whether a table of choices is kept that these ranks may use, and no other wish is set."""
    from collectives.tuning.kept import may_be_kept

    return not os.environ.get(environment.TUNE) and ranks > 1 and may_be_kept(ranks)


def _environment(rank: int, ranks: int, job: str, attempt: int) -> dict[str, str]:
    return {
        # A rank's output is a pipe: without this, what it printed would die with it.
        "PYTHONUNBUFFERED": "1",
        # The ranks are the parallelism: else each would start a thread per core for its matrices.
        **({"OMP_NUM_THREADS": "1"} if ranks > 1 else {}),
        **os.environ,
        environment.RANK: str(rank),
        environment.SIZE: str(ranks),
        environment.JOB: job,
        environment.ATTEMPT: str(attempt),
    }


if __name__ == "__main__":
    main(prog_name="collrun")
