# SPDX-License-Identifier: Apache-2.0
"""How the page looks, in light and dark."""

from __future__ import annotations

from bench.regret.panels import COLOURS, HUES

_DARK = {"tuned": "#56B4E9", "rule": "#E69F00", "model": "#2fc79b"}

_PAGE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #59636e;
  --grid: #e4e7eb; --card: #f6f8fa; --goal: #b08800; --good: #1a7f37; --bad: #cf222e;
  --paint: 62% 86%; LIGHT }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3;
  --soft: #9198a1; --grid: #2a313a; --card: #151b23; --goal: #d4a72c; --good: #3fb950;
  --bad: #ff7b72; --paint: 32% 27%; DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 100rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif }
h1 { margin: 0 0 .5rem; font-size: 1.9rem } h2 { margin: 2.5rem 0 .75rem; font-size: 1.35rem }
p { max-width: 46rem } a { color: inherit } nav { margin: 1.5rem 0 } nav a { margin-right: 1rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--grid); text-align: right;
  white-space: nowrap; vertical-align: bottom }
th { font-weight: 600 } th small { display: block; font-weight: 400; color: var(--soft) }
th:first-child, td:first-child, .words { text-align: left }
.met { color: var(--good) } .missed { color: var(--bad); font-weight: 600 }
.none { color: var(--soft) }
.grid-of { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 36rem), 1fr));
  gap: 1rem }
figure { margin: 0; min-width: 0; padding: .75rem 1rem; border-radius: .6rem;
  background: var(--card) }
figcaption { display: flex; justify-content: space-between; gap: 1rem; font-weight: 600 }
figcaption small { font-weight: 400; color: var(--soft) }
svg { display: block; width: 100%; height: auto; font-family: inherit }
.key { display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; padding: 0; list-style: none;
  font-size: .9rem } .key svg { display: inline-block; width: 1.5rem; height: .9rem }
details { margin-top: .5rem; font-size: .875rem } summary { cursor: pointer }
"""

_DRAWING = """
text { fill: var(--ink); font-size: 12px } .tick { fill: var(--soft) }
.end { text-anchor: end } .middle { text-anchor: middle }
.grid { stroke: var(--grid) } .one { stroke: var(--soft); stroke-width: 1.2 }
.goal { stroke: var(--goal); stroke-dasharray: 5 4 } .goal-name { fill: var(--goal);
  font-size: 10.5px }
.curve { fill: none; stroke-width: 1.6; opacity: .75 } .interval { stroke-width: 1.3 }
.mark { stroke-width: 1.6 } .held-out .mark { fill: var(--card) } .undecided { opacity: .5 }
.name { font-size: 11px } .parameters { font-size: 9.5px; fill: var(--soft) }
"""


def style() -> str:
    """Return the style sheet."""
    page = _PAGE.strip()
    for theme, colours in (("LIGHT", COLOURS), ("DARK", _DARK)):
        page = page.replace(theme, " ".join(f"--{way}: {c};" for way, c in colours.items()))
    ways = [
        f".{way} .curve, .{way} .interval, .{way} .mark {{ stroke: var(--{way}) }}"
        f" .{way} .mark {{ fill: var(--{way}) }}"
        for way in COLOURS
    ]
    blocks = [f".a{i} {{ fill: hsl({hue} var(--paint)) }}" for i, hue in enumerate(HUES)]
    # What is hollow comes behind what says how marks are filled.
    return "\n".join([page, *ways, *blocks, _DRAWING.strip()])
