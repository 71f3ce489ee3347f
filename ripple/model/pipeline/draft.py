"""A pipeline being written: the order of its steps, and the union of its branches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from itertools import count, product
from typing import Any

from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.pipeline.nodes import (
    SOURCES_MAX,
    EventNode,
    Fields,
    Fold,
    LastTable,
    Migration,
    Output,
    RowTable,
    SourceSpec,
)
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.waiting_nodes import Scan
from ripple.model.window.spec import LATENESS_DEFAULT, WindowSpec


class Stage(Enum):
    """The progress of a pipeline's declaration."""

    EMPTY = "nothing yet"
    EVENTS = "rows of events"
    KEYED = "events by key"
    WINDOWED = "events by key and window"
    RESULTS = "result rows of a fold"
    REKEYED = "result rows by another key"


# The steps allowed at each stage, and the stage after each.
TRANSITIONS: dict[tuple[Stage, str], Stage] = {
    (Stage.EMPTY, "source"): Stage.EVENTS,
    # Begins another branch.
    (Stage.EVENTS, "source"): Stage.EVENTS,
    (Stage.RESULTS, "source"): Stage.EVENTS,
    (Stage.EMPTY, "table"): Stage.RESULTS,
    (Stage.EVENTS, "table"): Stage.RESULTS,
    (Stage.RESULTS, "table"): Stage.RESULTS,
    (Stage.EVENTS, "derive"): Stage.EVENTS,
    (Stage.EVENTS, "filter"): Stage.EVENTS,
    (Stage.EVENTS, "map"): Stage.EVENTS,
    (Stage.EVENTS, "flat_map"): Stage.EVENTS,
    (Stage.EVENTS, "distinct"): Stage.EVENTS,
    (Stage.EVENTS, "scan"): Stage.EVENTS,
    (Stage.EVENTS, "ask"): Stage.EVENTS,
    (Stage.EVENTS, "join_asof"): Stage.EVENTS,
    (Stage.EVENTS, "join_interval"): Stage.EVENTS,
    (Stage.EVENTS, "sink"): Stage.EVENTS,
    (Stage.EVENTS, "partition"): Stage.KEYED,
    # These two leave the key as it is, so that they may stand on either side of a partition.
    (Stage.KEYED, "derive"): Stage.KEYED,
    (Stage.KEYED, "filter"): Stage.KEYED,
    (Stage.KEYED, "window"): Stage.WINDOWED,
    (Stage.KEYED, "fold"): Stage.RESULTS,
    (Stage.WINDOWED, "derive"): Stage.WINDOWED,
    (Stage.WINDOWED, "filter"): Stage.WINDOWED,
    (Stage.WINDOWED, "fold"): Stage.RESULTS,
    (Stage.RESULTS, "derive"): Stage.RESULTS,
    (Stage.RESULTS, "filter"): Stage.RESULTS,
    (Stage.RESULTS, "map"): Stage.RESULTS,
    (Stage.RESULTS, "finals"): Stage.EVENTS,
    (Stage.RESULTS, "versions"): Stage.EVENTS,
    (Stage.RESULTS, "join"): Stage.RESULTS,
    (Stage.RESULTS, "partition"): Stage.REKEYED,
    (Stage.RESULTS, "sink"): Stage.RESULTS,
    (Stage.REKEYED, "fold"): Stage.RESULTS,
}

_NO_WINDOW_OVER_TABLE = (
    "windows group events by their time, but a fold gives a table with rows that are "
    "replaced when they change: put .window(...) before the first .fold(...), group the rows by "
    "their window with .partition(..., key='window_start_ns'), or have the final rows of windows "
    "as events, with .finals(...)"
)
AS_EVENTS = (
    "take its versions, with .table(..., time=) and .versions(...), or read the topic as events, "
    "with .source(...)"
)
_ONE_IN_TABLE = f"a table has one row a key: {AS_EVENTS}, to have a row for each record"
# Steps for events alone, which no step before a table could be.
_NOT_OVER_TABLES = {
    "window": "windows group events by their time, but the rows of a table are replaced when they "
    f"change: {AS_EVENTS}, to have each record in its window",
    "finals": f"the rows of a table may change for ever: {AS_EVENTS}, and fold them in windows",
    "flat_map": _ONE_IN_TABLE,
    "distinct": _ONE_IN_TABLE,
    "scan": f"a scan takes rows in the order of time: {AS_EVENTS}, and scan these",
    "ask": f"answers belong to records: {AS_EVENTS}, and ask for each record",
    **dict.fromkeys(
        ("join_asof", "join_interval"),
        "the rows of a table have no event time: take its changes, with .versions(...)",
    ),
}
# Steps for events, and one in which a row without the others of its table would not be noticed.
_NOT_OVER_ROWS = {
    *("finals", "join", "join_asof", "join_interval", "distinct", "scan", "flat_map", "window")
}
_BEFORE_PARTITION = "put it before .partition(...)"
_NOT_BETWEEN = (
    "rows on their way into a fold are not shown: put it before .partition(...), or add .fold(...)"
)
_NOTHING_YET = "there is nothing to read yet: start with .source(...)"
_NO_WINDOW_YET = "final rows are those of windows: put it after .window(...) and .fold(...)"
_TABLES_ALONE = (
    "tables are joined, and these are events: join them with .join_asof(...) or "
    ".join_interval(...), fold them by their key first, or read the topic as a table; a small "
    "table that never changes is joined to events as rp.constant(...)"
)
_NO_TIME_IN_FOLD = (
    "the rows of a fold have no event time: put it before .partition(...), or join the final rows "
    "of windows, with .finals(...)"
)
_ONE_ROW_A_KEY = (
    "a fold has one row a key, and none may become several: put .flat_map(...) before the fold"
)

