# SPDX-License-Identifier: Apache-2.0
"""Tables: one per collective, a row per size, the goal and its verdict at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.hosts.goals import judge
from bench.hosts.records import KINDS, Record, Spread
from bench.hosts.run import Results
from bench.peers.libraries import LIBRARIES, OURS
from bench.peers.report import Text, number
from collectives.cli.sizes import format_size


def head(results: Results) -> str:
    """Return what all figures have in common."""
    links = results.links
    versions = ", ".join(
        f"{LIBRARIES[name].title} {version}" for name, version in results.versions.items()
    )
    return (
        f"{links['hosts']} hosts, links of {links['mbit']:g} Mbit/s, bucket {links['bucket']} "
        f"bytes, queue {links['queue_ms']} ms, {links['congestion']}; {versions}; medians of "
        "rounds [lowest, highest]; share: the lower bound over the measured time; bytes: on the "
        "links over the lower bound; ratio: best peer of the round over ours"
    )


def tables(records: Sequence[Record]) -> Iterator[Text]:
    """Return a table for each collective."""
    for kind in KINDS:
        several = [record for record in records if record.cell.kind == kind]
        if several:
            yield _table(kind, several)


def complaints(results: Results) -> Iterator[str]:
    """Return what is wrong, void or lost, a sentence each."""
    for team, why in results.lost.items():
        yield f"lost: {team}: {why}"
    for record in results.records:
        for name, count in record.wrong.items():
            yield f"wrong: {count} elements, {name}, {record.cell}"
        for name, why in record.refused.items():
            yield f"refused: {name}, {record.cell}: {why}"
        for turn, why in record.voided().items():
            yield f"void: round {turn} of {record.cell}: {why}"
        for name in record.astray():
            yield f"void: {name}, {record.cell}: fewer bytes on the links than the lower bound"


def spread(found: Spread | None, decimals: int | None = 3) -> str:
    """Write a median with its extremes; three significant digits where decimals is None."""
    if found is None:
        return ""
    values = (found.median, found.low, found.high)
    texts = [number(value) if decimals is None else f"{value:.{decimals}f}" for value in values]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def _table(kind: str, records: Sequence[Record]) -> Text:
    peers = list(dict.fromkeys(t for record in records for t in record.blocks if t.library != OURS))
    heads = ["bytes", "rounds", "our us", "share", "bytes sent"]
    for peer in peers:
        title = LIBRARIES[peer.library].title
        heads += [f"{title} us", "share", "bytes sent"]
    heads += ["ratio", "goal", "verdict"]
    rows = []
    for record in records:
        ours = record.ours()
        row = [format_size(record.cell.nbytes)]
        found = record.share(ours) if ours is not None else None
        row.append(str(found.count) if found is not None else "0")
        for team in [ours, *peers]:
            time = record.time(team) if team is not None else None
            row.append(number(time.median * 1e6) if time is not None else "")
            row.append(spread(record.share(team)) if team is not None else "")
            traffic = record.traffic(team) if team is not None else None
            row.append(f"{traffic.median:.3f}" if traffic is not None else "")
        judged = judge([record])
        goal = ", ".join(one.goal.text for one in judged)
        verdict = ", ".join(one.verdict for one in judged)
        rows.append([*row, spread(record.ratio(), None), goal, verdict])
    return Text(f"{kind} of float32, {records[0].cell.ranks} hosts", heads, rows)
