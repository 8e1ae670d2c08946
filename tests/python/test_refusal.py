# SPDX-License-Identifier: Apache-2.0
"""A rank whose settings make no sense: all ranks raise soon, and say which rank it is, and why."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import collectives as cl
from collectives import environment, errors
from collectives.launchers import detect, meeting, refusal, transport, wire
from collectives.launchers.detect import place
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.interface import own_address
from collectives.launchers.secret import file_secret
from collectives.launchers.transport import Wish, wished, wished_or_why_not
from collectives.launchers.trusted import declared
from collectives.start import join
from tests.patience import promised
from tests.processes.jobs import environment as clean
from tests.python.test_launchers import COLLRUN, PLAIN, Shared
from tests.python.test_meeting_by_hand import Stored, member, port, secret_file

__all__ = ["port", "secret_file"]  # fixtures

BAD = {
    "COLLECTIVES_STREAMS": ("many", "COLLECTIVES_STREAMS='many' is not an integer from 1 to 16"),
    "COLLECTIVES_TRUSTED": ("moon", "COLLECTIVES_TRUSTED has 'moon', which is no network"),
    "COLLECTIVES_TRANSPORT": ("pigeon", "COLLECTIVES_TRANSPORT is 'pigeon': it must be 'auto' or"),
    "COLLECTIVES_SEND_BUFFER": ("x", "COLLECTIVES_SEND_BUFFER='x' is not an integer from 0 to"),
    "COLLECTIVES_PLACEMENT": ("by", "COLLECTIVES_PLACEMENT is 'by'; it must be auto, near or far"),
    "COLLECTIVES_TIMEOUT": ("-3", "COLLECTIVES_TIMEOUT='-3' is not a number of seconds above 0"),
    "COLLECTIVES_SILENCE": ("1", "COLLECTIVES_SILENCE='1' is not a number of seconds from 2 to"),
    "COLLECTIVES_ATTEMPT": ("x", "COLLECTIVES_ATTEMPT='x' is not an integer"),
}


def told(size: int, work: Callable[[int], object]) -> list[str]:
    """Return what each rank, a thread, raises, once it is sure that it took no second."""

    def rank(r: int) -> str:
        with pytest.raises(errors.CollectiveError) as caught:
            work(r)
        return f"{type(caught.value).__name__}: {caught.value}"

    begin = time.monotonic()
    with ThreadPoolExecutor(size) as pool:
        said = list(pool.map(rank, range(size)))
    assert time.monotonic() - begin < promised(3)  # of 20
    return said


def check(said: list[str], culprit: int, reason: str, kind: str = "InvalidArgumentError") -> None:
    """Check that all name the reason, and all but the culprit itself the culprit."""
    for rank, text in enumerate(said):
        whose = "" if rank == culprit else f"rank {culprit} cannot take part: "
        assert text.startswith(f"{kind}: {whose}{reason}"), (rank, text)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("env", [PLAIN, COLLRUN, {"PMI_RANK": "0", "PMI_SIZE": "1"}, {}])
def test_what_makes_no_sense_is_refused_on_one_machine_too(name: str, env: dict[str, str]) -> None:
    value, says = BAD[name]
    alone = {key: "1" if key.endswith("SIZE") else "0" for key in env if "MASTER" not in key}
    with pytest.raises(errors.InvalidArgumentError) as caught:
        place(1, alone | {name: value})
    assert says in str(caught.value)


@pytest.mark.parametrize("value", ["0", "17", "", "4.5", "-1", "1" * 5000])
def test_numbers_of_streams_that_there_are_not(value: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        wished(None, None, {"COLLECTIVES_STREAMS": value})
    short = value if len(value) < 24 else "1" * 24 + "..."
    assert str(caught.value) == f"COLLECTIVES_STREAMS='{short}' is not an integer from 1 to 16"


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("COLLECTIVES_TRANSPORT", lambda env: wished(None, None, env)),
        ("COLLECTIVES_TRUSTED", lambda env: wished(None, None, env)),
        ("COLLECTIVES_TIMEOUT", environment.place),
        ("COLLECTIVES_ATTEMPT", environment.place),
        ("COLLECTIVES_INTERFACE", own_address),
    ],
)
def test_long_values_are_shortened(name: str, function: Callable[[Any], object]) -> None:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        function({name: "x" * 5000})
    assert f"{name}" in str(caught.value)
    assert "x" * 20 in str(caught.value)
    assert len(str(caught.value)) < 400


def own_port() -> str:
    """Return a port that no test beside this one has: on one machine it only names the job."""
    return str(10_000 + os.getpid() % 50_000)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("culprit", [0, 2])
def test_ranks_of_a_script_on_one_machine_are_told(name: str, culprit: int) -> None:
    value, says = BAD[name]

    def rank(r: int) -> object:
        env = PLAIN | {"RANK": str(r), "WORLD_SIZE": "3", "MASTER_PORT": own_port()}
        return join(place(20, env | ({name: value} if r == culprit else {})), 20)

    check(told(3, rank), culprit, says)


@pytest.mark.parametrize("networks", [("10.0.0.0/8", "fd00::/8"), (None, "10.0.0.0/8")])
def test_ranks_of_a_script_that_trust_different_networks_are_told(
    networks: tuple[str | None, str],
) -> None:
    def rank(r: int) -> object:
        env = PLAIN | {"RANK": str(r), "MASTER_PORT": own_port()}
        return join(place(20, env, trusted=networks[r]), 20)

    first = "no networks, as none are said" if networks[0] is None else "[10.0.0.0/8]"
    for text in told(2, rank):
        assert text.startswith(f"InvalidArgumentError: rank 0 has trusted {first} and rank 1 of ")
        assert f"has [{networks[1]}]: give all ranks the same, by init(trusted=...)" in text


def test_long_lists_of_networks_are_compared_as_a_whole() -> None:
    lists = [[f"10.{i}.0.0/24" for i in range(n)] + ["fd00::/8"] for n in (199, 200)]
    terms = [Wish("auto", declared(networks, {})).terms for networks in lists]
    assert terms[0] != terms[1]
    assert all(len(it) < 200 for it in terms)


def meets(env: Mapping[str, str]) -> object:
    """Meet by the channel of these variables, as place() does for the only rank of a process."""
    env, senseless = environment.sensible_settings(env)
    launch, deadline = detect.detect(env), Deadline(20)
    wish, trouble = wished_or_why_not(None, None, env)
    trouble = senseless or trouble
    secret = file_secret(env)
    if trouble is not None:
        deadline = deadline.at_most(refusal.PATIENCE)
    directory = detect._open(launch, deadline, env, secret, trouble)
    return meeting.agree(
        directory, launch.rank, launch.size, deadline, None, env, secret, 0, wish, trouble
    )


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("culprit", [0, 1])
def test_ranks_that_meet_in_a_folder_are_told(name: str, culprit: int, tmp_path: Path) -> None:
    value, says = BAD[name]
    env = PLAIN | {"COLLECTIVES_RENDEZVOUS": str(tmp_path / "in")}
    own = [{}, {name: value}]
    check(told(2, lambda r: meets(env | {"RANK": str(r)} | own[r == culprit])), culprit, says)


@pytest.mark.parametrize("name", ["COLLECTIVES_STREAMS", "COLLECTIVES_SILENCE"])
@pytest.mark.parametrize("culprit", [0, 1])
def test_ranks_that_meet_where_rank_0_is_are_told(
    name: str, culprit: int, port: int, secret_file: str
) -> None:
    value, says = BAD[name]
    own = [{}, {name: value}]

    def rank(r: int) -> object:
        return meets(member(r, 3, port, COLLECTIVES_SECRET_FILE=secret_file, **own[r == culprit]))

    check(told(3, rank), culprit, says)


@pytest.mark.parametrize("culprit", [0, 1])
def test_who_cannot_take_part_and_waits_in_vain_where_rank_0_is_says_why(
    culprit: int, port: int, secret_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 2 does not come, so nobody hears what the ranks tell each other."""
    monkeypatch.setattr(refusal, "PATIENCE", 1.0)
    value, reason = BAD["COLLECTIVES_STREAMS"]
    own = [{}, {"COLLECTIVES_STREAMS": value}]

    def rank(r: int) -> object:
        return meets(member(r, 3, port, COLLECTIVES_SECRET_FILE=secret_file, **own[r == culprit]))

    text = told(2, rank)[1 - culprit]
    whose = "rank 0 has given up: it" if culprit == 0 else "rank 1"
    assert text.startswith(f"BootstrapError: {whose} cannot take part: {reason}")
    assert "rank 2 of job " in text


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "value", "kind", "reason"),
    [
        *(
            (name, BAD[name][0], "InvalidArgumentError", BAD[name][1])
            for name in ("COLLECTIVES_TRUSTED", "COLLECTIVES_SEND_BUFFER", "COLLECTIVES_TIMEOUT")
        ),
        ("COLLECTIVES_SILENCE", "x", "InvalidArgumentError", "COLLECTIVES_SILENCE='x' is not a"),
        (
            "COLLECTIVES_SECRET_FILE",
            "/",
            "InvalidArgumentError",
            "COLLECTIVES_SECRET_FILE, '/', is",
        ),
    ],
)
def test_processes_are_told(name: str, value: str, kind: str, reason: str, tmp_path: Path) -> None:
    program = "import collectives as cl; cl.init(timeout=20)"
    begin = time.monotonic()
    meets = {"MASTER_ADDR": "192.0.2.1", "COLLECTIVES_RENDEZVOUS": str(tmp_path / "in")}
    own = [{}, {name: value}]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=clean(PLAIN | {"RANK": str(r)} | meets | own[r]),
            stderr=subprocess.PIPE,
            text=True,
        )
        for r in range(2)
    ]
    said = [rank.communicate(timeout=60)[1].splitlines()[-1] for rank in ranks]
    assert time.monotonic() - begin < 8  # of 20
    assert f"{kind}: rank 1 cannot take part: {reason}" in said[0]
    assert f"{kind}: {reason}" in said[1]


