# SPDX-License-Identifier: Apache-2.0
"""Tables of earlier runs, in the user's cache, found again by what names the machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from collectives.errors import CollectiveError
from collectives.tuning.table import VERSION
from collectives.whole_file import replace_whole

if TYPE_CHECKING:
    from collectives.machine_costs import MachineCosts
    from collectives.tuning.table import TunedTable

CACHE = "COLLECTIVES_CACHE"
NOWHERE = "off"
_MOST = 64  # tables that are looked through


def folder(variables: Mapping[str, str] | None = None) -> Path | None:
    """Return where this user's tables are kept; None: nowhere.

    COLLECTIVES_CACHE, else ``collectives`` in XDG_CACHE_HOME, else in ``~/.cache``. Raises OSError
    where it is named after the home of a user that there is not.
    """
    env = os.environ if variables is None else variables
    named = env.get(CACHE, "")
    if named:
        return None if named == NOWHERE else _expanded(named)
    general = env.get("XDG_CACHE_HOME", "")
    if os.path.isabs(
        general
    ):  # others are to be ignored, says the XDG base directory specification
        return Path(general) / "collectives"
    try:
        return Path.home() / ".cache" / "collectives"
    except RuntimeError:  # a user without a home
        return None


def _expanded(named: str) -> Path:
    try:
        return Path(named).expanduser()
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "there is no such home", named) from None


def table_path(machine: str) -> Path | None:
    """Return where the table of a machine is or would be. Raises OSError as :func:`folder` does."""
    where = folder()
    # Another version of the library may be in use beside this one, with files of its own.
    return None if where is None else where / f"tuned-{VERSION}-{machine}.json"


def found_table(machine: str) -> Path | None:
    """Return where the table of a machine is; None: there is none.

    Raises OSError where the folder cannot be looked at, and so nothing is known.
    """
    path = table_path(machine)
    return path if path is not None and path.is_file() else None


def is_there() -> bool:
    """Whether there is such a folder, as far as this process can see."""
    try:
        where = folder()
        return where is not None and where.is_dir()
    except OSError:
        return False


def may_be_kept(ranks: int) -> bool:
    """Whether a table for so many ranks is kept, of whatever machine."""
    from collectives.tuning.table import TunedTable

    for path in _tables():
        try:
            if TunedTable.load(path).ranks == ranks:
                return True
        except (CollectiveError, OSError):
            continue  # whoever uses it is told
    return False


def _tables() -> list[Path]:
    """Return the tables that there are; of a folder that cannot be looked at, none.

    Most programs have no use for tables: only who asks for one is told.
    """
    try:
        where = folder()
        found = () if where is None else where.glob(f"tuned-{VERSION}-*.json")
        return sorted(found)[:_MOST]
    except OSError:
        return []


def costs_path(machine: str) -> Path | None:
    """Return where its costs are or would be."""
    where = folder()
    return None if where is None else where / f"costs-{machine}.json"


def kept_costs(machine: str) -> MachineCosts | None:
    """Return the costs of a machine that were kept; None: there are none that can be seen.

    Raises InvalidArgumentError or OSError where they are damaged or cannot be read.
    """
    from collectives.machine_costs import load_costs

    try:
        path = costs_path(machine)
        if path is None or not path.is_file():
            return None
    except OSError:
        return None
    return load_costs(path)


def keep(table: TunedTable, costs: MachineCosts | None) -> Path | None:
    """Keep a table, and what the machine costs, for later runs; return where, None: nowhere.

    Raises OSError where it cannot be written.
    """
    path, beside = table_path(table.machine), costs_path(table.machine)
    if path is None or beside is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_whole(path, table.to_json())
    if costs is not None:
        replace_whole(beside, costs.to_json())
    return path
