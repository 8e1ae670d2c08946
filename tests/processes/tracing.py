# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_tracing` do."""

from __future__ import annotations

import json
import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

import collectives as cl

VICTIM = 2


def traces(folder: str) -> None:
    """Trace a few calls of all ranks; then one block in which a rank dies."""
    comm = cl.init(timeout=30)
    with cl.trace(Path(folder, "whole.json")):
        cl.allreduce(np.ones(100))
        with comm.dup() as other:
            other.barrier()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with cl.trace(Path(folder, "broken.json")):
            cl.barrier()
            if comm.rank == VICTIM:
                os.kill(os.getpid(), signal.SIGKILL)
            with pytest.raises(cl.PeerLostError):
                cl.allreduce(np.ones(100))
    Path(folder, f"told{comm.rank}.json").write_text(json.dumps([str(w.message) for w in told]))
