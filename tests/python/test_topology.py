# SPDX-License-Identifier: Apache-2.0
"""Where ranks are: the value, its file, its drawings, what machines say, and what is measured."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import collectives as cl
from collectives.launchers.meeting import names_of
from collectives.topology import Link, Place, Topology, machine, probe
from collectives.topology.files import text_of
from collectives.topology.rooms import Rooms
from tests.python.ranks import on_ranks

FOUR = Topology(
    (Place("a", 0, 0, (0,)), Place("a", 1, 1, (1,)), Place("b"), Place("b")),
    {"network": Link(5e-5, 8e-9), "host": Link(1e-6, 1e-10)},
    {(2, 3): Link(0, 0)},
)


def test_levels_and_links() -> None:
    assert [FOUR.level(*pair) for pair in ((0, 1), (0, 2), (2, 3), (3, 3))] == [
        "host", "network", "numa", "numa",
    ]  # fmt: skip
    assert FOUR.link(3, 0) == Link(5e-5, 8e-9) == FOUR.link(0, 3)
    assert FOUR.link(3, 2) == Link(0, 0)
    assert FOUR.edited(pairs={}).edited(places={1: Place("a")}).link(0, 1) is None
    assert FOUR.links["network"].seconds(1000) == pytest.approx(5.8e-5)
    assert FOUR.links["network"].bandwidth == pytest.approx(125e6)


def test_groups_and_what_product_takes() -> None:
    assert FOUR.groups("host") == [[0, 1], [2, 3]]
    assert FOUR.groups("numa") == [[0], [1], [2, 3]]
    assert FOUR.groups("network") == [[0, 1, 2, 3]]
    nodes = Topology(tuple(Place(h, p, p) for h in "ab" for p in (0, 1) for _ in (0, 1)))
    assert nodes.nested() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert Topology((Place("a"),) * 3).nested() == [0, 1, 2]
    assert Topology((Place("a"), Place("b"), Place("a"))).nested() == [[0, 2], [1]]
    assert cl.product("allreduce", nodes.nested()).groupings[0] == (0, 0, 1, 1, 2, 2, 3, 3)


def test_an_edit_makes_another_value() -> None:
    other = FOUR.edited(links={"network": Link(1e-3, 0)}, places={3: Place("c")})
    assert FOUR.level(2, 3) == "numa"
    assert other.level(2, 3) == "network"
    assert other.links["network"].alpha == 1e-3
    assert FOUR.links["network"].alpha == 5e-5
    with pytest.raises(TypeError):
        FOUR.links["host"] = Link(0, 0)  # type: ignore[index]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Link(-1, 0), "alpha is -1: give seconds, a number that is 0 or more"),
        (lambda: Link(0, float("nan")), "beta is nan"),
        (lambda: Link(10**400, 0), "alpha is 10"),
        (lambda: Link(10**5000, 0), "alpha is (of type int|1000)"),
        (lambda: Link(True, 0), "alpha is True"),
        (lambda: Link("1", 0), "alpha is '1'"),  # type: ignore[arg-type]
        (lambda: Place(""), "host is '': give its name"),
        (lambda: Place(5), "host is 5"),  # type: ignore[arg-type]
        (lambda: Place("a\nb"), "printable text"),
        (lambda: Place("a", -5), "package is -5: give an integer, 0 to 2\\*\\*31"),
        (lambda: Place("a", numa=2**31), "numa is 2147483648"),
        (lambda: Place("a", cpus=3), "cpus is 3: give a list"),  # type: ignore[arg-type]
        (lambda: Place("a", cpus=(0, 1.5)), r"cpus\[1\] is 1.5"),  # type: ignore[arg-type]
        (
            lambda: Place("a", source="me"),
            "source is 'me': give one of 'hwloc', '/sys', 'NVML', ''",
        ),
        (lambda: Place("a", source=np.ones(2)), "source is array"),  # type: ignore[arg-type]
        (lambda: Topology(()), "one rank at least"),
        (lambda: Topology("ab"), "places is 'ab': give the place of each rank"),  # type: ignore[arg-type]
        (lambda: Topology((Place("a"), 2)), r"places\[1\] is 2: give a Place"),  # type: ignore[arg-type]
        (lambda: FOUR.edited(links={"rack": Link(0, 0)}), "'rack' is no level"),
        (lambda: FOUR.edited(links={"host": 3}), r"links\['host'\] is 3: give a Link"),  # type: ignore[dict-item]
        (lambda: FOUR.edited(links=[]), r"links is \[\]: give a mapping"),  # type: ignore[arg-type]
        (lambda: FOUR.edited(pairs={(1, 0): Link(0, 0)}), "the lower first"),
        (lambda: FOUR.edited(pairs={0: Link(0, 0)}), "pairs has 0, which"),  # type: ignore[dict-item]
        (lambda: FOUR.edited(places={4: Place("a")}), "rank 4 is none of 4"),
        (lambda: FOUR.edited(places={0: "a"}), r"places\[0\] is 'a'"),  # type: ignore[dict-item]
        (lambda: FOUR.edited(places=()), r"places is \(\): give a mapping"),  # type: ignore[arg-type]
        (lambda: FOUR.level(0, -1), "rank -1 is none of 4"),
        (lambda: FOUR.link("0", 1), "rank '0' is none of 4"),  # type: ignore[arg-type]
        (lambda: FOUR.draw(format="png"), "'svg' or 'text', not 'png'"),
    ],
)
def test_what_there_is_not_is_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=says):
        make()


def test_equal_values_have_one_hash_and_copies_are_equal() -> None:
    again = Topology(list(FOUR.places), dict(FOUR.links), dict(FOUR.pairs))  # type: ignore[arg-type]
    other = FOUR.edited(links={"host": Link(1, 0)})
    assert {FOUR: 1, other: 2}[again] == 1
    assert hash(other) != hash(FOUR)
    for copied in (copy.deepcopy(FOUR), pickle.loads(pickle.dumps(FOUR))):
        assert copied == FOUR
        assert hash(copied) == hash(FOUR)


def test_a_file_holds_all_of_it(tmp_path: Path) -> None:
    FOUR.save(tmp_path / "four.json")
    assert Topology.load(str(tmp_path / "four.json")) == FOUR


def test_places_hold_their_source_and_are_equal_without(tmp_path: Path) -> None:
    told = Topology((Place("a", source="hwloc"), Place("b", source="/sys"), Place("c")))
    told.save(tmp_path / "told.json")
    copies = (Topology.load(tmp_path / "told.json"), pickle.loads(pickle.dumps(told)))
    for copied in copies:
        assert [place.source for place in copied.places] == ["hwloc", "/sys", ""]
    assert told == Topology(tuple(Place(name) for name in "abc"))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_older_versions_say_less(version: int, tmp_path: Path) -> None:
    document = json.loads(text_of(FOUR)) | {"version": version}
    for link in (*document["links"].values(), *document["pairs"]):
        del link["overhead_per_byte"]
        if version < 3:
            del link["overhead"], link["bucket"]
    for place in document["places"]:
        del place["machine"]
        if version == 1:
            del place["source"]
    (tmp_path / "older.json").write_text(json.dumps(document))
    assert Topology.load(tmp_path / "older.json") == FOUR


def test_a_bucket_passes_at_once() -> None:
    link = Link(1e-5, 1e-8, overhead=4e-6, bucket=1000)
    assert link.seconds(1000) == link.seconds(0) == 1e-5
    assert link.seconds(3000) == pytest.approx(3e-5)


def test_buckets_are_found_where_there_are_any() -> None:
    def measured(bucket: int) -> Link:
        link = Link(2e-5, 8e-9, bucket=bucket)
        short, middle, long = map(link.seconds, probe.TIMES)
        return probe._link(short, middle, long, [5e-6, 6e-6])

    assert measured(1 << 18).bucket == pytest.approx(1 << 18)
    assert measured(1 << 18).beta == pytest.approx(8e-9)
    assert measured(1000).bucket == 0  # less than what noise makes of none
    assert measured(0).overhead_per_byte == pytest.approx(1e-6 / (16384 - 8))
    disturbed = probe._link(1e-5, 3e-3, 2e-3, [0.0, 0.0])
    assert disturbed.beta == pytest.approx(2e-3 / probe.LONG, rel=0.01)


MORE = {"overhead": 0, "bucket": 0, "overhead_per_byte": 0}
PLACE = {"host": "a", "package": 0, "numa": 0, "cpus": [], "source": "", "machine": ""}
PAIR = {"ranks": [0, 1], "alpha": 0, "beta": 0} | MORE


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "x"}, "does not say that its format"),
        ({"version": 5}, "has version 5; this library reads 1 to 4"),
        ({"version": 3}, r"places\[0\]: the key 'machine' is unknown"),
        ({"version": 1}, r"places\[0\]: the key 'source' is unknown"),
        ({"version": True}, "has version True"),
        ({"rooms": 1}, "the key 'rooms' is unknown: give an object with the keys format, version"),
        ({"places": []}, "does not hold a topology: a topology needs"),
        ({"places": 3}, "places is 3: give a list"),
        ({"places": [3]}, r"places\[0\]: 3 is there: give an object with the keys host, package"),
        ({"places": [{"host": "a"}]}, r"places\[0\]: the key 'package' is missing"),
        ({"places": [PLACE, PLACE | {"x": 1}]}, r"places\[1\]: the key 'x' is unknown"),
        ({"places": [PLACE | {"host": 5}]}, r"places\[0\]: a place's host is 5: give its name"),
        ({"places": [PLACE | {"host": ""}]}, "host is '': give its name"),
        ({"places": [PLACE | {"package": -5}]}, "package is -5: give an integer"),
        ({"places": [PLACE | {"numa": 0.5}]}, "numa is 0.5: give an integer"),
        ({"places": [PLACE | {"cpus": "01"}]}, "cpus is '01': give a list of integers"),
        ({"places": [PLACE | {"machine": 7}]}, "machine is 7: give its name"),
        (
            {"places": [PLACE | {"source": "x"}]},
            "source is 'x': give one of 'hwloc', '/sys', 'NVML', ''",
        ),
        ({"links": 3}, "links is 3: give an object"),
        ({"links": {"host": 3}}, r"links\['host'\]: 3 is there: give an object"),
        (
            {"links": {"moon": {"alpha": 1, "beta": 0} | MORE}},
            "'moon' is no level: it is one of numa",
        ),
        (
            {"links": {"host": {"alpha": -1, "beta": 0} | MORE}},
            r"links\['host'\]: .*alpha is -1: give sec",
        ),
        ({"links": {"host": {"alpha": True, "beta": 0} | MORE}}, "alpha is True"),
        (
            {"links": {"host": {"alpha": 0, "beta": 10**400} | MORE}},
            "beta is 1000.*: give seconds per byte",
        ),
        ({"links": {"host": {"alpha": 0, "beta": math.inf} | MORE}}, "beta is inf"),
        ({"pairs": {}}, "pairs is {}: give a list"),
        ({"pairs": [PAIR | {"ranks": [0]}]}, r"pairs\[0\]: ranks is \[0\]: give a list of two"),
        ({"pairs": [PAIR | {"ranks": [[0], 1]}]}, r"pairs\[0\]: ranks\[0\] is \[0\]"),
        ({"pairs": [PAIR | {"ranks": [0, 9]}]}, r"pairs has \(0, 9\), which is no pair of 4 ranks"),
        ({"pairs": [PAIR, PAIR]}, r"the ranks \[0, 1\] are twice in pairs"),
    ],
)
def test_another_topology_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    whole = json.loads(text_of(FOUR))
    refused(tmp_path, json.dumps({**whole, **change}).encode(), says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[]", "does not say that its format"),
        (b"\x00\xff", "is not text: byte 1 is no UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"9" * 5000, "(is not JSON|does not say that its format)"),
        (b'{"links": {}, "links": {}}', "the key 'links' is there twice"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    refused(tmp_path, content, says)


def refused(folder: Path, content: bytes, says: str) -> None:
    """Check that a file with this content is refused, by its name."""
    path = folder / "it.json"
    path.write_bytes(content)
    with pytest.raises(cl.InvalidArgumentError, match=f"^{re.escape(str(path))} .*{says}"):
        Topology.load(path)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="/dev/zero has more than"):
        Topology.load("/dev/zero")


def test_drawings_show_every_rank_and_link() -> None:
    text = str(FOUR)
    assert "4 ranks on 2 hosts" in text
    assert "socket 1, node 1: ranks 1" in text
    assert "between hosts: 50 us, 125 MB/s" in text
    assert "ranks 2 and 3: 0 us" in text
    svg = FOUR.draw()
    page = ElementTree.fromstring(svg)
    words = [item.text for item in page.iter("{http://www.w3.org/2000/svg}text")]
    assert {"0", "1", "2", "3", "a", "b", "socket 1"} <= set(words)
    boxed = Topology((Place("<&>"),)).draw()
    assert "&lt;&amp;&gt;" in boxed
    assert ElementTree.fromstring(boxed) is not None


def test_lists_of_cpus() -> None:
    assert machine.cpus_in_list("0-2,5,8-9\n") == [0, 1, 2, 5, 8, 9]
    assert machine.cpus_in_list("\n") == []


def test_what_sys_says(tmp_path: Path) -> None:
    for cpu, package in ((0, 0), (1, 3)):
        folder = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
    (tmp_path / "node" / "node1").mkdir(parents=True)
    (tmp_path / "node" / "node1" / "cpulist").write_text("0-1\n")
    assert machine.by_sys(tmp_path).around([1]) == (3, 1)
    assert machine.by_sys(tmp_path / "nothing").around([0]) == (0, 0)


def test_pairs_that_stand_for_levels() -> None:
    assert probe.measured_pairs(FOUR) == {"numa": [(2, 3)], "host": [(0, 1)], "network": [(0, 2)]}
    many = Topology(tuple(Place(str(host)) for host in range(40)))
    assert list(probe.measured_pairs(many)) == ["network"]
    assert 6 <= len(probe.measured_pairs(many)["network"]) <= probe.MOST_PAIRS


def test_ranks_find_the_same_topology() -> None:
    def rank(comm: cl.Communicator) -> Topology:
        return comm.topology(host="left" if comm.rank < 2 else "right")

    found = on_ranks(3, rank)
    assert found[0] == found[1] == found[2]
    assert [place.host for place in found[0].places] == ["left", "left", "right"]
    assert set(found[0].links) == {"numa", "network"}
    assert all(link.alpha > 0 for link in found[0].links.values())
    with cl.local(1)[0] as alone, pytest.raises(cl.InvalidArgumentError, match="host is ''"):
        alone.topology(host="")
    bare = on_ranks(2, lambda comm: comm.topology(measure=False))
    assert not bare[0].links
    assert bare[0].places[0].cpus == machine.own_cpus()


def test_hosts_are_told_apart_as_init_does(monkeypatch: pytest.MonkeyPatch) -> None:
    boots = threading.local()

    def unknown() -> str:
        raise PermissionError

    def rank(comm: cl.Communicator) -> list[str]:
        boots.number = comm.rank // 2
        topology = comm.topology(measure=False, host="mine" if comm.rank == 5 else None)
        return [place.host for place in topology.places]

    monkeypatch.setattr("socket.gethostname", lambda: "web")
    monkeypatch.setattr(probe, "identity", lambda: f"boot{boots.number} 7 web")
    expected = ["web", "web", "web (2)", "web (2)", "web (3)", "mine"]
    assert on_ranks(6, rank) == [expected] * 6
    monkeypatch.setattr(probe, "identity", unknown)
    assert on_ranks(3, rank) == [["web"] * 3] * 3


def test_a_rank_that_waits_for_hwloc_takes_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = threading.Lock()

    def slow() -> Rooms:
        if first.acquire(blocking=False):
            time.sleep(0.6)
        return machine.by_sys()

    monkeypatch.setattr(probe, "rooms", slow)
    comms = cl.local(2, timeout=0.2)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda comm: comm.topology(measure=False), comms))
    assert found[0] == found[1]


def test_one_host_is_one() -> None:
    assert Topology((Place("a"),)).draw(format="text").startswith("1 rank on 1 host\n")
    assert ">2 ranks on 1 host<" in Topology((Place("a"),) * 2).draw()


def test_hosts_that_are_containers_share_the_cpus_of_a_machine() -> None:
    hosts = ["a", "b", "a", "c", "d"]
    assert probe.machines_of(hosts, ["1", "1", "1", "2", ""]) == ["a", "a", "a", "", ""]
    shared = Topology(
        tuple(Place(name, cpus=(0, 1), machine="a") for name in "ab") + (Place("c", cpus=(0,)),) * 2
    )
    assert shared.machines() == [[0, 1], [2, 3]]
    assert [shared.cores(ranks) for ranks in shared.machines()] == [2, 1]
    assert "one machine with 2 CPUs: a, b" in str(shared)
    for ranks in (None, 5, [9]):
        with pytest.raises(cl.InvalidArgumentError):
            shared.cores(ranks)  # type: ignore[arg-type]
    assert Topology((Place("a"), Place("a", cpus=(0,)))).cores([0, 1]) == 0  # nobody knows


def test_hosts_of_one_name_are_told_apart() -> None:
    assert names_of(["boot1 7 web", "boot2 8 web", "boot1 7 web", "boot1 7 db"]) == [
        "web", "web (2)", "web", "db",
    ]  # fmt: skip


def test_ranks_that_differ_in_measuring_are_all_told() -> None:
    def work(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match="topology: the arguments of rank 1 are"):
            comm.topology(measure=comm.rank == 0)
        assert comm.allreduce(np.ones(1))[0] == 2

    on_ranks(2, work)
