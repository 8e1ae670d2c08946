# SPDX-License-Identifier: Apache-2.0
"""Simulations from Python: numbers that follow by hand, every kind of topology, errors."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

import collectives as cl
from collectives.topology import Link, Place, Topology

TWO_HOSTS = Topology(
    (Place("a"), Place("a"), Place("b"), Place("b")),
    {"numa": Link(1e-6, 1e-10), "network": Link(5e-5, 8e-9)},
)


def test_a_ring_by_hand() -> None:
    found = cl.simulate(
        "ring", "torus:4,us=2,gbit=8,overhead_us=1,fold_gbyte=1,copy_gbyte=1e6", 4_000_000
    )
    # Six rounds of a quarter at 1 GB/s, three of which fold two operands at 1 GB/s each.
    by_hand = 6 * (2e-6 + 2e-6 + 1e-3) + 3 * 2e-3
    assert found.seconds == pytest.approx(by_hand, rel=1e-3)
    assert (found.rounds, found.messages, found.p) == (6, 24, 4)
    assert found.busiest_bytes == pytest.approx(6_000_000)
    assert sum(found.link_bytes.values()) == pytest.approx(24_000_000)


def test_links_carry_what_is_claimed() -> None:
    for a in cl.algorithms("allreduce"):
        if not a.fits(8) or not a.bytes:
            continue
        found = cl.simulate(a.name, "hosts:8x1", 8000)
        assert found.rounds == a.formula("rounds", 8), a.name
        assert found.link_bytes["host out"] <= 8 * 8000 * a.formula("bytes", 8) + 1e-6, a.name
        assert found.busiest_bytes >= found.link_bytes["host out"] / 8 - 1e-6, a.name


def test_far_messages_pay_for_thin_trees() -> None:
    even = cl.simulate("circulant", "fat-tree:8x8", 1 << 26)
    thin = cl.simulate("circulant", "fat-tree:8x8,oversubscription=4", 1 << 26)
    assert thin.seconds > 1.5 * even.seconds
    assert thin.busiest.startswith("leaf")


def test_a_topology_that_was_measured(tmp_path: Path) -> None:
    by_value = cl.simulate("ring", TWO_HOSTS, 1 << 20)
    path = tmp_path / "two.json"
    TWO_HOSTS.save(path)
    assert cl.simulate("ring", path, 1 << 20).seconds == by_value.seconds
    assert cl.simulate("ring", str(path), 1 << 20).seconds == by_value.seconds
    assert by_value.link_bytes["network out"] == pytest.approx(2 * 1.5 * (1 << 20))
    slow = TWO_HOSTS.edited(pairs={(1, 2): Link(1.0, 0)})
    assert cl.simulate("ring", slow, 1 << 20).seconds > 1


def test_algorithms_of_the_program() -> None:
    rows = cl.product("allreduce", [[0, 1], [2, 3]], "ring", name="rows_of_simulation")
    found = cl.simulate(rows.name, TWO_HOSTS, 1 << 20)
    flat = cl.simulate("circulant", TWO_HOSTS, 1 << 20)
    assert found.link_bytes["network out"] == pytest.approx(2 * (1 << 20))
    assert found.seconds < flat.seconds
    with pytest.raises(cl.UnsupportedError, match="p = 4"):
        cl.simulate(rows.name, "node:8", 1)


@pytest.mark.parametrize("algorithm", ["circulant", "swing", "bine"])
def test_many_ranks(algorithm: str) -> None:
    found = cl.simulate(algorithm, "fat-tree:4096", 1 << 26)
    assert (found.p, found.rounds, found.messages) == (4096, 24, 24 * 4096)


def test_every_root_and_fewer_ranks() -> None:
    ends = [
        cl.simulate("binomial", "node:7", 100, kind="broadcast", root=root) for root in range(7)
    ]
    assert {found.messages for found in ends} == {6}
    assert cl.simulate("ring", "torus:4x4", 100, 5).messages == 2 * 4 * 5


def test_drawings() -> None:
    found = cl.simulate("ring", "node:3", 3000, timeline=True)
    assert len(found.moments) >= 2 * found.messages
    assert max(moment.end for moment in found.moments) == pytest.approx(found.seconds)
    page = found.draw()
    assert ElementTree.fromstring(page).tag.endswith("svg")
    assert page.count("<rect") >= len(found.moments)
    text = found.draw(format="text")
    assert "f" in text.splitlines()[2]
    assert len(text.splitlines()) == 2 + 3
    with pytest.raises(cl.InvalidArgumentError, match="timeline=True"):
        cl.simulate("ring", "node:3", 3000).draw()
    with pytest.raises(cl.InvalidArgumentError, match="format"):
        found.draw(format="png")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rong", "node:2", 8), "did you mean 'ring'"),
        (("ring", "cube:2", 8), "no such shape"),
        (("ring", "node", 8), "write for instance"),
        (("ring", "node:2,gbit=0", 8), "above 0"),
        (("ring", "node:2,speed=1", 8), "is none of gbit"),
        (("ring", "node:2", -1), "nbytes"),
        (("ring", "node:2", 1.5), "nbytes"),
        (("ring", "node:2", 8, 3), "fewer than 3"),
        (("ring", "node:2", 8, 0), "1 or more"),
        (("ring", 7, 8), "give a text"),
        (("recursive_halving", "torus:2x2", True), "nbytes"),
        (("ring", "node:2", 10**5000), "nbytes is of type int"),
        (("ring", "node:2", 8, 10**5000), "p is of type int"),
        (("ring", "node:8\0garbage", 8), "give a text"),
        (("ring", "\ud800", 8), "give a text"),
        (("ring", "\udcff:8", 8), "give a text"),
        (("ring", "node:8,gbit=1,us=1,gbit=2", 8), "gbit is there twice"),
        (("ring", "fat-tree:33", 8), "a multiple of 32 up to 1024, or a multiple of 1024; else"),
        (("ring", "nope.json", 8), "cannot read the topology 'nope.json': No such file"),
        (("ring", Path("/"), 8), "cannot read the topology .*: Is a directory"),
        (("ring", "a\0.json", 8), "no file has such a name"),
        (("ring", "\ud800.json", 8), "no file has such a name"),
    ],
    ids=lambda value: None if isinstance(value, str) else "call",
)
def test_refused(arguments: tuple[object, ...], sentence: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=sentence):
        cl.simulate(*arguments)  # type: ignore[arg-type]


def test_what_a_topology_does_not_say() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="level 'numa'"):
        cl.simulate("ring", Topology((Place("a"), Place("a"))), 8)
    alone = Topology((Place("a"), Place("b")), {"network": Link(1e-6, 1e-9)})
    assert cl.simulate("ring", alone, 8).seconds > 0
    with pytest.raises(cl.InvalidArgumentError, match="tiles"):
        cl.simulate("ring", alone, 8, tiles=0)
    with pytest.raises(cl.InvalidArgumentError, match="root"):
        cl.simulate("binomial", alone, 8, kind="broadcast", root=2)
    with pytest.raises(cl.OutOfMemoryError, match="messages"):
        cl.simulate("direct", "torus:65536", 8, kind="allgather")


def test_links_that_are_not_used_need_no_costs() -> None:
    def between(*pairs: tuple[int, int]) -> Topology:
        places = tuple(Place(host) for host in "abcd"[: max(map(max, pairs)) + 1])
        return Topology(places, pairs=dict.fromkeys(pairs, Link(1e-6, 1e-9)))

    two = cl.simulate("ring", between((0, 1)), 8)
    assert two.link_bytes["pair"] == pytest.approx(16)
    around = between((0, 1), (1, 2), (2, 3), (0, 3))
    assert cl.simulate("ring", around, 8000).seconds > 0
    assert cl.simulate("direct_two_shot", around, 8000, 2).seconds > 0  # of which the first two
    for nbytes in (0, 8000):
        with pytest.raises(
            cl.InvalidArgumentError, match="'network' cost, nor that of ranks 0 and"
        ):
            cl.simulate("direct_two_shot", around, nbytes)


def test_a_time_that_is_no_number_is_refused() -> None:
    for link in (Link(0, 1e308), Link(1e308, 0)):
        endless = Topology((Place("a"), Place("b")), {"network": link})
        with pytest.raises(cl.InvalidArgumentError, match="longer than a number can say"):
            cl.simulate("ring", endless, 8000, timeline=True)


def test_a_barrier_has_no_bytes() -> None:
    found, empty = (
        cl.simulate("dissemination", "node:8", nbytes, kind="barrier", timeline=True)
        for nbytes in (1 << 20, 0)
    )
    assert found == empty
    assert found.nbytes == sum(found.link_bytes.values()) == 0
    assert found.draw(format="text").startswith("barrier by dissemination, 8 ranks on node:8: ")


def test_a_file_of_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "\udcff.json"
    TWO_HOSTS.save(path)
    found = cl.simulate("ring", path, 8, timeline=True)
    assert found.topology == f"{tmp_path}/?.json"
    assert found.draw().encode()


def test_it_ends_by_a_signal() -> None:
    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ended)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            cl.simulate("circulant", "torus:65536", 1 << 20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 20  # it takes minutes
