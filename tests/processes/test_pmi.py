# SPDX-License-Identifier: Apache-2.0
"""PMI-1 and PMI-2 against a strict server, and against one that errs or dies."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from collectives import errors
from collectives.launchers.directory import Deadline
from collectives.launchers.exchange import exchange
from collectives.launchers.pmi import PmiDirectory
from tests.processes.jobs import ROOT, environment
from tests.processes.pmi_server import Script, Server

INIT1 = b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
MAXES = b"cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n"
NAME = b"cmd=my_kvsname rc=0 kvsname=kvs_1\n"
GREETED1 = [INIT1, MAXES, NAME]
INIT2 = b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"


def framed(body: str) -> bytes:
    return f"{len(body):6d}{body}".encode()


def full(rank: int = 1, size: int = 4) -> bytes:
    return framed(f"cmd=fullinit-response;rc=0;pmi-version=2;rank={rank};size={size};appnum=0;")


JOB = framed("cmd=job-getid-response;rc=0;jobid=a;;b;")
GREETED2 = [INIT2, full(), JOB]

Opener = Callable[..., PmiDirectory]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Return a function that opens rank 1 of 4 on a script of answers."""
    scripts: list[Script] = []
    directories: list[PmiDirectory] = []

    def open_it(answers: list[bytes], version: int = 1, stays: bool = False) -> PmiDirectory:
        script = Script(answers, stays=stays)
        scripts.append(script)
        place = {"PMI_FD": str(script.descriptor), "PMI_RANK": "1", "PMI_SIZE": "4"}
        for name, value in place.items():
            monkeypatch.setenv(name, value)
        directories.append(PmiDirectory(version, Deadline(0.2 if stays else 10)))
        return directories[-1]

    yield open_it
    for script in scripts:
        script.close()
    for directory in directories:
        directory.close()