def test_a_store_of_torch_carries_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_SECRET_FILE", "/")
    monkeypatch.setenv("COLLECTIVES_TIMEOUT", "never")
    store = Stored()
    reason = "COLLECTIVES_TIMEOUT='never' is not a number"
    assert all(
        text.startswith(f"InvalidArgumentError: {reason}")
        for text in told(2, lambda r: cl.Communicator.from_store(store, r, 2, timeout=20))
    )
    monkeypatch.delenv("COLLECTIVES_TIMEOUT")
    for text in told(2, lambda r: cl.Communicator.from_store(store, r, 2, timeout=20)):
        assert text.startswith("InvalidArgumentError: COLLECTIVES_SECRET_FILE, '/', is a folder")
    assert cl.Communicator.from_store(store, 0, 1).size == 1  # which needs none


def meet_on_two_hosts(r: int, store: Shared, wish: Wish, **variables: str) -> object:
    """Meet as rank r of two on as many hosts."""
    directory = StoreDirectory(store, r, 2)
    env = {"COLLECTIVES_INTERFACE": "lo"} | variables
    host = f"boot {r} host{r}"
    return meeting.agree(directory, r, 2, Deadline(20), host, env, wish=wish, count=0)


def test_an_interface_that_one_rank_lacks_is_told_to_all() -> None:
    store = Shared()
    own = [{}, {"COLLECTIVES_INTERFACE": "nowhere0"}]
    said = told(2, lambda r: meet_on_two_hosts(r, store, Wish(), **own[r]))
    check(said, 1, "COLLECTIVES_INTERFACE is 'nowhere0', and there is none of that name")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("UnsupportedError", "there is no UCX here"), ("BootstrapError", "UCX cannot begin")],
)
def test_a_rank_without_ucx_tells_all_why(
    kind: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = iter([None, getattr(errors, kind)(reason)])

    def version(devices: str) -> str:
        assert devices == ""
        error = next(asked)
        if error is not None:
            raise error
        return "1.13.1"

    monkeypatch.setattr(wire, "ucx_version", version)
    store = Shared()
    said = told(2, lambda r: meet_on_two_hosts(r, store, Wish("ucx")))
    assert sorted(len(text) for text in said)[0] == len(f"{kind}: {reason}")
    assert all(text.startswith(f"{kind}: ") and reason in text for text in said)
    assert sum(" cannot take part: " in text for text in said) == 1


def test_who_cannot_take_part_does_not_wait_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (detect, refusal):
        monkeypatch.setattr(module, "PATIENCE", 0.05)
    begin = time.monotonic()
    with pytest.raises(errors.InvalidArgumentError, match=r"COLLECTIVES_STREAMS='0' is not"):
        place(60, PLAIN | {"COLLECTIVES_STREAMS": "0", "MASTER_PORT": "4712"})
    trouble = errors.InvalidArgumentError("no")
    with pytest.raises(errors.InvalidArgumentError, match=r"^no$"):
        meeting.agree(StoreDirectory(Shared(), 1, 2), 1, 2, Deadline(60), trouble=trouble, count=0)
    assert time.monotonic() - begin < 5


def test_networks_in_which_nobody_is_are_warned_of_once() -> None:
    few = declared("10.1.0.0/16", {})
    doors = ["10.1.2.3:7 10.1.2.3:8", "192.0.2.7:7 192.0.2.7:8"]
    with pytest.warns(
        RuntimeWarning, match=r"rank 1 meets the others at 192\.0\.2\.7, which is in"
    ):
        transport.warn_outside(Wish("auto", few), doors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transport.warn_outside(Wish("auto", few), doors[:1])
        transport.warn_outside(Wish("auto", ()), doors)
        transport.warn_outside(Wish("auto"), doors)


def test_rank_0_warns_of_such_networks_as_ranks_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "check_reachable", lambda *_: None)  # it is one host
    store, few = Shared(), declared("10.1.0.0/16", {})
    with warnings.catch_warnings(record=True) as seen, ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("always")
        met = list(pool.map(lambda r: meet_on_two_hosts(r, store, Wish("auto", few)), range(2)))
    assert len(met) == 2
    assert len([it for it in seen if "rank 0 meets the others at 127.0.0.1" in str(it)]) == 1
