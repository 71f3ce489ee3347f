"""Pictures of plans."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import ripple as rp
from ripple.model.pipeline.picture import HEIGHT, WIDTH, layout
from tests.cli.processes import ripple

SVG = "{http://www.w3.org/2000/svg}"


@rp.record
class Trade:
    symbol: str
    price: float


BEGUN = (
    rp.Pipeline("p")
    .source("trades", Trade)
    .filter("dear", (rp.col("price") > 1) & rp.col("price").is_not_null())
)
BY = BEGUN.partition("by", key="symbol")
PIPELINE = BY.fold("n", n=rp.count()).sink("counts").also(BEGUN.sink("rows"))


def test_picture_has_each_node_with_its_fields_and_each_edge() -> None:
    found = ET.fromstring(PIPELINE.plan().svg())
    assert found.find(f"{SVG}title").text == "p"  # type: ignore[union-attr]
    titles = {
        " ".join(part.text or "" for part in group.iter(f"{SVG}tspan")): group.findtext(
            f"{SVG}title", ""
        )
        for group in found.iter(f"{SVG}g")
    }
    assert [*titles] == [
        *("source trades", "filter dear", "fold n", "output counts", "output rows"),
    ]
    assert titles["filter dear"].startswith('(col("price") > 1) & ')
    assert "symbol string, n int64" in titles["fold n"]
    assert "a key for ever" in titles["fold n"]
    assert len([*found.iter(f"{SVG}path")]) == 4


def test_notebooks_show_a_whole_pipeline_and_no_beginning_of_one() -> None:
    assert PIPELINE._repr_html_() == PIPELINE.plan().svg()
    assert BEGUN._repr_html_() is None


def test_lines_go_to_the_right_and_boxes_lie_apart() -> None:
    names = [f"n{at}" for at in range(12)]
    edges = [{"from": names[at // 3], "to": names[at]} for at in range(1, 12)] + [
        {"from": "n1", "to": "n11"}
    ]
    places = layout(names, edges)
    assert all(places[edge["from"]].x + WIDTH < places[edge["to"]].x for edge in edges)
    taken = sorted(places.values())
    assert all(one.x != other.x or other.y - one.y > HEIGHT for one, other in pairwise(taken))


def test_command_writes_the_picture(tmp_path: Path) -> None:
    file, picture = tmp_path / "p.py", tmp_path / "p.svg"
    file.write_text(
        "import ripple as rp\n@rp.record\nclass T:\n    a: str\n"
        "pipeline = rp.Pipeline('p').source('t', T).sink('o')\n"
    )
    assert ripple("plan", file, "--svg", picture).code == 0
    assert picture.read_text().startswith("<svg ")
    before = file.read_text()
    refused = ripple("plan", file, "--svg", file)
    assert (refused.code, file.read_text()) == (1, before)
    assert "does not end in .svg, which is its format" in refused.err