def ranks_of(server: Server, n: int, command: list[str], **more: str) -> list[str]:
    """Start the ranks; return what they have printed."""

    def rank(r: int) -> subprocess.Popen[str]:
        started = subprocess.Popen(
            [sys.executable, *command],
            env=environment(server.environment(r) | more),
            pass_fds=[server.descriptor(r)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        server.handed_over(r)
        return started

    started = [rank(r) for r in range(n)]
    return [process.communicate(timeout=60)[0] for process in started]


@pytest.mark.processes
@pytest.mark.parametrize("version", [1, 2])
def test_ranks_exchange_values_and_meet(version: int) -> None:
    program = (
        "import collectives as cl, numpy as np, sys\n"
        "from collectives.launchers.__main__ import main\n"
        "assert main() == 0\n"
        "for _ in range(2):\n"
        "  with cl.init(timeout=20) as comm:\n"
        "    print(comm.rank, comm.size, comm.allreduce(np.ones(1)).tolist())\n"
    )
    with Server(3) as server:
        said = ranks_of(server, 3, ["-c", program], PMI_VERSION=str(version))
        for rank, text in enumerate(said):
            assert f"directory pmi{version}, got 0 1 2\n" in text
            assert text.count(f"{rank} 3 [3.0]") == 2
        assert server.versions == {version}
        assert sorted(server.finalized) == [0, 1, 2]
        assert server.failures == []


@pytest.mark.processes
def test_all_are_told_why_one_cannot_take_part() -> None:
    program = (
        "import collectives as cl, os\n"
        "if os.environ['PMI_RANK'] == '1': os.environ['COLLECTIVES_TRUSTED'] = 'moon'\n"
        "try: cl.init(timeout=20)\n"
        "except cl.InvalidArgumentError as error: print(error)\n"
    )
    reason = "COLLECTIVES_TRUSTED has 'moon', which is no network"
    with Server(3) as server:
        said = ranks_of(server, 3, ["-c", program])
        assert said[1].startswith(reason)
        for rank in (0, 2):
            assert said[rank].startswith(f"rank 1 cannot take part: {reason}")
        assert sorted(server.finalized) == [0, 1, 2]
        assert server.failures == []


@pytest.mark.parametrize("version", [1, 2])
def test_only_rank_0_asks_for_what_each_rank_says(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    size = 8
    say = [f"boot{secrets.token_hex(100)} 1 host{rank}" for rank in range(size)]
    with Server(size) as server:
        directories = []
        for rank in range(size):
            for name, setting in server.environment(rank).items():
                monkeypatch.setenv(name, setting)
            monkeypatch.setenv("PMI_FD", str(os.dup(server.descriptor(rank))))
            directories.append(PmiDirectory(version, Deadline(10)))

        def rank_says(rank: int) -> list[str]:
            return exchange(directories[rank], "say", say[rank], rank, size, Deadline(20))

        with ThreadPoolExecutor(size) as pool:
            assert list(pool.map(rank_says, range(size))) == [say] * size
        for directory in directories:
            directory.close()
        pieces = server.gets[1]  # of 255 bytes
        assert 3 <= pieces <= 5
        assert server.gets == [size + pieces] + [pieces] * (size - 1)


@pytest.mark.parametrize(("version", "longest"), [(1, 64), (1, 1024), (2, 1024)])
def test_any_bytes_of_any_length_arrive(
    monkeypatch: pytest.MonkeyPatch, version: int, longest: int
) -> None:
    values = [b"", b"\0\n =;;" * 3, bytes(range(256)) * 4, b"x" * 65536]
    with Server(1, longest_value=longest) as server:
        for name, setting in server.environment(0).items():
            monkeypatch.setenv(name, setting)
        monkeypatch.setenv("PMI_FD", str(os.dup(server.descriptor(0))))
        directory, deadline = PmiDirectory(version, Deadline(10)), Deadline(20)
        assert (directory.rank, directory.size) == (0, 1)
        for number, value in enumerate(values):
            directory.put(f"k{number}", value, deadline)
        directory.fence(deadline)
        assert [directory.get(f"k{n}", deadline) for n in range(len(values))] == values
        for wrong in ("", "a b", "a=b", "x" * 33, "é"):
            with pytest.raises(errors.InvalidArgumentError, match="a key of the launcher's"):
                directory.put(wrong, b"", deadline)
        with pytest.raises(errors.InvalidArgumentError, match="is too long"):
            directory.put("long", b"x" * 65537, deadline)
        with pytest.raises(errors.BootstrapError):
            directory.put("k0", b"twice", deadline)
        directory.close()
        directory.close()
        assert server.finalized == [0]
        with pytest.raises(errors.ClosedError):
            directory.fence(deadline)


@pytest.mark.parametrize(
    ("version", "answers", "words"),
    [
        (1, [], "has closed the connection"),
        (1, [b""], "has closed the connection"),
        (1, [b"hello\n"], "sent what is no answer: 'hello'"),
        (1, [b"\n"], "did not say 'cmd'"),
        (1, [b"\x00\xff=\x01\n"], "did not say 'cmd': '??=?'"),
        (1, [b"cmd=maxes\n"], "with something else"),
        (1, [INIT1.replace(b"rc=0", b"rc=-1")], "refused 'cmd=init"),
        (1, [INIT1.replace(b"rc=0", b"rc=x")], "gave no number as 'rc'"),
        (1, [INIT1.replace(b"rc=0", b"rc=0 rc=0")], "said 'rc' twice"),
        (1, [INIT1, b"cmd=maxes vallen_max=99999999999\n"], "gave no number"),
        (1, [INIT1, MAXES.replace(b"1024", b"63"), NAME], "takes values of 63 bytes"),
        (1, [INIT1, MAXES.replace(b"1024", b"-1"), NAME], "takes values of 0 bytes"),
        (1, [b"x" * 20000], "a line without an end"),
        (2, [INIT2, b"    xy"], "is no length"),
        (2, [INIT2, b"1 2 34"], "is no length"),
        (2, [INIT2, b"999999"], "announces 999999 bytes"),
        (2, [INIT2, framed("cmd=fullinit-response;rc=0")], "half an answer"),
        (2, [INIT2, framed("hello;")], "no answer"),
        (2, [INIT2, framed("cmd=fullinit-response;rc=15;")], "refused 'fullinit'"),
        (2, [INIT2, full(rank=2)], "PMI_SIZE say rank 1 of 4, but the launcher says rank 2 of 4"),
        (2, [INIT2, full(size=3)], "the launcher says rank 1 of 3"),
    ],
)
def test_wrong_greetings_are_named(
    opened: Opener, version: int, answers: list[bytes], words: str
) -> None:
    with pytest.raises(errors.BootstrapError) as caught:
        opened(answers, version)
    assert words in str(caught.value)


@pytest.mark.parametrize("version", [1, 2])
def test_another_version_is_refused(opened: Opener, version: int) -> None:
    with pytest.raises(errors.UnsupportedError, match=rf"speaks PMI version 3, not {version}"):
        opened([b"cmd=response_to_init pmi_version=3 pmi_subversion=0 rc=0\n"], version)


@pytest.mark.parametrize(
    ("version", "answer", "words"),
    [
        (1, b"cmd=get_result rc=-1 msg=key_not_found value=unknown\n", "refused 'cmd=get"),
        (1, b"cmd=get_result rc=0 value=zz\n", "is damaged: 'zz'"),
        (1, b"cmd=get_result rc=0 value=1:0g\n", "is damaged: '0g'"),
        (1, b"cmd=get_result rc=0 value=1:000\n", "is damaged"),
        (1, b"cmd=get_result rc=0 value=99999999:00\n", "is damaged"),
        (2, framed("cmd=kvs-get-response;rc=0;found=FALSE;"), "has no value of 'coll.key.0'"),
        (2, framed("cmd=kvs-get-response;rc=0;found=TRUE;"), "did not say 'value'"),
        (1, b"", "has closed the connection"),
    ],
)
def test_values_that_are_missing_or_damaged(
    opened: Opener, version: int, answer: bytes, words: str
) -> None:
    directory = opened([*(GREETED1 if version == 1 else GREETED2), answer], version)
    with pytest.raises(errors.BootstrapError) as caught:
        directory.get("key", Deadline(10))
    assert words in str(caught.value)
    with pytest.raises(errors.BootstrapError) as again:  # the first cause, and nothing is sent
        directory.fence(Deadline(10))
    assert str(again.value) == str(caught.value)


def test_silence_ends_at_the_deadline(opened: Opener) -> None:
    with pytest.raises(errors.CollectiveTimeoutError, match="did not answer in time"):
        opened([], stays=True)
    directory = opened(GREETED1, stays=True)
    with pytest.raises(errors.CollectiveTimeoutError, match="another rank has not come as far"):
        directory.fence(Deadline(0.1))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PMI_FD", "", "PMI_FD is ''"),
        ("PMI_FD", "-1", "PMI_FD is '-1'"),
        ("PMI_RANK", "x", "PMI_RANK is 'x'"),
        ("PMI_SIZE", "1", "PMI_RANK is 1, but PMI_SIZE is 1"),
    ],
)
def test_variables_without_sense(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    for variable, sense in {"PMI_FD": "999", "PMI_RANK": "1", "PMI_SIZE": "2"}.items():
        monkeypatch.setenv(variable, value if variable == name else sense)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        PmiDirectory(1, Deadline(1))
    assert words in str(caught.value)


def test_a_descriptor_that_is_no_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed = os.open(tmp_path, os.O_RDONLY)
    os.close(closed)
    for variable, value in {"PMI_FD": str(closed), "PMI_RANK": "0", "PMI_SIZE": "2"}.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(errors.BootstrapError, match="which is not open in this process"):
        PmiDirectory(1, Deadline(1))
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    monkeypatch.setenv("PMI_FD", str(file))
    with pytest.raises(errors.SystemCallError, match="PMI_FD"):
        PmiDirectory(1, Deadline(1))


def test_a_forked_child_does_not_speak(opened: Opener) -> None:
    with ThreadPoolExecutor(1) as pool:
        directory = pool.submit(opened, GREETED1).result()
    child = os.fork()
    if child == 0:
        try:
            directory.fence(Deadline(1))
        except errors.ClosedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
