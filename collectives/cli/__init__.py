# SPDX-License-Identifier: Apache-2.0
"""collbench: measure, check, prove and draw collectives from the command line."""

from __future__ import annotations


def main() -> None:
    """Run collbench on this process's arguments."""
    # The ranks import this package too; they have no use for the command line's own imports.
    from collectives.cli.app import collbench

    collbench.main(prog_name="collbench")
