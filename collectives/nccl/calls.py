# SPDX-License-Identifier: Apache-2.0
"""What each collective passes to NCCL, once its arrays are found to fit.

NCCL gets addresses and a count, and looks at neither: an output that is too short would be written
past its end. So lengths, dtypes, devices and overlaps are compared here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from collectives.errors import InvalidArgumentError
from collectives.names import integer
from collectives.nccl.arrays import HOST, Array, Operand, operand, refuse_read_only
from collectives.nccl.operations import Op, code_of
from collectives.nccl.streams import Stream, chosen

if TYPE_CHECKING:
    from collectives.nccl.caller import Caller


class Call(NamedTuple):
    """A call of NCCL: communicator and stream come behind its arguments."""

    function: str
    arguments: tuple[int, ...]
    stream: int
    arrays: tuple[Any, ...]  # that it reads and writes
    result: Any


def given(comm: Caller, x: Array, what: str, written: bool = False) -> Operand:
    """Resolve an array that a call reads, or writes."""
    found = operand(x, what, comm.library.host_arrays)
    if found.device != HOST and found.elements and found.device != comm.device:
        raise InvalidArgumentError(
            f"{what} is on GPU {found.device}, and this rank's is GPU {comm.device}"
        )
    return refuse_read_only(found, what) if written else found


def both(
    comm: Caller, call: str, x: Array, out: Array | None, parts: tuple[int, int] = (1, 1)
) -> tuple[Operand, Operand]:
    """Resolve x and out, of which lengths are to each other as ``parts`` are; out may be x."""
    send = given(comm, x, f"{call}: x", out is None)
    recv = send if out is None else given(comm, out, f"{call}: out", True)
    if send.dtype != recv.dtype:
        raise InvalidArgumentError(f"{call}: x has dtype {send.dtype}, out {recv.dtype}")
    if send.device != recv.device and send.elements and recv.elements:
        raise InvalidArgumentError(f"{call}: x and out are in memory of different devices")
    if send.elements * parts[1] != recv.elements * parts[0]:
        wanted = f"{send.elements * parts[1] / parts[0]:g}"
        raise InvalidArgumentError(
            f"{call}: x has {send.elements} elements, so out needs {wanted}, and has "
            f"{recv.elements}"
        )
    return send, recv


def refuse_overlap(call: str, send: Operand, recv: Operand, in_place: int | None) -> None:
    """Refuse arrays that share memory, but where x begins ``in_place``."""
    if send.address == in_place or send.address >= recv.end or recv.address >= send.end:
        return
    raise InvalidArgumentError(
        f"{call}: x and out share memory"
        + (", which they must not" if in_place is None else " otherwise than in place")
    )


def root_of(comm: Caller, call: str, root: object, word: str = "root") -> int:
    """Return the number of a rank. Raises InvalidArgumentError."""
    number = integer(root)
    if number is None or not 0 <= number < comm.size:
        raise InvalidArgumentError(f"{call}: {word} is {root!r}: give a rank, 0 to {comm.size - 1}")
    return number


def _moved(
    function: str, call: str, sides: tuple[Operand, Operand], count: int, rest: tuple[int, ...],
    stream: Stream,
) -> Call:  # fmt: skip
    send, recv = sides
    arguments = (send.address, recv.address, count, send.code, *rest)
    where = chosen(stream, call, send, recv)
    return Call(function, arguments, where, (send.array, recv.array), recv.origin)


def allreduce(comm: Caller, x: Array, out: Array | None, op: Op, stream: Stream) -> Call:
    """Fold x of all ranks into out of each."""
    call = "allreduce"
    send, recv = both(comm, call, x, out)
    refuse_overlap(call, send, recv, recv.address)
    code = code_of(comm, call, op, send)
    return _moved("ncclAllReduce", call, (send, recv), send.length, (code,), stream)


def reduce(comm: Caller, x: Array, out: Array | None, root: int, op: Op, stream: Stream) -> Call:
    """Fold x of all ranks into out of one; the others' out is not looked at."""
    call = "reduce"
    number = root_of(comm, call, root)
    code = code_of(comm, call, op, given(comm, x, f"{call}: x"))
    if comm.rank == number:
        send, recv = both(comm, call, x, out)
        refuse_overlap(call, send, recv, recv.address)
    else:
        send = given(comm, x, f"{call}: x")
        recv = send._replace(address=0)
    return _moved("ncclReduce", call, (send, recv), send.length, (code, number), stream)


