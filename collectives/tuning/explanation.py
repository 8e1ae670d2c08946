# SPDX-License-Identifier: Apache-2.0
"""Why a call runs what it runs: the choice, its rivals, and what was held against each."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collectives.catalogue import algorithms
from collectives.machine_costs import MachineCosts
from collectives.tuning.candidates import candidates, distinct
from collectives.tuning.forced import ALGORITHM, wished_kinds
from collectives.tuning.installed import HIERARCHICAL, chosen
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.tuning.tuner import Cell


@dataclass(frozen=True)
class Rival:
    """An algorithm that was not chosen, and why.

    ``measured`` is the median of its fastest plan in seconds, where it was raced at that size;
    ``predicted`` what the cost model says of its plan with the parameters of the choice.
    """

    algorithm: str
    why: str
    measured: float | None = None
    predicted: float | None = None


@dataclass(frozen=True)
class Explanation:
    """What a call runs, and why nothing else. Printed, it is a table.

    ``source`` is "measured", "predicted" (use_model()), "wished for" (COLLECTIVES_ALGORITHM or
    force()), "announced" (by rank 0, from a table that is kept or by refine()) or "rule".
    ``measured`` seconds are those of the race that decided, on vectors of ``measured_at`` bytes;
    ``predicted`` ones those of the cost model (between machines None, unless tune() or use_model()
    has measured the links). All of it is for cores that share a cache; ``far``: what runs on
    others, if that is another plan.
    """

    kind: str
    nbytes: int
    ranks: int
    transport: str
    choice: Choice
    source: str
    rivals: tuple[Rival, ...]
    measured: float | None = None
    measured_at: int | None = None
    predicted: float | None = None
    far: Choice | None = None

    def __str__(self) -> str:
        """Return the explanation as a few lines."""
        sized = self.kind != "barrier"
        of = f" of {self.nbytes} bytes" if sized else ""
        at = f" at {self.measured_at} bytes" if sized else ""
        lines = [
            f"{self.kind}{of} among {self.ranks} "
            f"{'rank' if self.ranks == 1 else 'ranks'} by {self.transport}: "
            f"{self.choice}",
            f"  {_SOURCES[self.source]}"
            + (
                f": {_microseconds(self.measured)} in the race{at}"
                if self.measured is not None
                else ""
            ),
        ]
        if self.far is not None:
            lines.append(f"  on cores that share no cache: {self.far}")
        if self.predicted is not None:
            lines.append(f"  predicted: {_microseconds(self.predicted)}")
        lines += [
            f"  {rival.algorithm}: {rival.why}"
            + (f" (predicted: {_microseconds(rival.predicted)})" if rival.predicted else "")
            for rival in self.rivals
        ]
        return "\n".join(lines)


_MOST_PREDICTED = 16  # ranks: of more it would take seconds
_SOURCES = {
    "measured": "what has won where it was measured here",
    "predicted": "what the cost model predicts to be the fastest here (comm.use_model())",
    "announced": "announced by rank 0: by a table that is kept, or refine() found it faster",
    "wished for": "wished for by COLLECTIVES_ALGORITHM or force()",
    "rule": "by the rules of the library: nothing was measured for this size (comm.tune())",
}


def explained(
    comm: Communicator, kind: str, nbytes: int, cells: Sequence[Cell], forced: bool
) -> Explanation:
    """Return why ``comm`` runs what it runs. Local."""
    choice, tuned = chosen(comm, kind, nbytes)
    source = "rule" if not tuned else "predicted" if comm._predicted else "measured"
    if tuned and (forced or kind in wished_kinds(os.environ.get(ALGORITHM, ""))):
        source = "wished for"
    elif tuned and kind not in {choice.kind for choice in comm._measured}:
        source = "announced"
    far = chosen(comm, kind, nbytes, far=True)[0]
    cell = _nearest(kind, nbytes, cells) if source == "measured" else None
    times = _fastest(cell)
    predicted = _predicted(comm, choice, nbytes)
    rivals = [
        Rival(
            a.name,
            _why(kind, a.name, comm.size, choice, times if cell else None, source),
            times.get(a.name),
            predicted.get(a.name),
        )
        for a in algorithms(kind)
        if a.name != choice.algorithm
    ]
    return Explanation(
        kind=kind,
        nbytes=nbytes,
        ranks=comm.size,
        transport=comm.transport,
        choice=choice,
        source=source,
        rivals=tuple(sorted(rivals, key=lambda rival: rival.measured or math.inf)),
        measured=times.get(choice.algorithm) if source == "measured" else None,
        measured_at=cell.nbytes if cell is not None else None,
        predicted=predicted.get(choice.algorithm),
        far=None if replace(far, far=choice.far) == choice else far,
    )


def _predicted(comm: Communicator, choice: Choice, nbytes: int) -> dict[str, float]:
    """Return what the cost model says of the choice, and of the best plan of each other algorithm.

    Between machines nothing, unless tune() or use_model() has measured the links.
    """
    from collectives.tuning.modelled import seconds_of

    empty = nbytes == 0 and choice.kind != "barrier"
    if not 1 < comm.size <= _MOST_PREDICTED or empty or choice.algorithm == HIERARCHICAL:
        return {}
    shared = choice.mode != "wire"
    costs = comm._known_costs if shared else comm._links
    if costs is None:
        return {}
    if isinstance(costs, MachineCosts) and comm.size == 2:
        costs = costs.placed(far=False)
    found: dict[str, float] = {}
    for one in candidates(choice.kind, comm.size, nbytes, shared):
        if one.algorithm != choice.algorithm:
            seconds = seconds_of(costs, one, comm.size)
            found[one.algorithm] = min(found.get(one.algorithm, math.inf), seconds)
    found[choice.algorithm] = seconds_of(costs, replace(choice, nbytes=nbytes), comm.size)
    return found


def _nearest(kind: str, nbytes: int, cells: Sequence[Cell]) -> Cell | None:
    """Return the race that decided: that of the size which is nearest in logarithms.

    Those on far cores say nothing of near ones, unless there are no others.
    """
    raced = [cell for cell in cells if cell.kind == kind and cell.standings]
    size = max(nbytes, 1)
    return min(
        [cell for cell in raced if not cell.far] or raced,
        key=lambda cell: abs(math.log(cell.nbytes / size)),
        default=None,
    )


def _fastest(cell: Cell | None) -> dict[str, float]:
    times: dict[str, float] = {}
    for standing in cell.standings if cell is not None else ():
        times.setdefault(standing.choice.algorithm, standing.seconds)
    return times


def _why(
    kind: str, name: str, p: int, choice: Choice, times: dict[str, float] | None, source: str
) -> str:
    """Say what was held against an algorithm; ``times`` of the race, None where it is not known."""
    algorithm = next(a for a in algorithms(kind) if a.name == name)
    if not algorithm.fits(p):
        return f"is not defined for {p} ranks: {algorithm.restriction}"
    if name not in distinct(kind, p):
        return f"is, among {p} ranks, the same schedule as one before it in the table"
    if source == "wished for":
        return "another one is wished for"
    if source == "announced":
        return "rank 0 has announced another one for this size"
    if source == "predicted":
        return "the model has chosen another one for vectors of about this length"
    if choice.algorithm == HIERARCHICAL:
        return "sends more between hosts, where ranks share them"
    if times is None and source == "measured":
        return "lost when the table was made, which does not say by how much"
    if times is not None and name in times and choice.algorithm in times:
        slower = times[name] / times[choice.algorithm]
        why = ": not faster beyond doubt, or not once more when that was confirmed"
        return f"{_microseconds(times[name])}, {slower:.2f} times as long{why * (slower < 1)}"
    if source == "measured":
        return (
            "was not tried at this size: far behind at the one below, or predicted to be, or time "
            "was over"
        )
    return "another one is the rule for this size and number of ranks"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"
