# SPDX-License-Identifier: Apache-2.0
"""The functions of the module are the methods of the default communicator."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import default
from collectives.names import KINDS
from tests.python.ranks import last

UNEQUAL = ("allgatherv", "gatherv", "scatterv", "alltoallv", "reduce_scatterv")
COLLECTIVES = (*KINDS, *UNEQUAL)
MESSAGES = ("send", "recv", "sendrecv", "probe", "iprobe", "isend", "irecv")


@pytest.mark.parametrize("name", [*COLLECTIVES, *MESSAGES, "force"])
def test_functions_take_what_methods_take(name: str) -> None:
    method = inspect.signature(getattr(cl.Communicator, name))
    function = inspect.signature(getattr(cl, name))
    own = list(method.parameters.values())[1:]
    assert list(function.parameters.values()) == own
    assert function.return_annotation == method.return_annotation
    if name in COLLECTIVES:
        named = [p.name for p in own if p.kind is not p.VAR_KEYWORD]
        assert named[-4:] == ["algorithm", "mode", "timeout", "async_op"]
    assert name in cl.__all__
    said = inspect.getdoc(getattr(cl, name)) or ""
    assert said.startswith(inspect.getdoc(getattr(cl.Communicator, name)) or "nothing")
    assert said.endswith("Of the default communicator, which init() made, or this call makes.")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[cl.Communicator]:
    comm = cl.local(1)[0]
    monkeypatch.setattr(default, "_default", comm)
    yield comm
    comm.close()


def test_a_rank_alone_gets_back_what_it_gives(alone: cl.Communicator) -> None:
    x = np.arange(6.0).reshape(3, 2)
    for found in (
        cl.gather(x),
        cl.gatherv(x),
        cl.gatherv(x, [3]),
        cl.scatter(x),
        cl.scatterv(x, [3]),
        cl.alltoall(x),
        cl.alltoallv(x, [3], [3]),
        cl.allgatherv(x),
        cl.reduce_scatterv(x, [3], op="max"),
        cl.scan(x),
        cl.exscan(x),
    ):
        assert np.asarray(found).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert alone.sequence == 14  # three of them told each other lengths


def test_a_rank_alone_hears_what_it_says(alone: cl.Communicator) -> None:
    x, out, status = np.arange(3.0), np.zeros(3), cl.Status()
    cl.send(x, 0, 7, timeout=5)
    assert cl.iprobe(0, 6) is None
    assert cl.iprobe(0, 7) == cl.probe(0, 7, timeout=5) == cl.Status(0, 7, 3, "float64")
    assert cl.recv(out, 0, 7, status=status, timeout=5) is out
    assert (out.tolist(), status.tag) == ([0, 1, 2], 7)
    assert cl.sendrecv(x + 1, 0, out, 0, 8, 8, status=status, timeout=5) is out
    assert (out.tolist(), status.tag) == ([1, 2, 3], 8)
    request = cl.irecv(out, 0, 9)
    assert cl.isend(x, 0, 9).wait() is None
    assert request.wait() is out
    assert out.tolist() == [0, 1, 2]
    assert alone.iprobe() is None


def test_arguments_of_messages_reach_the_methods() -> None:
    heard: list[Any] = []

    class Listening:
        def __getattr__(self, name: str) -> Any:
            return lambda *given, **named: heard.append((name, *given, *named.items()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default, "_default", Listening())
        for name in MESSAGES:
            parameters = inspect.signature(getattr(cl, name)).parameters.values()
            plain = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
            named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
            getattr(cl, name)(*plain, **{word: word for word in named})
            assert heard.pop() == (name, *plain, *((word, word) for word in named))


def test_what_is_forced_runs(alone: cl.Communicator) -> None:
    wish = cl.force(allreduce="ring", broadcast="chain")
    for _ in range(2):
        with wish:
            cl.allreduce(np.ones(2))
            assert last(alone).algorithm == "ring"
            assert alone.explain("broadcast").source == "wished for"
        assert alone.explain("allreduce").source == "rule"
    with (
        pytest.raises(cl.InvalidArgumentError, match="did you mean 'ring'"),
        cl.force(allreduce="rin"),
    ):
        pass


def test_options_reach_the_methods(alone: cl.Communicator) -> None:
    x, out = np.ones(2), np.zeros(2)
    assert cl.scan(x, out, op="prod", algorithm="dissemination", mode="staged", timeout=5) is out
    assert cl.gatherv(x, None, out, root=0, algorithm="linear", timeout=5) is out
    assert cl.alltoallv(x, [2], [2], out, algorithm="pairwise", mode="inline") is out
    for name in COLLECTIVES:
        with pytest.raises(cl.InvalidArgumentError, match="algorithm 'none' is unknown"):
            getattr(cl, name)(*arguments(name, x), algorithm="none")
    assert alone.sequence == 5


def arguments(name: str, x: object) -> tuple[object, ...]:
    if name == "barrier":
        return ()
    return (x, [2]) if name in UNEQUAL else (x,)
