# SPDX-License-Identifier: Apache-2.0
"""The largest elements of a gradient only; what is left out is added to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collectives.compression.codec import Vector
from collectives.compression.time_left import TimeLeft
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.names import integer, real
from collectives.sparse.selection import select_above, top_k
from collectives.sparse.vector import Sparse

if TYPE_CHECKING:
    from collectives.compression.topk_gpu import GpuKept
    from collectives.reductions import Reductions

_Threshold: TypeAlias = tuple[float | None, int]  # and how often it was used

_STATE = ("residual", "speed", "threshold", "uses")
_MOST = 2  # times as many elements as wanted make a threshold too old


class TopK:
    """The sum of the largest elements of each rank: ``allreduce(x, compress=topk)``.

    Each rank adds what it left out before (error feedback, its residual) to ``x``, takes the
    elements that are largest in magnitude, and keeps the rest for the next call; these are added up
    as sparse vectors. So nothing is lost, but late. One object is for one array: make one for each
    gradient, and keep it. Lin et al., "Deep Gradient Compression", ICLR'18; Stich, Cordonnier &
    Jaggi, "Sparsified SGD with Memory", NeurIPS'18; Renggli et al., "SparCML", SC'19.

    Args:
        share: Which share of the elements is taken, above 0 and at most 1; at least one element.
        feedback: Whether what is left out is kept.
        reuse: For how many calls the smallest magnitude that was taken is the threshold of the next
            ones, which saves the search (Li & Hoefler, "Near-Optimal Sparse Allreduce",
            PPoPP'22); 1: elements are chosen exactly in every call. A threshold that lets more than
            twice as many through, or fewer than half as many, is not used.
        of_sum: Whether the result, too, is that share of the elements, the largest of the sum, so
            that bytes do not grow with the number of ranks (all of Li & Hoefler's Ok-Topk). What a
            rank sent and is not in the result is left for the next call as well.
        momentum: That of the descent, 0 ... 1, where the program's own has none: it is then kept on
            each rank of what the rank has not sent yet, and ends with what it sends ("momentum
            correction" and "factor masking" of Deep Gradient Compression). An optimiser's own
            momentum takes late gradients for new ones, and may go astray.

    Attributes:
        residual: What was left out so far, one-dimensional, at least in float32; None before the
            first call.
        speed: The momentum, as the residual; None without, or before the first call.

    Raises InvalidArgumentError for other arguments.
    """

    def __init__(
        self,
        share: float,
        *,
        feedback: bool = True,
        reuse: int = 1,
        momentum: float = 0.0,
        of_sum: bool = False,
    ) -> None:
        """Begin without a residual."""
        if not 0 < real(share) <= 1:
            raise InvalidArgumentError(f"TopK: share is {share!r}: it is above 0 and at most 1")
        calls = integer(reuse)
        if calls is None or calls < 1:
            raise InvalidArgumentError(f"TopK: reuse is {reuse!r}: it is an integer, 1 or more")
        if not 0 <= real(momentum) < 1 or (real(momentum) and not feedback):
            raise InvalidArgumentError(
                f"TopK: momentum is {momentum!r}: it is 0 or more and below 1, and wants feedback"
            )
        if of_sum not in (True, False):
            raise InvalidArgumentError(f"TopK: of_sum is {of_sum!r}: it is True or False")
        self.share, self.feedback, self.reuse = float(share), feedback, calls
        self.momentum, self.of_sum = float(momentum), bool(of_sum)
        self.speed: Vector | None = None
        self.residual: Vector | None = None
        self._threshold: float | None = None
        self._uses = 0
        self._on_gpu: GpuKept | None = None

    def reduce(self, comm: Reductions, x: Vector, op: str, timeout: float | None) -> Vector:
        """Choose, add up, keep the rest. A call that fails leaves what is kept as it was."""
        left = TimeLeft(comm, timeout)
        whole, speed = self._with_residual(x)
        chosen, kept = self._chosen(whole)
        sent = Sparse(chosen.indices, _within(np.asarray(chosen.values), x.dtype), x.size)
        if self.of_sum and x.size:
            some = self._wanted(x.size)
            total: Sparse = comm.allreduce(
                sent, op=op, output="sparse", largest=some, timeout=left()
            )
            told = np.isin(sent.indices, total.indices, assume_unique=True)
            sent, result = Sparse(sent.indices[told], sent.values[told], x.size), total.dense()
        else:
            result = comm.allreduce(sent, op=op, output="dense", timeout=left())
        self._threshold, self._uses = kept
        if self.feedback:
            self._leave(whole, speed, sent)
        return np.asarray(result)

    def state(self) -> dict[str, Any]:
        """Return all that is kept between calls, for a program to save with its model.

        Copies of ``residual`` and ``speed``, and of ``reuse`` the threshold and how often it was
        used: arrays, numbers and None by name.

        Raises UnsupportedError where what is kept is on a GPU.
        """
        if self._on_gpu is not None:
            raise UnsupportedError(
                "TopK.state: what is kept is on a GPU, and not copied from there yet"
            )
        kept = {name: None if x is None else np.array(x) for name, x in self._arrays()}
        return {**kept, "threshold": self._threshold, "uses": self._uses}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state` was called.

        Raises InvalidArgumentError for what it has not returned.
        """
        try:
            residual, speed, threshold, uses = (state[name] for name in _STATE)
            arrays = [None if x is None else _of_state(x) for x in (residual, speed)]
            least, times = None if threshold is None else real(threshold), integer(uses)
            sound = len(state) == len(_STATE) and times is not None and times >= 0
            sound = sound and (least is None or 0 < least < np.inf)
            sound = sound and (speed is None or residual is not None)
            if not sound or len({x.size for x in arrays if x is not None}) > 1:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise InvalidArgumentError(
                f"TopK.restore: the state is {state!r:.80}: pass what TopK.state returned"
            ) from None
        self.residual, self.speed = arrays
        self._threshold, self._uses = least, times or 0

    def _arrays(self) -> list[tuple[str, Vector | None]]:
        return [("residual", self.residual), ("speed", self.speed)]

    def _leave(self, whole: Vector, speed: Vector | None, sent: Sparse) -> None:
        # Of narrow floats what rounding took is left as well.
        with np.errstate(invalid="ignore"):  # of infinity nothing is left
            whole[sent.indices] -= np.asarray(sent.values).astype(whole.dtype)
        whole[sent.indices[~np.isfinite(whole[sent.indices])]] = 0
        if speed is not None:
            speed[sent.indices] = 0
        self.residual, self.speed = whole, speed

    def _wanted(self, size: int) -> int:
        return max(round(self.share * size), 1) if size else 0

    def select(self, whole: Vector) -> Sparse:
        """Return the elements that travel: exactly those, or about as many by a kept threshold."""
        chosen, (self._threshold, self._uses) = self._chosen(whole)
        return chosen

    def _chosen(self, whole: Vector) -> tuple[Sparse, _Threshold]:
        """Return them, and the threshold that is to be kept with how often it was used."""
        wanted, least = self._wanted(whole.size), self._threshold
        if least is not None and self._uses < self.reuse:
            found = select_above(whole, least, _MOST * wanted)
            if wanted <= 2 * found.nnz and found.nnz <= _MOST * wanted:
                return found, (least, self._uses + 1)
        chosen = top_k(whole, wanted)
        if self.reuse > 1 and wanted:
            smallest = float(np.abs(np.asarray(chosen.values)).min())
            least = smallest if np.isfinite(smallest) and smallest > 0 else None
        return chosen, (least, 1)

    def _with_residual(self, x: Vector) -> tuple[Vector, Vector | None]:
        """Return what is to be sent by and by, and the momentum, both new."""
        wide = x.dtype if x.dtype.itemsize >= 4 else np.dtype(np.float32)
        whole, speed = x.astype(wide), self.speed
        if self.momentum:
            if speed is not None:
                whole += self.momentum * self._kept("speed", speed, whole)
            speed = whole.copy()
        if self.feedback and self.residual is not None:
            whole += self._kept("residual", self.residual, whole)
        return whole, speed

    def _kept(self, name: str, state: Any, whole: Vector) -> Vector:
        kept = np.asarray(state).reshape(-1)
        if kept.size != whole.size:
            raise InvalidArgumentError(
                f"TopK: the {name} has {kept.size} elements, x has {whole.size}: use one TopK for "
                "each array"
            )
        return kept.astype(whole.dtype, copy=False)


def _of_state(kept: Any) -> Vector:
    """Return a copy of what is kept, or a list of its numbers; else raise ValueError."""
    found = np.array(kept)
    if isinstance(kept, list) and found.dtype.kind in "iu":  # whole numbers among them, or none
        found = found.astype(np.float64)
    if found.ndim != 1 or found.dtype.kind != "f":
        raise ValueError
    return found


def _within(values: Vector, dtype: np.dtype[Any]) -> Vector:
    """Round to a dtype; numbers beyond its range to its largest, so that the rest is sent later."""
    with np.errstate(over="ignore"):
        rounded: Vector = values.astype(dtype)
    beyond = ~np.isfinite(rounded) & np.isfinite(values)
    if beyond.any():
        most = np.nextafter(dtype.type(np.inf), dtype.type(0)).astype(values.dtype)
        rounded[beyond] = np.copysign(most, values[beyond]).astype(dtype)
    return rounded
