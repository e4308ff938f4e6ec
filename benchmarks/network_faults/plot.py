"""The picture of a run on a network that fails: for each kind of fault and client the median and the worst recovery.

It is SVG, written here, with colours for light and for dark pages.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks.recovery.judge import summary
from benchmarks.recovery.report import NAMES, recoveries

_LEFT, _PANEL, _GAP, _TOP, _LINE, _BOTTOM = 215, 300, 30, 62, 36, 40
_SHORTEST, _LONGEST = 0.1, 70.0
_TICKS: Final = (0.1, 0.3, 1, 3, 10, 30)
_SHAPES: Final = (
    ((-4, 0), (0, -4), (4, 0), (0, 4)),
    ((-3, -3), (3, -3), (3, 3), (-3, 3)),
    ((-4, 3), (0, -4), (4, 3)),
    ((-4, -3), (4, -3), (0, 4)),
)
"""A diamond, a square and triangles, around their middle."""
_STYLE: Final = """\
text { font: 12px system-ui, sans-serif; fill: #333 }
.title { font-weight: 600 } .tick, .note { fill: #666; font-size: 11px } .grid { stroke: #ddd } .band { fill: #f5f5f5 }
.page { fill: #fff } .mark { stroke-width: 2 }
.c0 { fill: #1f6fb4; stroke: #1f6fb4 } .c1 { fill: #2a8a3e; stroke: #2a8a3e } .c2 { fill: #d9730d; stroke: #d9730d }
.c3 { fill: #8250df; stroke: #8250df }
@media (prefers-color-scheme: dark) {
 text { fill: #ddd } .tick, .note { fill: #aaa } .grid { stroke: #444 } .band { fill: #1c2128 } .page { fill: #0d1117 }
 .c0 { fill: #58a6ff; stroke: #58a6ff } .c1 { fill: #56d364; stroke: #56d364 } .c2 { fill: #ffa657; stroke: #ffa657 }
 .c3 { fill: #d2a8ff; stroke: #d2a8ff }
}
"""


def draw(rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Draw all rows; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "network-faults.svg"
    path.write_text(picture(rows))
    return path


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """Return the picture: a panel for the producers and one for the readers, a line for each kind."""
    kinds = {row["kind"]: row["title"] for row in rows}
    places = {kind: number for number, kind in enumerate(kinds)}
    clients = list(dict.fromkeys(row["client"] for row in rows))
    width, height = _LEFT + 2 * _PANEL + 2 * _GAP, _TOP + _LINE * len(kinds) + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Recovery from faults of the network, by client</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        *_legend(clients),
    ]
    for number, title in enumerate(kinds.values()):
        top = _TOP + number * _LINE
        if number % 2 == 0:
            parts.append(f'<rect class="band" y="{top}" width="{width}" height="{_LINE}"/>')
        parts.append(_text(_LEFT - 8, top + _LINE / 2 + 4, title, anchor="end"))
    for panel, role in enumerate(("producer", "reader")):
        left = _LEFT + panel * (_PANEL + _GAP)
        parts += _axis(left, height, f"{role}: seconds after the healing")
        for row in rows:
            if row["role"] == role:
                top = _TOP + places[row["kind"]] * _LINE
                client = clients.index(row["client"])
                parts += _mark(left, top + _LINE * (client + 1) / (len(clients) + 1), client, row)
    return "\n".join([*parts, "</svg>", ""])


def _legend(clients: Iterable[str]) -> list[str]:
    parts, at = [], _LEFT
    for number, client in enumerate(clients):
        name = NAMES.get(client, client)
        parts += [_shape(at + 4, 16, number), _text(at + 14, 20, name)]
        at += 40 + 7 * len(name)
    return [*parts, _text(at, 20, "median until caught up, and a line to the worst", "note")]


def _axis(left: float, height: float, title: str) -> list[str]:
    parts = [_text(left, 44, title, "title")]
    for tick in _TICKS:
        at = left + _place(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{height - _BOTTOM}"/>')
        named = f"≤ {tick:g}" if tick == _SHORTEST else f"{tick:g}"
        parts.append(_text(at, height - _BOTTOM + 16, named, "tick", "middle"))
    return parts


def _mark(left: float, y: float, client: int, row: dict[str, Any]) -> list[str]:
    found = summary(recoveries(row), "caught_up")
    median, worst = left + _place(found["median"]), left + _place(found["worst"])
    return [
        f'<line class="mark c{client}" x1="{median:.1f}" x2="{worst:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>',
        _shape(median, y, client),
    ]


def _shape(x: float, y: float, client: int) -> str:
    """Return a client's mark, which differs from the others in its colour and its shape."""
    points = _SHAPES[client % len(_SHAPES)]
    drawn = " ".join(f"{x + right:.1f},{y + down:.1f}" for right, down in points)
    return f'<polygon class="c{client}" points="{drawn}"/>'


def _place(seconds: float) -> float:
    """Return where a time is on the axis, which is logarithmic."""
    inside = min(max(seconds, _SHORTEST), _LONGEST)
    return _PANEL * math.log(inside / _SHORTEST) / math.log(_LONGEST / _SHORTEST)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