def broadcast(comm: Caller, x: Array, out: Array | None, root: int, stream: Stream) -> Call:
    """Copy x of one rank to out of all; of the others x is not looked at where they have out."""
    call = "broadcast"
    number = root_of(comm, call, root)
    if comm.rank == number or out is None:
        send, recv = both(comm, call, x, out)
        refuse_overlap(call, send, recv, recv.address)
    else:
        send = recv = given(comm, out, f"{call}: out", True)
    return _moved("ncclBroadcast", call, (send, recv), send.length, (number,), stream)


def allgather(comm: Caller, x: Array, out: Array, stream: Stream) -> Call:
    """Join x of all ranks, in their order, in out of each."""
    call = "allgather"
    send, recv = both(comm, call, x, _needed(call, out), (1, comm.size))
    refuse_overlap(call, send, recv, _part(recv, comm.rank, send))
    return _moved("ncclAllGather", call, (send, recv), send.length, (), stream)


def reduce_scatter(comm: Caller, x: Array, out: Array, op: Op, stream: Stream) -> Call:
    """Fold x of all ranks; rank r gets the r-th of equal parts in out."""
    call = "reduce_scatter"
    send, recv = both(comm, call, x, _needed(call, out), (comm.size, 1))
    refuse_overlap(call, send, recv, recv.address - comm.rank * (recv.end - recv.address))
    code = code_of(comm, call, op, send)
    return _moved("ncclReduceScatter", call, (send, recv), recv.length, (code,), stream)


def alltoall(comm: Caller, x: Array, out: Array, stream: Stream) -> Call:
    """Send the r-th of equal parts of x to rank r, and join what all have sent in out."""
    call = "alltoall"
    send, recv = both(comm, call, x, _needed(call, out))
    if send.elements % comm.size:
        raise InvalidArgumentError(
            f"{call}: x has {send.elements} elements, which {comm.size} ranks cannot share equally"
        )
    refuse_overlap(call, send, recv, None)
    return _moved("ncclAlltoAll", call, (send, recv), send.length // comm.size, (), stream)


def gather(comm: Caller, x: Array, out: Array | None, root: int, stream: Stream) -> Call:
    """Join x of all ranks in out of one; the others' out is not looked at."""
    call = "gather"
    number = root_of(comm, call, root)
    if comm.rank == number:
        send, recv = both(comm, call, x, _needed(call, out), (1, comm.size))
        refuse_overlap(call, send, recv, _part(recv, comm.rank, send))
    else:
        send = given(comm, x, f"{call}: x")
        recv = send._replace(address=0)
    return _moved("ncclGather", call, (send, recv), send.length, (number,), stream)


def scatter(comm: Caller, x: Array | None, out: Array, root: int, stream: Stream) -> Call:
    """Send the r-th of equal parts of x of one rank to out of rank r; the others' x is not read."""
    call = "scatter"
    number = root_of(comm, call, root)
    if comm.rank == number:
        send, recv = both(comm, call, _needed(call, x, "x"), _needed(call, out), (comm.size, 1))
        refuse_overlap(call, send, recv, recv.address - comm.rank * (recv.end - recv.address))
    else:
        recv = given(comm, _needed(call, out), f"{call}: out", True)
        send = recv._replace(address=0)
    return _moved("ncclScatter", call, (send, recv), recv.length, (number,), stream)


def send(comm: Caller, x: Array, peer: int, stream: Stream) -> Call:
    """Send x to one rank."""
    side, number = given(comm, x, "send: x"), root_of(comm, "send", peer, "peer")
    where = chosen(stream, "send", side)
    arguments = (side.address, side.length, side.code, number)
    return Call("ncclSend", arguments, where, (side.array,), x)


def recv(comm: Caller, out: Array, peer: int, stream: Stream) -> Call:
    """Receive out from one rank."""
    side, number = given(comm, out, "recv: out", True), root_of(comm, "recv", peer, "peer")
    where = chosen(stream, "recv", side)
    arguments = (side.address, side.length, side.code, number)
    return Call("ncclRecv", arguments, where, (side.array,), out)


def _part(whole: Operand, rank: int, part: Operand) -> int:
    """Return the address of a rank's part."""
    return whole.address + rank * (part.end - part.address)


def _needed(call: str, array: Array | None, word: str = "out") -> Array:
    if array is None:
        raise InvalidArgumentError(f"{call}: {word} is needed here")
    return array
