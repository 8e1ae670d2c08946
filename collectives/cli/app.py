# SPDX-License-Identifier: Apache-2.0
"""The command line of collbench: one subcommand per collective, and the algorithms as data."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from collectives.cli import compare, health, run, show, simulate, topology, tuning
from collectives.errors import CollectiveError
from collectives.exact import KINDS
from collectives.standard_output import Command, ending_unwritable, writing

INTERRUPTED = 128 + signal.SIGINT  # what a shell reports for a program that Ctrl-C ended


class OneSentence(Command, click.Group):
    """A group whose every failure is one sentence on standard error.

    Exit codes: 0 all well, 1 a result, proof or rank failed, or what it prints cannot be written,
    2 the command line is wrong, 130 Ctrl-C, 141 nobody reads it, as in `collbench ... | head -1`.
    """

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Find a command; reduce-scatter is reduce_scatter."""
        return super().get_command(ctx, name.replace("-", "_"))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and turn every error into its exit code."""
        try:
            done = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as no_arguments:
            click.echo(no_arguments.format_message(), err=True)
            sys.exit(2)
        except click.ClickException as error:
            _fail(error.format_message(), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            _fail("interrupted", INTERRUPTED)
        except CollectiveError as error:
            _fail(str(error), 1)
        sys.exit(done if isinstance(done, int) else 0)


def _fail(sentence: str, code: int) -> NoReturn:
    with ending_unwritable("collbench"), writing(sys.stderr, "standard error"):
        click.echo(f"collbench: {sentence}", err=True)
    sys.exit(code)


@click.group(cls=OneSentence, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pycollectives", prog_name="collbench")
def collbench() -> None:
    """Measure, check, prove and draw collectives.

    For instance: collbench allreduce -n 4 --sizes 8:64M --algorithms all
    """


for _kind in KINDS:
    collbench.add_command(run.command(_kind))
_OTHERS = (show.list_algorithms, show.verify, show.draw, show.env, simulate.simulate)
for _command in (
    *_OTHERS,
    tuning.tune,
    tuning.explain,
    health.doctor,
    topology.topo,
    compare.compare,
):
    collbench.add_command(_command)
