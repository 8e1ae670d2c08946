# SPDX-License-Identifier: Apache-2.0
"""Read Markdown as far as its tests need it: fenced blocks, commands, links, anchors."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    """A fenced block. ``output`` is the text block right below it, where there is one."""

    language: str
    text: str
    name: str | None  # "sum.py", where the line above ends with `sum.py`:
    output: str | None

    @property
    def commands(self) -> list[str]:
        """The commands of a block of shell, without comments."""
        if self.language not in ("", "sh"):
            return []
        lines = [re.split(r"(?:^|\s+)#(?:\s|$)", line)[0].strip() for line in _joined(self.text)]
        return [line for line in lines if line]


def _joined(text: str) -> list[str]:
    """Lines, those that end in a backslash joined with the next."""
    return re.sub(r"\\\n\s*", "", text).splitlines()


def fences(text: str) -> list[Fence]:
    """Return all fenced blocks."""
    found = list(_FENCE.finditer(text))
    blocks = []
    for i, match in enumerate(found):
        name = re.search(r"`([\w.]+)`:\s*$", text[: match.start()])
        output = None
        if i + 1 < len(found) and found[i + 1][1] == "text":
            between = text[match.end() : found[i + 1].start()]
            output = found[i + 1][2] if not between.strip() else None
        blocks.append(Fence(match[1], match[2], name[1] if name else None, output))
    return blocks


def prose(text: str) -> str:
    """Return the text without fenced blocks."""
    return _FENCE.sub("", text)


def code(text: str) -> list[str]:
    """Return what stands between single backticks."""
    return re.findall(r"`([^`\n]+)`", prose(text))


def anchors(text: str) -> set[str]:
    """Return the anchors of all headings, as the usual renderers of Markdown make them."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(text)):
        words = unicodedata.normalize("NFC", re.sub(r"[`*]", "", heading)).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def targets(page: Path) -> list[Path]:
    """Return the files that a page links to, outside the web."""
    links = _LINK.findall(prose(page.read_text(encoding="utf-8")))
    here = [link.partition("#")[0] for link in links if not re.match(r"\w+:", link)]
    return [(page.parent / path).resolve() for path in here if path]


def broken_links(page: Path) -> list[str]:
    """Return one sentence for each relative link of a page that leads nowhere."""
    wrong = []
    for link in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            wrong.append(f"{page.name} links to {link}: there is no such file")
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            wrong.append(f"{page.name} links to {link}: there is no such heading")
    return wrong
