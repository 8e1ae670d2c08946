# SPDX-License-Identifier: Apache-2.0
"""How long a call would take: the plan that would run, simulated op by op."""

from __future__ import annotations

import os
from typing import Any

from collectives._ffi import ffi, lib
from collectives.errors import InvalidArgumentError
from collectives.machine_costs import MachineCosts, native_of
from collectives.names import MODES, algorithm_index, choose_from
from collectives.simulation import _network
from collectives.stopping import run_alone
from collectives.topology.checked import cost, number
from collectives.topology.value import Topology


def predict(
    costs: MachineCosts,
    kind: str,
    algorithm: str,
    nbytes: int,
    p: int,
    *,
    mode: str = "staged",
    lag: int = 1,
    tile_bytes: int = 0,
    far: bool = False,
    streams: bool | None = None,
    agrees: bool = False,
    alone: bool = False,
    root: int = 0,
) -> float:
    """Return the seconds from call to call, one after another, of ``p`` ranks that share memory.

    ``nbytes`` of a rank's longest buffer; ``tile_bytes`` of its stage in a tile (0: as many as a
    slot holds). ``far``: the cores share no cache; then, unless ``streams`` says otherwise, stages
    go around the caches where that is faster. ``agrees``: all ranks wait for all at the beginning,
    as large calls do. ``alone``: of a call that all ranks begin together, until its last rank has
    left it. An allreduce, a reduce and a broadcast work in place.

    Raises:
        InvalidArgumentError: there is no such algorithm or mode, or a number is none.
        UnsupportedError: the algorithm is not defined for so many ranks.
    """
    if not isinstance(costs, MachineCosts):
        raise InvalidArgumentError(
            f"predict: costs is a {type(costs).__name__}: give the MachineCosts of a machine"
        )
    task = _task(kind, algorithm, nbytes, p, lag, tile_bytes, root)
    known = [word for word in MODES if word != "auto"]
    task.mode = MODES[choose_from(mode, known, "predict: mode")]
    task.far = far
    task.streams = far if streams is None else streams
    task.agrees, task.alone = agrees, alone
    seconds = ffi.new("double *")
    run_alone(lib.coll_predict, native_of(costs), task, seconds)
    return float(seconds[0])


def predict_wire(
    topology: str | Topology | os.PathLike[str],
    kind: str,
    algorithm: str,
    nbytes: int,
    p: int,
    *,
    lag: int = 1,
    tile_bytes: int = 0,
    pace: int = 0,
    alone: bool = False,
    root: int = 0,
) -> float:
    """Return the seconds from call to call of ``p`` ranks on a network, as :func:`predict` does.

    ``tile_bytes`` of a chunk (0: chunks travel whole); ``pace``: tiles that one of several
    connections may be ahead of the others (0: any).
    """
    task = _task(kind, algorithm, nbytes, p, lag, tile_bytes, root)
    task.pace = number("predict: pace", pace)
    task.alone = alone
    network = _network(topology, task.p)
    try:
        seconds = ffi.new("double *")
        run_alone(lib.coll_predict_wire, network, task, seconds)
    finally:
        lib.coll_network_free(network)
    return float(seconds[0])


def _task(
    kind: str, algorithm: str, nbytes: int, p: int, lag: int, tile_bytes: int, root: int
) -> Any:
    task = ffi.new("coll_prediction *")
    task.size = ffi.sizeof("coll_prediction")
    task.algorithm = algorithm_index(kind, algorithm)
    task.p = number("predict: p", p)
    task.root = number("predict: root", root)
    task.lag = number("predict: lag", lag)
    task.bytes = cost("predict: nbytes", nbytes, "bytes")
    task.tile_bytes = cost("predict: tile_bytes", tile_bytes, "bytes")
    return task
