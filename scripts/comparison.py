# SPDX-License-Identifier: Apache-2.0
"""The page that compares what is here with mpi4py, torch.distributed over gloo, NCCL and MPICH.

Our own column is read from the code. The others were read in their sources and documentation in
November 2026, and tried where they run on a CPU: "yes", "partly", "no".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import collectives as cl
from collectives.arrays import DTYPES
from collectives.names import KINDS, OPS

RIVALS = ("mpi4py", "torch, gloo", "NCCL", "MPICH")
VERSIONS = (
    "mpi4py 4 (over an MPI), torch 2.13 with its gloo backend, NCCL 2.30 and the header of 2.32, "
    "MPICH 5.1"
)

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


def methods(*names: str) -> str:
    """Return "yes" where a communicator has all of these methods, else which it lacks."""
    lacking = [name for name in names if not hasattr(cl.Communicator, name)]
    return "yes" if not lacking else f"no: {', '.join(lacking)}"


def has(known: Iterable[str], *names: str) -> str:
    """Return "yes" where all are among what is known."""
    lacking = sorted(set(names) - set(known))
    return "yes" if not lacking else f"no: {', '.join(lacking)}"


def algorithm_count() -> str:
    """Return how many algorithms there are, and of how many kinds."""
    return f"{len(cl.algorithms())}, of {len(KINDS)} collectives"


def proved() -> str:
    """Return "yes" where every algorithm proves for some ranks, now."""
    fine = all(
        proof.proved for a in cl.algorithms() for proof in cl.verify(a.name, p=(4,), kind=a.kind)
    )
    return "yes" if fine else "no"


Row = tuple[str, str, str, str, str, str]  # feature, ours, then the rivals in their order


def rows() -> list[Row]:
    """Return all rows of the table."""
    return [*of_collectives(), *of_programs(), *of_machines()]


def of_collectives() -> list[Row]:
    """Return what is computed, of which data, by which algorithms."""
    return [
        ("allreduce, allgather, reduce_scatter, broadcast, reduce",
         methods("allreduce", "allgather", "reduce_scatter", "broadcast", "reduce"),
         "yes", "yes", "yes", "yes"),
        ("gather, scatter, alltoall",
         methods("gather", "scatter", "alltoall"), "yes", "yes", "yes", "yes"),
        ("scan, exscan", methods("scan", "exscan"), "yes", "no", "no", "yes"),
        ("unequal parts (v-forms) of all of them",
         methods("allgatherv", "gatherv", "scatterv", "alltoallv", "reduce_scatterv"),
         "yes", "partly", "no", "yes"),
        ("lengths of unequal parts found by the library", methods("allgatherv"),
         "no", "no", "no", "no"),
        ("send, recv with any source and any tag", methods("send", "recv", "sendrecv"),
         "yes", "partly", "partly", "yes"),
        ("bool, 8 and 16 bit integers",
         has(DTYPES, "bool", "int8", "uint8", "int16", "uint16"), "yes", "partly", "partly", "yes"),
        ("float16 and bfloat16, summed in float32", has(DTYPES, "float16", "bfloat16"),
         "partly", "no", "partly", "no"),
        ("float8 (e4m3, e5m2)", has(DTYPES, "float8_e4m3fn", "float8_e5m2"),
         "no", "no", "yes", "no"),
        ("complex", has(DTYPES, "complex64", "complex128"), "yes", "partly", "no", "yes"),
        ("logical and bitwise operations",
         has(OPS, "land", "lor", "lxor", "band", "bor", "bxor"), "yes", "partly", "no", "yes"),
        ("minloc, maxloc", has(OPS, "minloc", "maxloc"), "yes", "no", "no", "yes"),
        ("operations of the user", has(dir(cl), "op"), "yes", "no", "partly", "yes"),
        ("algorithms of the user, without a fork", has(dir(cl), "algorithm"),
         "no", "no", "no", "no"),
        ("choice of algorithm per call", "yes", "no", "no", "partly", "partly"),
        ("number of algorithms", algorithm_count(), "those of the MPI", "few", "about 25",
         "about 100"),
        ("algorithms proved by machine, for every p up to 64", proved(), "no", "no", "no", "no"),
    ]  # fmt: skip


def of_programs() -> list[Row]:
    """Return how programs call it, and what happens where they err."""
    return [
        ("non-blocking calls", has(dir(cl), "Pending"), "yes", "yes", "yes", "yes"),
        ("handles that asyncio can await", has(dir(cl.Pending), "__await__"),
         "no", "no", "no", "no"),
        ("fusion of small tensors", methods("group"), "no", "partly", "no", "no"),
        ("lists, tuples, dicts of arrays in one call", "allreduce, broadcast", "no", "partly", "no",
         "no"),
        ("split, sub-groups", methods("split", "subgroup", "dup"), "yes", "yes", "yes", "yes"),
        ("meshes with named axes", methods("mesh"), "partly", "yes", "no", "partly"),
        ("ranks as threads of one process", has(dir(cl), "local"), "no", "partly", "yes", "partly"),
        ("one call for NumPy, torch and DLPack arrays", "yes", "partly", "no", "no", "no"),
        ("strided arrays, as input and as result, right or refused", "yes", "yes", "no", "no",
         "yes"),
        ("time-out per call", "yes", "no", "yes", "no", "no"),
        ("different calls on two ranks are an error that names both", "yes",
         "no", "partly", "no", "no"),
        ("a dead peer is named within a second", "yes", "partly", "partly", "partly", "partly"),
    ]  # fmt: skip


def of_machines() -> list[Row]:
    """Return where it runs, and what else there is."""
    return [
        ("a new group of those that survive", methods("shrink"), "partly", "no", "yes", "partly"),
        ("runs between machines", "yes", "yes", "yes", "yes", "yes"),
        ("GPUs", "partly: several ranks on one, more emulated", "yes", "no", "yes", "yes"),
        ("persistent calls", methods("persistent"), "yes", "no", "partly", "yes"),
        ("arrays in memory that all ranks reach", methods("empty", "is_symmetric"),
         "partly", "no", "yes", "partly"),
        ("the same bits among any number of ranks", methods("exact_sum"), "no", "no", "no", "no"),
        ("sparse arrays, merged on their way", has(dir(cl), "Sparse"), "no", "no", "no", "no"),
        ("top-k and quantised sums", has(dir(cl), "TopK", "QSGD", "FP8"),
         "no", "partly", "no", "no"),
        ("networks that are not here, simulated", has(dir(cl), "simulate"),
         "no", "no", "no", "no"),
        ("one-sided windows, files, derived datatypes", "no", "yes", "no", "partly", "yes"),
        ("neighbourhood collectives", "no", "yes", "no", "no", "yes"),
    ]  # fmt: skip


def page(table: Table) -> str:
    """Return the page."""
    heads = ("feature", "pycollectives", *RIVALS)
    return (
        "# Beside the others\n\n"
        "What is there and what is not. Our column is read from the code by "
        "`python -m scripts.generate_docs`; the others were read in their sources and "
        f"documentation in November 2026: {VERSIONS}. What is planned is on the "
        "[road map](roadmap.md).\n\n" + table(heads, rows())
    )
