# SPDX-License-Identifier: Apache-2.0
"""The command line of collbench: one subcommand per collective, and the algorithms as data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from collectives.errors import CollectiveError
from collectives.names import KINDS
from collectives.standard_output import INTERRUPTED, Command, ending_unwritable, writing

# Where the commands are, besides those of the collectives. One is loaded when it is asked for: most
# need NumPy, some need all that races and tables need.
_OTHERS = {
    "compare": "compare.compare",
    "doctor": "health.doctor",
    "draw": "show.draw",
    "env": "show.env",
    "explain": "tuning.explain",
    "list": "show.list_algorithms",
    "simulate": "simulate.simulate",
    "topo": "topology.topo",
    "tune": "tuning.tune",
    "verify": "show.verify",
}


class OneSentence(Command, click.Group):
    """A group whose every failure is one sentence on standard error.

    Exit codes: 0 all well, 1 a result, proof or rank failed, or what it prints cannot be written,
    2 the command line is wrong, 130 Ctrl-C, 141 nobody reads it, as in `collbench ... | head -1`.
    """

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Load a command; reduce-scatter is reduce_scatter."""
        name = name.replace("-", "_")
        if name not in self.commands:
            return None
        try:
            return _loaded(name)
        except ImportError as error:  # of NumPy, say
            raise click.ClickException(f"{name} cannot be loaded: {error}") from error

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


def _loaded(name: str) -> click.Command:
    if name in KINDS:
        from collectives.cli.run import command

        return command(name)
    module, _, function = _OTHERS[name].partition(".")
    found: click.Command = getattr(import_module(f"collectives.cli.{module}"), function)
    return found


def _fail(sentence: str, code: int) -> NoReturn:
    with ending_unwritable("collbench"), writing(sys.stderr, "standard error"):
        click.echo(f"collbench: {sentence}", err=True)
    sys.exit(code)


# By these names, of which the nearest is shown for one that is wrong; what they run is loaded.
_STAND_INS = {name: click.Command(name) for name in (*KINDS, *_OTHERS)}


@click.group(
    cls=OneSentence, commands=_STAND_INS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="pycollectives", prog_name="collbench")
def collbench() -> None:
    """Measure, check, prove and draw collectives.

    For instance: collbench allreduce -n 4 --sizes 8:64M --algorithms all
    """