# Why the rest may not be written, and the alternative.
REFUSALS: dict[tuple[Stage, str], str] = {
    **{
        (stage, verb): f"another {verb} begins another branch: add .fold(...) to this one first"
        for stage in (Stage.KEYED, Stage.WINDOWED, Stage.REKEYED)
        for verb in ("source", "table")
    },
    **{
        (Stage.EMPTY, verb): _NOTHING_YET
        for verb in (
            *("derive", "filter", "map", "flat_map", "partition", "window", "fold", "sink"),
            *("distinct", "scan", "ask", "join_asof", "join_interval"),
        )
    },
    **{
        (stage, "finals"): _NO_WINDOW_YET
        for stage in (Stage.EMPTY, Stage.EVENTS, Stage.KEYED, Stage.WINDOWED)
    },
    **{
        (stage, "versions"): (
            "versions are those of a table from a topic: put it right after .table(...)"
        )
        for stage in Stage
        if stage is not Stage.RESULTS
    },
    (Stage.EMPTY, "join"): _NOTHING_YET,
    (Stage.EVENTS, "join"): _TABLES_ALONE,
    **{
        (stage, "join"): "rows on their way into a fold are not joined: add .fold(...) first"
        for stage in (Stage.KEYED, Stage.WINDOWED, Stage.REKEYED)
    },
    **{
        (stage, verb): _BEFORE_PARTITION
        for stage in (Stage.KEYED, Stage.WINDOWED)
        for verb in ("distinct", "scan", "ask", "join_asof", "join_interval")
    },
    **{
        (stage, verb): _NO_TIME_IN_FOLD
        for stage in (Stage.RESULTS, Stage.REKEYED)
        for verb in ("join_asof", "join_interval")
    },
    **{
        (stage, "distinct"): "a fold has one row a key already: put .distinct(...) before it"
        for stage in (Stage.RESULTS, Stage.REKEYED)
    },
    **{
        (stage, "scan"): (
            "the rows of a fold have no order in time: put .scan(...) before .partition(...), or "
            "scan the final rows of windows, with .finals(...)"
        )
        for stage in (Stage.RESULTS, Stage.REKEYED)
    },
    **{
        (stage, "ask"): "answers belong to records: ask before .partition(...) and the fold"
        for stage in (Stage.RESULTS, Stage.REKEYED)
    },
    (Stage.EVENTS, "window"): "events need a group first: add .partition(..., key=...)",
    (Stage.EVENTS, "fold"): "events need a group first: add .partition(..., key=...)",
    (Stage.KEYED, "map"): f"it could change the key: {_BEFORE_PARTITION}",
    (Stage.KEYED, "flat_map"): f"it could change the key: {_BEFORE_PARTITION}",
    (Stage.KEYED, "partition"): "there is a partition already: name several fields in one key=",
    (Stage.KEYED, "sink"): _NOT_BETWEEN,
    (Stage.WINDOWED, "map"): f"it could change the key: {_BEFORE_PARTITION}",
    (Stage.WINDOWED, "flat_map"): f"it could change the key: {_BEFORE_PARTITION}",
    (Stage.WINDOWED, "partition"): "a partition comes before its window",
    (Stage.WINDOWED, "window"): "there is a window already: a fold has one",
    (Stage.WINDOWED, "sink"): _NOT_BETWEEN,
    (Stage.RESULTS, "flat_map"): _ONE_ROW_A_KEY,
    (Stage.RESULTS, "window"): _NO_WINDOW_OVER_TABLE,
    (Stage.RESULTS, "fold"): "to fold results again, group them: add .partition(..., key=...)",
    (Stage.REKEYED, "derive"): _BEFORE_PARTITION,
    (Stage.REKEYED, "filter"): _BEFORE_PARTITION,
    (Stage.REKEYED, "map"): _BEFORE_PARTITION,
    (Stage.REKEYED, "finals"): _BEFORE_PARTITION,
    (Stage.REKEYED, "flat_map"): _ONE_ROW_A_KEY,
    (Stage.REKEYED, "partition"): "there is a partition already: name several fields in one key=",
    (Stage.REKEYED, "window"): _NO_WINDOW_OVER_TABLE,
    (Stage.REKEYED, "sink"): _NOT_BETWEEN,
}


