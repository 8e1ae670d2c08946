# SPDX-License-Identifier: Apache-2.0
"""The short ways of C for plain NumPy arrays, which the compiled module has once NumPy is there."""

from __future__ import annotations

# First, so that what is wrong with NumPy is told by NumPy.
import numpy as np  # noqa: F401

from collectives._ffi import lib, native

if (_installed := lib.install_plain_calls()) < 0:
    raise KeyboardInterrupt
if not _installed:
    raise ImportError(
        "the compiled part of pycollectives cannot complete itself, for the reason that stands "
        "above: where none does, reinstall the package"
    )

PlainPersistent = native.PlainPersistent
dlpack_capsule = native.dlpack_capsule
meet_dtype = native.meet_dtype
rows_of_parts = native.rows_of_parts
run_nccl_allreduce = native.run_nccl_allreduce
run_plain = native.run_plain
run_plain_parts = native.run_plain_parts
run_plain_plan = native.run_plain_plan
run_plain_sparse = native.run_plain_sparse
