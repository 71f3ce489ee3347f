"""Functions wherever a pipeline has expressions: the engine against the reference."""

from __future__ import annotations

import pytest

import ripple as rp
from ripple.testing import check_pipeline


@rp.record
class Visit:
    """A visit of a page."""

    url: str
    at: rp.Timestamp
    price: str | None


HOUR_NS = 3_600_000_000_000
PAGES = [("http://A.org/x/é", "1.5"), ("http://a.org/Y", None), ("/b", "-2"), ("", "many")]
VISITS = [
    {"url": url, "at": at * HOUR_NS // 3, "price": price}
    for at, (url, price) in enumerate(PAGES * 6)
]


def pipeline() -> rp.Pipeline:
    url, at = rp.col("url"), rp.col("at").dt
    return (
        rp.Pipeline("visits")
        .source("visits", Visit, key="url")
        .filter("pages", url.str.contains("^(http:|/)"))
        .derive(
            "parts",
            host=rp.coalesce(url.str.split("/").list.get(2), "none").str.to_lowercase(),
            day=at.to_string("%F"),
            hour=at.hour(),
        )
        .partition("by-host", key=("host", "day"))
        .window("6h", rp.Tumbling("6h"))
        .fold(
            "spent",
            sum=rp.sum(rp.col("price").cast(float, strict=False).abs()),
            pages=rp.count_distinct(url.str.extract("([^/]*)$").str.to_uppercase()),
            latest=rp.max("hour"),
            first=rp.first(url.str.slice(-3)),
        )
        .derive(
            "shown",
            label=rp.col("host") + "@" + rp.col("pages").cast(str),
            rest=6 // rp.col("latest"),
        )
        .filter("long", rp.col("label").str.len_chars() > 4)
        .partition("by-label", key="label")
        .fold("labels", n=rp.count(), most=rp.max(rp.col("host").str.len_chars()))
        .sink("out")
    )


def test_functions_in_each_step_equal_the_reference() -> None:
    check_pipeline(pipeline(), VISITS, (1, 7, 1_000), restarts=[len(VISITS) // 2])


def test_node_keys_are_pinned() -> None:
    """They stand in checkpoints: a function that computes something else needs another name."""
    keys = [step.node_key for step in pipeline().plan().steps[:2]]
    assert keys == [
        "visits/pages#4ca73ac63559002d6951c045f6c98cc2",
        "visits/parts#ef68e0fbb36c0bfd07f23cdb9af750af",
    ]


def test_events_that_a_function_cannot_compute_become_dead_letters() -> None:
    numbers = (
        rp.Pipeline("numbers")
        .source("visits", Visit)
        .derive("number", value=rp.col("price").cast(int))
        .sink("out")
    )
    check_pipeline(numbers, VISITS)


def test_powers_hashes_and_paths_equal_the_reference() -> None:
    """The third document is no JSON: its event is a dead letter in both."""
    price = rp.col("price")
    documents = ['{"u": {"id": 7}}', '{"u": {"id": 0.5}}', "{", '{"u": 1}', None]
    rows = [{**row, "price": documents[at % 5]} for at, row in enumerate(VISITS)]
    made = (
        rp.Pipeline("made")
        .source("visits", Visit)
        .derive("id", id=price.str.json_path_match("$.u.id").cast(float), of=rp.col("url").hash(3))
        .filter("some", rp.col("id").eq_missing(None) | (rp.col("id") ** 0.5 > 1))
        .partition("by", key="of")
        .fold("f", most=rp.max(1.5 ** rp.col("id")), n=rp.count())
        .derive("power", more=rp.col("most").pow(rp.col("n")))
        .sink("out")
    )
    check_pipeline(made, rows, (1, 7, 1_000), restarts=[len(rows) // 2])


@pytest.mark.parametrize(
    ("expr", "told"),
    [
        (rp.col("ulr").str.len_chars(), "derive 'made': n: there is no field 'ulr'.*'url'"),
        (rp.col("at").str.len_chars(), "derive 'made': n: .* needs a text; it was given an int"),
        (
            rp.col("url").str.extract("(a"),
            r"derive 'made': n: .* is no pattern of RE2: missing \)",
        ),
    ],
)
def test_what_does_not_fit_names_step_and_field(expr: rp.Expr, told: str) -> None:
    with pytest.raises(rp.PlanError, match=told):
        rp.Pipeline("p").source("visits", Visit).derive("made", n=expr)