class NamedStep:
    """A step that has a name: itself alone, however many others have its verb and name."""

    def __init__(self, verb: str, name: str) -> None:
        """Take the method that puts it."""
        self.call = f"{verb}({name!r})"


# Invariants: ``at`` is the input node of the next step, ``fields`` are its rows' fields; ``fold``
# is the fold of these rows, None of events; ``root`` is their source, union or node that waits, and
# ``read`` their sources, of ``sources``; ``origins`` names the sources and nodes of final rows that
# gave the rows their identities, and ``finals`` the latter; ``waits`` says whether some of the rows
# come by the watermark, ``is_settled`` whether all do, of which none is late, and ``is_held``
# whether a node has held some back; ``is_table`` whether they are rows of a table from a topic, or
# folded from them; ``deleted`` names the field that is true in deletions, of versions of a table;
# ``path`` names the source, partitions, windows and folds before. ``partition`` is set from its
# step to the fold, ``window`` likewise. The nodes have their paths for keys: their meaning is not
# examined yet. ``used`` has each name's step, which distinguishes a step common to branches from
# two of one name; partitions are no nodes, and no step reads a sink: both kinds have a namespace
# of their own. ``is_open`` until a sink shows the last step. All branches of one Pipeline share
# ``ordinals``.
@frozen
class Draft:
    """A pipeline as far as it has been written."""

    name: str
    stage: Stage = Stage.EMPTY
    used: Mapping[tuple[str, str], NamedStep] = field(default_factory=dict)
    is_open: bool = True
    sources: tuple[SourceSpec, ...] = ()
    read: tuple[SourceSpec, ...] = ()
    root: str = ""
    origins: tuple[str, ...] = ()
    ordinals: Iterator[int] = field(default_factory=count, compare=False)
    steps: tuple[EventNode, ...] = ()
    partition: str = ""
    key: Fields = ()
    partitions: int | None = None
    via_log: bool = False
    window: WindowSpec | None = None
    folds: tuple[Fold, ...] = ()
    fold: Fold | None = None
    outputs: tuple[Output, ...] = ()
    migrations: tuple[Migration, ...] = ()
    fields: Fields = ()
    row: type | None = None
    finals: str = ""
    waits: bool = False
    is_settled: bool = False
    is_held: bool = False
    is_table: bool = False
    deleted: str = ""
    path: tuple[str, ...] = ()
    at: str = ""

    def begun(self, name: str, verb: str) -> Draft:
        """Return the draft with a step of that name and verb to be put here. Raises PlanError."""
        kind = verb if verb in ("partition", "sink") else "node"
        used = (kind, name)
        if used in self.used:
            shared = "sources, steps and folds" if kind == "node" else f"{kind}s"
            raise PlanError(
                f"another step has that name, {self.used[used].call}: choose another one, as "
                f"'{name}-2', since {shared} share one namespace"
            )
        step = NamedStep(verb, name)
        return replace(self, used={**self.used, used: step}, is_open=True)

    def below(self, name: str) -> str:
        """Return the path of a node that is put here."""
        return "/".join((*self.path, name))


def refusal(draft: Draft, verb: str) -> str | None:
    """Return why a step may not be written here, and the alternative; None if it may."""
    if isinstance(draft.fold, RowTable) and verb == "ask":
        return (
            f"answers belong to records, and the rows of {draft.fold.input!r} are a table: ask "
            "before it"
        )
    if isinstance(draft.fold, LastTable) and verb == "join":
        return None
    if isinstance(draft.fold, RowTable) and verb in _NOT_OVER_ROWS:
        is_scan = any(one.name == draft.fold.input and isinstance(one, Scan) for one in draft.steps)
        way = "settled=True" if is_scan else "emit='final'"
        if isinstance(draft.fold, LastTable):
            return (
                f"{draft.fold.input!r} shows a table, the last row of each key: say settled=True "
                "there in place of show='last', or fold its rows first"
            )
        return (
            f"the rows of {draft.fold.input!r} are a table, each may be corrected until it is "
            f"final and leaves: say {way} there, or fold them first"
        )
    if verb in _NOT_OVER_TABLES and draft.is_table:
        return _NOT_OVER_TABLES[verb]
    return None if (draft.stage, verb) in TRANSITIONS else REFUSALS[draft.stage, verb]


