"""A plan as a picture: SVG, with the sources on the left and the outputs on the right."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.model.pipeline.drawing import drawing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.plan import Plan

WIDTH, HEIGHT, BETWEEN_COLUMNS, BETWEEN_ROWS, MARGIN = 190, 48, 56, 18, 12
_LETTERS_MAX = 29  # that fit into a node
_SWEEPS = 4
# It is shown on white pages and on dark ones; a page without these rules shows black lines.
_STYLE = """
.ripple-plan { font: 11px system-ui, sans-serif; color: #24292f; }
.ripple-plan rect { fill: none; stroke: currentColor; stroke-opacity: .35; }
.ripple-plan .source rect, .ripple-plan .output rect { stroke-width: 2; stroke-opacity: .8; }
.ripple-plan .join rect, .ripple-plan .fold rect { stroke: #2f81f7; stroke-opacity: 1; }
.ripple-plan text { fill: currentColor; }
.ripple-plan .kind { fill-opacity: .6; }
.ripple-plan .name { font-weight: 600; }
.ripple-plan path { fill: none; stroke: currentColor; stroke-opacity: .5; }
.ripple-plan path.state, .ripple-plan path.event { stroke-dasharray: 5 3; stroke: #bf8700; }
@media (prefers-color-scheme: dark) { .ripple-plan { color: #e6edf3; } }
"""


class Place(NamedTuple):
    """The left upper corner of a node, in pixels."""

    x: int
    y: int


def svg(plan: Plan) -> str:
    """Return the picture. Under the pointer a node shows its fields and its state."""
    graph = drawing(plan)
    shown = {node["id"] for node in graph["nodes"]}
    edges = [edge for edge in graph["edges"] if {edge["from"], edge["to"]} <= shown]
    places = layout([node["id"] for node in graph["nodes"]], edges)
    width = max(place.x for place in places.values()) + WIDTH + MARGIN
    height = max(place.y for place in places.values()) + HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ripple-plan" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(plan.name)}</title><style>{_STYLE}</style>",
        *(_line(places[edge["from"]], places[edge["to"]], edge) for edge in edges),
        *(_box(places[node["id"]], node) for node in graph["nodes"]),
    ]
    return "".join([*parts, "</svg>"])


def layout(names: list[str], edges: list[Mapping[str, Any]]) -> dict[str, Place]:
    """Return the place of each node; names: each after the nodes with an edge to it.

    A node's column is its longest distance from a source. In a column nodes are ordered by the mean
    row of their neighbours, some times back and forth (Sugiyama, Tagawa and Toda 1981).
    """
    above, below = defaultdict(list), defaultdict(list)
    for edge in edges:
        above[edge["to"]].append(edge["from"])
        below[edge["from"]].append(edge["to"])
    column: dict[str, int] = {}
    for name in names:
        column[name] = max((column[one] + 1 for one in above[name]), default=0)
    columns = [
        [name for name in names if column[name] == at] for at in range(max(column.values()) + 1)
    ]
    row = {name: float(at) for members in columns for at, name in enumerate(members)}
    for sweep in range(_SWEEPS):
        near, order = (above, columns) if sweep % 2 == 0 else (below, columns[::-1])
        for members in order:
            means = {
                name: sum(row[one] for one in near[name]) / len(near[name])
                if near[name]
                else row[name]
                for name in members
            }
            members.sort(key=means.__getitem__)
            row |= {name: float(at) for at, name in enumerate(members)}
    highest = max(map(len, columns))
    step_x, step_y = WIDTH + BETWEEN_COLUMNS, HEIGHT + BETWEEN_ROWS
    return {
        name: Place(
            MARGIN + step_x * number,
            MARGIN + step_y * at + step_y * (highest - len(members)) // 2,
        )
        for number, members in enumerate(columns)
        for at, name in enumerate(members)
    }


def _box(place: Place, node: Mapping[str, Any]) -> str:
    about = node.get("window") or node["about"] or node["fields"]
    told = [node["about"], node["fields"], node["keeps"] and f"keeps: {node['keeps']}"]
    x, y = place.x + 8, place.y
    kind = node["kind"].replace("_", "-")
    return (
        f'<g class="{escape(kind)}"><title>{escape(chr(10).join(filter(None, told)))}</title>'
        f'<rect x="{place.x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x}" y="{y + 19}"><tspan class="kind">{escape(kind)}</tspan> '
        f'<tspan class="name">{_short(node["name"], len(kind) + 1)}</tspan></text>'
        f'<text x="{x}" y="{y + 37}" class="kind">{_short(about)}</text></g>'
    )


def _short(text: str, taken: int = 0) -> str:
    room = _LETTERS_MAX - taken
    return escape(text if len(text) <= room else f"{text[: room - 1]}…")


def _line(start: Place, end: Place, edge: Mapping[str, Any]) -> str:
    x, y = start.x + WIDTH, start.y + HEIGHT // 2
    to_x, to_y = end.x, end.y + HEIGHT // 2
    bend = (to_x - x) // 2
    why = f"<title>{escape(edge['why'])}</title>" if edge["why"] else ""
    return (
        f'<path class="{escape(edge["kind"])}" d="M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} '
        f'{to_x} {to_y}">{why}</path>'
    )
