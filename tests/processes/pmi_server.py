# SPDX-License-Identifier: Apache-2.0
"""A process manager's side of PMI-1 and PMI-2, as strict as the real ones or stricter.

Values are visible after the fence only, a key is put once, lines and values are bounded. It answers
in the version in which a rank says hello. :class:`Script` answers what a test tells it to.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

LONGEST_LINE = 1024  # of old servers

Fields = dict[str, str]


class Server:
    """Serves ``n`` ranks, each over a socket of its own; ``environment(r)`` is for rank r."""

    def __init__(self, n: int, longest_value: int = 1024) -> None:
        self._n, self._longest_value = n, longest_value
        self._pending: Fields = {}
        self._values: Fields = {}
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(n, action=self._commit)
        pairs = [socket.socketpair() for _ in range(n)]
        self._ours = [pair[0] for pair in pairs]
        self._theirs = [pair[1] for pair in pairs]
        self.finalized: list[int] = []
        self.versions: set[int] = set()
        self.failures: list[str] = []
        self.gets = [0] * n
        self._threads = [
            threading.Thread(target=self._serve, args=(r,), daemon=True) for r in range(n)
        ]

    def __enter__(self) -> Server:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._barrier.abort()
        for end in self._ours:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads
        for thread in self._threads:
            thread.join(timeout=10)
        for end in self._theirs + self._ours:
            end.close()

    def environment(self, rank: int) -> Fields:
        """Return the variables of a rank."""
        end = self._theirs[rank].fileno()
        return {"PMI_FD": str(end), "PMI_RANK": str(rank), "PMI_SIZE": str(self._n)}

    def descriptor(self, rank: int) -> int:
        """Return what the process of a rank inherits."""
        return self._theirs[rank].fileno()

    def handed_over(self, rank: int) -> None:
        """Close our copy of a rank's end: it has inherited it."""
        self._theirs[rank].close()

    def _commit(self) -> None:
        self._values |= self._pending
        self._pending = {}

    def _serve(self, rank: int) -> None:
        try:
            with self._ours[rank].makefile("rwb") as stream:
                self._converse(rank, stream)
        except (OSError, threading.BrokenBarrierError, ValueError) as error:
            self.failures.append(f"rank {rank}: {error}")

    def _converse(self, rank: int, stream: object) -> None:
        read, write, flush = stream.readline, stream.write, stream.flush  # type: ignore[attr-defined]
        hello = _line(read(LONGEST_LINE))
        version = int(hello["pmi_version"])
        self.versions.add(version)
        answer = f"cmd=response_to_init rc=0 pmi_version={version} pmi_subversion=0\n"
        write(answer.encode())
        flush()
        take = stream.read  # type: ignore[attr-defined]
        while rank not in self.finalized:
            if version == 1:
                request = _line(read(LONGEST_LINE))
                text = " ".join(f"{k}={v}" for k, v in self._answer1(rank, request).items())
                write(text.encode() + b"\n")
            else:
                request = _body(take(int(take(6) or b"-1")))
                given = self._answer2(rank, request)
                body = "".join(f"{k}={v.replace(';', ';;')};" for k, v in given.items())
                write(f"{len(body):6d}{body}".encode())
            flush()

    def _answer1(self, rank: int, request: Fields) -> Fields:
        match request["cmd"]:
            case "get_maxes":
                longest = str(self._longest_value)
                return {"cmd": "maxes", "kvsname_max": "256", "keylen_max": "64",
                        "vallen_max": longest}  # fmt: skip
            case "get_my_kvsname":
                return {"cmd": "my_kvsname", "kvsname": "kvs_4711_0"}
            case "put":
                fine = request["kvsname"] == "kvs_4711_0" and self._put(request)
                return {"cmd": "put_result", "rc": "0" if fine else "-1", "msg": "duplicate key"}
            case "get":
                self.gets[rank] += 1
                value = self._get(request["key"])
                return {"cmd": "get_result", "rc": "-1" if value is None else "0",
                        "msg": "success", "value": value or "unknown"}  # fmt: skip
            case "barrier_in":
                self._barrier.wait(timeout=20)
                return {"cmd": "barrier_out"}
            case "finalize":
                self.finalized.append(rank)
                return {"cmd": "finalize_ack"}
        raise ValueError(f"unknown request {request}")

    def _answer2(self, rank: int, request: Fields) -> Fields:
        name = request["cmd"]
        answer = {"cmd": f"{name}-response", "rc": "0"}
        match name:
            case "fullinit":
                place = {"rank": request["pmirank"], "size": str(self._n), "appnum": "0"}
                return answer | {"pmi-version": "2", "pmi-subversion": "0"} | place
            case "job-getid":
                return answer | {"jobid": "7;0"}
            case "kvs-put":
                return answer | {"rc": "0" if self._put(request) else "-1"}
            case "kvs-get":
                self.gets[rank] += 1
                value = self._get(request["key"]) if request["jobid"] == "7;0" else None
                return answer | ({"found": "FALSE"} if value is None else
                                 {"found": "TRUE", "value": value})  # fmt: skip
            case "kvs-fence":
                self._barrier.wait(timeout=20)
                return answer
            case "finalize":
                self.finalized.append(rank)
                return answer
        raise ValueError(f"unknown request {request}")

    def _put(self, request: Fields) -> bool:
        key, value = request["key"], request["value"]
        with self._lock:
            if key in self._values or key in self._pending:
                return False
            self._pending[key] = value
        return len(key) < 64 and len(value) < self._longest_value

    def _get(self, key: str) -> str | None:
        with self._lock:
            return self._values.get(key)


def _line(data: bytes) -> Fields:
    if not data.endswith(b"\n"):
        raise ValueError(f"a line without an end: {data[:40]!r}")
    return dict(word.partition("=")[::2] for word in data.decode().split())


def _body(data: bytes) -> Fields:
    if not data.endswith(b";"):
        raise ValueError(f"a message without an end: {data[:40]!r}")
    fields = data.decode().replace(";;", "\0").rstrip(";").split(";")
    return {k: v.replace("\0", ";") for k, v in (field.split("=", 1) for field in fields)}


class Script:
    """The other end of a socket that says what it is told to, one answer for each message."""

    def __init__(self, answers: list[bytes], *, stays: bool) -> None:
        self._ours, theirs = socket.socketpair()
        self.descriptor = theirs.detach()  # whose who speaks there is
        self._answers, self._stays = answers, stays
        self._thread = threading.Thread(target=self._say, daemon=True)
        self._thread.start()

    def _say(self) -> None:
        self._ours.settimeout(10)
        for answer in self._answers:
            if not self._ours.recv(4096):
                return
            self._ours.sendall(answer)
        if not self._stays:
            self._ours.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the conversation."""
        self._thread.join(timeout=20)
        self._ours.close()
