# SPDX-License-Identifier: Apache-2.0
"""What is told of NCCL as a candidate: ``comm.explain(..., device="cuda")``, ``comm.last``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives.last import LastCall
from collectives.names import AUTOMATIC, OPS, choose_from
from collectives.rivals.fitting import fitting, lacks

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.rivals.rival import NcclRival
    from collectives.rivals.trial import Decision


@dataclass(frozen=True)
class GpuExplanation:
    """Who runs a call of arrays on GPUs, and why. Printed, it is a few lines.

    ``choice`` is "nccl", "ours", or "open": the first such call decides. ``ours`` and ``nccl`` are
    medians of seconds in so many ``pairs`` of calls on vectors of ``measured_at`` bytes; None where
    nothing was measured. ``why`` tells the reason, also why there is no NCCL.
    """

    kind: str
    nbytes: int
    dtype: str
    ranks: int
    choice: str
    why: str
    ours: float | None = None
    nccl: float | None = None
    pairs: int = 0
    measured_at: int | None = None

    def __str__(self) -> str:
        """Return the explanation as a few lines."""
        lines = [
            f"{self.kind} of {self.nbytes} bytes of {self.dtype} on GPUs among {self.ranks} "
            f"{'rank' if self.ranks == 1 else 'ranks'}: {self.choice}",
            f"  {self.why}",
        ]
        if self.ours is not None and self.nccl is not None:
            lines.append(
                f"  ours {self.ours * 1e6:.3g} us, nccl {self.nccl * 1e6:.3g} us: medians of "
                f"{self.pairs} pairs at {self.measured_at} bytes"
            )
        return "\n".join(lines)


def explained(comm: Communicator, kind: str, nbytes: int, dtype: str) -> GpuExplanation:
    """Return who runs a sum of such arrays, or moves them. Local."""
    choose_from(dtype, arrays.DTYPES, "explain: dtype")
    rival = comm._nccl
    choice, why, found = "open", "nobody has asked for NCCL yet: the first such call does", None
    if rival is not None:
        choice, why, found = _known(rival, kind, nbytes, arrays.DTYPES[dtype])
    measured = found if found is not None and found.pairs > 0 else None
    return GpuExplanation(
        kind=kind,
        nbytes=nbytes,
        dtype=dtype,
        ranks=comm.size,
        choice=choice,
        why=why,
        ours=measured.ours if measured else None,
        nccl=measured.nccl if measured else None,
        pairs=measured.pairs if measured else 0,
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
    if rival.why is None:
        return "open", "nobody has asked for NCCL yet: the first such call does", None
    if why := rival.why or lacks(fit, rival.version):
        return "ours", f"nccl is left out: {why}", None
    if rival.wishes(kind):
        return "nccl", "wished for by COLLECTIVES_ALGORITHM", None
    found = rival.decisions.get((kind, dtype, nbytes.bit_length()))
    if found is None:
        return "open", "nothing was measured for this length yet: the first such call does it", None
    return ("nccl" if found.by_nccl else "ours"), found.why, found


@dataclass(frozen=True)
class NcclTaken:
    """The last collective of a rank where NCCL made it; ``sequence`` of the agreement before it."""

    kind: str
    nbytes: int
    sequence: int

    def told(self) -> Any:
        """Return it as ``comm.last``."""
        return LastCall(
            kind=self.kind,
            algorithm="nccl",
            mode="nccl",
            nbytes=self.nbytes,
            seconds=math.nan,
            busbw=math.nan,
            waiting=math.nan,
            sequence=self.sequence,
            way="nccl",
        )