def check_topic(topic: str | None, outputs: Iterable[Output]) -> None:
    """Raise PlanError if one of the outputs has the topic."""
    if topic is not None and topic in (output.topic for output in outputs):
        raise PlanError(f"another sink writes to the topic {topic!r}: choose another one")


def unfinished(draft: Draft) -> PlanError:
    """Return the error for rows without a reader."""
    return PlanError(
        f"pipeline {draft.name!r} ends with {draft.stage.value}: end it with .sink(name)"
    )


def united(one: Draft, other: Draft) -> Draft:
    """Return a draft with the nodes of two branches, those in common once; it goes on at ``one``.

    Raises PlanError.
    """
    _check_alike(one, other)
    folds = {fold.name: fold for fold in one.folds}
    for fold in other.folds:
        if folds.setdefault(fold.name, fold) is not fold:
            raise PlanError(
                f"the branches have other steps on the results of {fold.name!r}: put the steps "
                "into the part that the branches have in common, or fold twice"
            )
    outputs = {output.name: output for output in one.outputs}
    for output in other.outputs:
        if output.name not in outputs:
            check_topic(output.topic, one.outputs)
            outputs[output.name] = output
    sources = {source.name: source for source in (*one.sources, *other.sources)}
    check_count(sources)
    return replace(
        one,
        used={**one.used, **other.used},
        sources=tuple(sorted(sources.values(), key=lambda source: source.ordinal)),
        steps=tuple({step.name: step for step in (*one.steps, *other.steps)}.values()),
        folds=tuple(folds.values()),
        outputs=tuple(outputs.values()),
        migrations=tuple(dict.fromkeys((*one.migrations, *other.migrations))),
    )


def check_count(sources: Collection[object]) -> None:
    """Raise PlanError for more than ``SOURCES_MAX`` sources."""
    if len(sources) > SOURCES_MAX:
        raise PlanError(f"a pipeline has at most {SOURCES_MAX} sources, not {len(sources)}")


def check_ended(one: Draft, other: Draft) -> None:
    """Raise PlanError unless both branches end with a sink."""
    for draft in (one, other):
        if draft.is_open:
            last = list(draft.used)[-1][1] if draft.used else draft.name
            raise PlanError(
                f"the branch to {last!r} ends with {draft.stage.value}: end it with .sink(name)"
            )


def check_read(plan: Plan) -> None:
    """Raise PlanError for a source, or a step on events, without a reader."""
    read = {name for node in plan.nodes for name in node.inputs}
    for source in plan.sources:
        if source.name not in read:
            raise PlanError(
                f"source {source.name!r}: no step and no sink reads it: give it a .sink(name), or "
                "leave it out"
            )
    for step in plan.steps:
        if step.name not in read:
            raise PlanError(
                f"step {step.name!r}: nothing takes its rows: end its branch with .sink(name), or "
                "leave it out"
            )


def _check_alike(one: Draft, other: Draft) -> None:
    if one.name != other.name:
        raise PlanError(
            f"{other.name!r} is another pipeline: begin both branches with the same Pipeline"
        )
    for mine, theirs in product(one.sources, other.sources):
        if mine.name == theirs.name and mine is not theirs:
            raise PlanError(
                f"each branch has a different source named {mine.name!r}: rename one, or "
                "begin both with the same value, as in events = Pipeline(...).source(...)"
            )
    for used, step in one.used.items():
        if other.used.get(used, step) is not step:
            _, name = used
            raise PlanError(f"two steps are called {name!r}: rename one")


def need_time(draft: Draft, why: str) -> None:
    """Raise PlanError where a source that the draft reads has no event time."""
    for source in draft.read:
        if source.time_field is None:
            raise PlanError(
                f"{why}, and the source {source.name!r} has no time field: declare one as "
                "rp.Timestamp, or name it with .source(..., time=...)"
            )


def need_records(draft: Draft, way: str) -> None:
    """Raise PlanError for rows that are not of records, with the way out."""
    if draft.finals:
        raise PlanError(
            f"rows of {draft.at!r} are told apart by the keys and windows of {draft.finals!r}, not "
            f"as records: {way}"
        )


def lateness_of(draft: Draft, given: str | int | None) -> str | int:
    """Return how late rows may be; rows in the order of the watermark never are.

    Raises PlanError where such rows are given a lateness.
    """
    if not draft.is_settled:
        return LATENESS_DEFAULT if given is None else given
    if given is not None:
        raise PlanError(f"the rows of {draft.root!r} are never late: leave lateness= out")
    return 0


def window_below(draft: Draft) -> Any:
    """Return the fold whose windows end the rows of a table; None if the rows stay."""
    folds = {fold.name: fold for fold in draft.folds}
    fold: Fold | None = draft.fold
    while fold is not None and fold.window is None:
        fold = folds.get(fold.input) if fold.ends_with_window else None
    return fold
