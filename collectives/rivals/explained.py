# SPDX-License-Identifier: Apache-2.0
"""What is told of NCCL as a candidate: ``comm.explain(..., device="cuda")``, ``comm.last``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives.last import LastCall
from collectives.names import AUTOMATIC, OPS, RIVALS, choose_from
from collectives.rivals.fitting import fitting
from collectives.rivals.trial import OURS

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.rivals.rival import NcclRival
    from collectives.rivals.trial import Decision


@dataclass(frozen=True)
class GpuExplanation:
    """Who runs a call of arrays on GPUs, and why. Printed, it is a few lines.

    ``choice`` is "nccl", "mixed" (NCCL within hosts, ours between them), "ours", or "open": the
    first such call decides. ``ours``, ``nccl`` and ``mixed`` are medians of seconds in so many
    ``rounds`` of calls on vectors of ``measured_at`` bytes; None where that was not measured.
    ``why`` tells the reason, also why there is no NCCL.
    """

    kind: str
    nbytes: int
    dtype: str
    ranks: int
    choice: str
    why: str
    ours: float | None = None
    nccl: float | None = None
    mixed: float | None = None
    rounds: int = 0
    measured_at: int | None = None

    def __str__(self) -> str:
        """Return the explanation as a few lines."""
        lines = [
            f"{self.kind} of {self.nbytes} bytes of {self.dtype} on GPUs among {self.ranks} "
            f"{'rank' if self.ranks == 1 else 'ranks'}: {self.choice}",
            f"  {self.why}",
        ]
        if self.rounds:
            each = ((way, getattr(self, way)) for way in (OURS, *RIVALS))
            told = (f"{way} {seconds * 1e6:.3g} us" for way, seconds in each if seconds is not None)
            lines.append(
                f"  {', '.join(told)}: medians of {self.rounds} rounds at {self.measured_at} bytes"
            )
        return "\n".join(lines)


def explained(comm: Communicator, kind: str, nbytes: int, dtype: str) -> GpuExplanation:
    """Return who runs a sum of such arrays, or moves them. Local."""
    choose_from(dtype, arrays.DTYPES, "explain: dtype")
    rival = comm._nccl
    choice, why, found = "open", "nobody has asked for NCCL yet: the first such call does", None
    if rival is not None:
        choice, why, found = _known(rival, kind, nbytes, arrays.DTYPES[dtype])
    measured = found if found is not None and found.rounds > 0 else None
    seconds = measured.seconds if measured else {}
    return GpuExplanation(
        kind=kind,
        nbytes=nbytes,
        dtype=dtype,
        ranks=comm.size,
        choice=choice,
        why=why,
        ours=seconds.get(OURS),
        nccl=seconds.get("nccl"),
        mixed=seconds.get("mixed"),
        rounds=measured.rounds if measured else 0,
        measured_at=measured.nbytes if measured else None,
    )


def _known(
    rival: NcclRival, kind: str, nbytes: int, dtype: int
) -> tuple[str, str, Decision | None]:
    """Return who runs a call, why, and what was measured, where the ranks have asked."""
    fit = fitting(kind, dtype, OPS["sum"], AUTOMATIC, None)
    if isinstance(fit, str):
        return "ours", f"nccl is left out: {fit}", None
    if why := rival.closed_to(kind):
        return "ours", why, None
    if not rival.asked:
        return "open", "nobody has asked for NCCL yet: the first such call does", None
    lacking = rival.lacking(fit)
    wished = rival.wished(kind)
    if wished and not lacking[wished]:
        return wished, f"wished for by {rival.wisher(kind)}", None
    if wished or all(lacking.values()):
        return "ours", left_out(lacking, wished), None
    found = rival.decisions.get((kind, dtype, nbytes.bit_length()))
    if found is None:
        return "open", "nothing was measured for this length yet: the first such call does it", None
    return found.by, found.why, found


def left_out(lacking: Mapping[str, str], wished: str = "") -> str:
    """Return why ways are left out, or the one that is wished for."""
    told = {wished: lacking[wished]} if wished else lacking
    return "; ".join(f"{way} is left out: {why}" for way, why in told.items() if why)


@dataclass(frozen=True)
class NcclTaken:
    """The last collective of a rank where NCCL made it; ``sequence`` of the agreement before it."""

    way: str
    kind: str
    nbytes: int
    sequence: int

    def told(self) -> Any:
        """Return it as ``comm.last``."""
        return LastCall(
            kind=self.kind,
            algorithm=self.way,
            mode=self.way,
            nbytes=self.nbytes,
            seconds=math.nan,
            busbw=math.nan,
            waiting=math.nan,
            sequence=self.sequence,
            way=self.way,
        )
