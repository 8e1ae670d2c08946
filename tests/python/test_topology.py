# SPDX-License-Identifier: Apache-2.0
"""Where ranks are: the value, its file, its drawings, what machines say, and what is measured."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

import collectives as cl
from collectives.launchers.meeting import names_of
from collectives.topology import Link, Place, Topology, machine, probe
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
        (lambda: Link(-1, 0), "alpha is -1"),
        (lambda: Link(0, float("nan")), "beta is nan"),
        (lambda: Topology(()), "one rank at least"),
        (lambda: FOUR.edited(links={"rack": Link(0, 0)}), "'rack' is no level"),
        (lambda: FOUR.edited(pairs={(1, 0): Link(0, 0)}), "the lower first"),
        (lambda: FOUR.edited(places={4: Place("a")}), "rank 4 is none of 4"),
        (lambda: FOUR.level(0, -1), "rank -1 is none of 4"),
        (lambda: FOUR.draw(format="png"), "'svg' or 'text', not 'png'"),
    ],
)
def test_what_there_is_not_is_refused(make: object, says: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=says):
        make()  # type: ignore[operator]


def test_a_file_holds_all_of_it(tmp_path: Path) -> None:
    FOUR.save(tmp_path / "four.json")
    assert Topology.load(str(tmp_path / "four.json")) == FOUR


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (None, "is not JSON"),
        ({"format": "x"}, "does not say that its format"),
        ({"version": 2}, "has version 2; this library reads 1"),
        ({"places": [{}]}, "does not hold a topology: KeyError"),
        ({"places": []}, "does not hold a topology: a topology needs"),
        ({"links": {"host": {"alpha": -1, "beta": 0}}}, "alpha is -1"),
        ({"links": 3}, "does not hold a topology"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, change: object, says: str) -> None:
    path = tmp_path / "it.json"
    FOUR.save(path)
    whole = json.loads(path.read_text())
    path.write_text("{" if change is None else json.dumps({**whole, **change}))  # type: ignore[dict-item]
    with pytest.raises(cl.InvalidArgumentError, match=says) as refused:
        Topology.load(path)
    assert str(path) in str(refused.value)


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


def test_masks_and_lists_of_cpus() -> None:
    assert machine.cpus_in_mask("0x00000003") == [0, 1]
    assert machine.cpus_in_mask("0x00000001,,0x80000000") == [31, 64]
    assert machine.cpus_in_list("0-2,5,8-9\n") == [0, 1, 2, 5, 8, 9]
    assert machine.cpus_in_list("\n") == []


def test_what_hwloc_and_sys_say(tmp_path: Path) -> None:
    xml = """<topology><object type="Machine" cpuset="0x0f">
      <object type="Package" os_index="0" cpuset="0x03">
      <object type="NUMANode" os_index="2" cpuset="0x03"/></object>
      <object type="Package" os_index="1" cpuset="0x0c"/></object></topology>"""
    found = machine.read_xml(xml)
    assert found is not None
    assert found.around([2, 3, 0]) == (1, 0)
    assert found.around([1]) == (0, 2)
    assert machine.read_xml("<topology/>") is None
    for cpu, package in ((0, 0), (1, 3)):
        folder = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
    (tmp_path / "node" / "node1").mkdir(parents=True)
    (tmp_path / "node" / "node1" / "cpulist").write_text("0-1\n")
    assert machine.by_sys(tmp_path).around([1]) == (3, 1)
    assert machine.by_sys(tmp_path / "nothing").around([0]) == (0, 0)


def test_hwloc_is_asked_first_and_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / machine.HWLOC
    program.write_text(
        '#!/bin/sh\necho \'<t><object type="Package" os_index="7" cpuset="0xff"/></t>\'\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert machine.rooms().around([3]) == (7, 0)
    program.write_text("#!/bin/sh\nexit 3\n")
    assert machine.by_hwloc() is None
    assert machine.rooms() == machine.by_sys()


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
    bare = on_ranks(2, lambda comm: comm.topology(measure=False))
    assert not bare[0].links
    assert bare[0].places[0].cpus == machine.own_cpus()


def test_hosts_of_one_name_are_told_apart() -> None:
    assert names_of(["boot1 7 web", "boot2 8 web", "boot1 7 web", "boot1 7 db"]) == [
        "web", "web (2)", "web", "db",
    ]  # fmt: skip
