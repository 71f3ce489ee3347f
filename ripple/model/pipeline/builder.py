"""The builder that users call: steps, each checked as it is written, and branches of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, Operand
from ripple.model.pipeline.checks import (
    blaming,
    check_distinct,
    check_name,
    check_spread,
    check_text,
    key_field,
    named,
)
from ripple.model.pipeline.draft import (
    Draft,
    check_ended,
    check_read,
    refusal,
    unfinished,
    united,
)
from ripple.model.pipeline.event_source import event_source
from ripple.model.pipeline.folding import fold_of, window_of, with_unnamed
from ripple.model.pipeline.node_keys import keyed
from ripple.model.pipeline.nodes import Fields, FlatMap
from ripple.model.pipeline.output import output_of
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.row_steps import derive_of, filter_of, flat_map_of, map_of
from ripple.model.pipeline.table import table_fold, table_source, versions_of
from ripple.model.pipeline.transitions import (
    grown,
    with_fold,
    with_joined,
    with_joined_tables,
    with_row_table,
    with_source,
    with_step,
    with_stream,
    with_table,
    with_versions,
)
from ripple.model.pipeline.waiting import distinct_of, finals_of
from ripple.model.pipeline.waiting_nodes import BookScan, StepScan
from ripple.model.schema.types import Schema
from ripple.model.window.spec import FUTURE_TOLERANCE_DEFAULT

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.model.pipeline.constant import Constant
    from ripple.model.running.order_book import OrderBook
    from ripple.model.running.position import Position
    from ripple.model.window.spec import Assigner, Last, Trigger

Key: TypeAlias = Operand
Row: TypeAlias = Any
S = TypeVar("S")


class Pipeline:
    """A pipeline being written. Each method returns a longer one; this one stays as it is.

    Every method raises PlanError, naming the step and the remedy, for a step that cannot stand here
    or does not fit the fields. :meth:`plan` gives the whole.
    """

    __slots__ = ("_draft",)

    def __init__(self, name: str) -> None:
        with blaming("pipeline", name):
            check_name(name)
        self._draft = Draft(name)

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self._draft.name

    @property
    def fields(self) -> Fields:
        """The fields that the next step sees."""
        return self._draft.fields

    @named
    def source(
        self,
        name: str,
        record: type | Schema,
        *,
        topic: str | None = None,
        time: Key = None,
        out_of_order: str | int = "0s",
        reject_future: str | int | None = None,
        key: Key | Sequence[Key] = None,
        idle: str | int | None = None,
    ) -> Pipeline:
        """Read events: ``record`` is a record class or a schema.

        Each call, on one Pipeline or on a branch of it, declares another source. Where events of
        several have the same time, those of the source declared earlier come first.
        A record in which a check that the class declares fails (``ripple.field``) is refused.
        time: the field with the event time, nanoseconds since the epoch; by default the one
        declared as ``rp.Timestamp``, else ``timestamp_ns`` if there is such an integer.
        out_of_order: how much older than the latest event time an event is still on time.
        reject_future: an event further ahead of the watermark becomes a dead letter, and later ones
        are not late because of it. Choose more than the longest pause: after a longer one, every
        event is refused. None refuses none.
        key: the field, or fields, by which the topic's writer chooses a record's partition:
        all records with the same one are in the same partition. None where that is not known.
        idle: an input that is silent for so long does not hold windows back: its watermark is
        raised to the least one of the other inputs, or to the clock less ``out_of_order`` where all
        are silent. A raised watermark is recorded, so that a replay does the same. None: it waits.
        """
        with self._step("source", name) as draft:
            spec = event_source(
                name,
                record,
                draft,
                topic=topic,
                time=time,
                out_of_order=out_of_order,
                reject_future=reject_future,
                key=key,
                idle=idle,
            )
            return pipeline_of(with_source(draft, spec))

    @named
    def table(
        self,
        name: str,
        record: type | Schema,
        *,
        key: Key | Sequence[Key],
        topic: str | None = None,
        deleted: Key = None,
        format: Literal["debezium"] | None = None,  # noqa: A002 - as sources have it
        truncate: Literal["stop", "letter"] = "stop",
        time: Key = None,
        out_of_order: str | int = "0s",
        reject_future: str | int | None = None,
        idle: str | int | None = None,
        ttl: str | int | None = None,
    ) -> Pipeline:
        """Read a table's changes: per key, the record with the greatest offset is the row.

        record: a record class or a schema; its checks hold for rows. key: the field, or fields,
        that identify a row: text, integers or bools, never null. All records of a key are in one
        partition of the topic. A record of Kafka without a value deletes the row of its record
        key. deleted: a bool that is true in a record that deletes its row, and then needs no other
        field but the key. format: "debezium" for envelopes of Debezium, of which ``before`` is
        never read. truncate: whether a truncated table ("op": "t") stops the run, since it names no
        key, or is a dead letter. Steps and folds after it work as on the results of a fold.
        time: the field with the event time, which :meth:`versions` need; out_of_order,
        reject_future and idle are as for a source, and need it.
        ttl: a span of event time, such as ``ttl="7d"``: a row is removed when the watermark is that
        far past its key's newest time, and a record so late does not count. Records of a key that
        are further apart replace each other by time; others by offset, as where there is no ttl.
        """
        with self._step("table", name) as draft:
            check_text(topic, "topic")
            source = table_source(
                name,
                record,
                next(draft.ordinals),
                key=key,
                topic=topic,
                deleted=deleted,
                format=format,
                truncate=truncate,
                time=time,
                out_of_order=out_of_order,
                reject_future=reject_future,
                idle=idle,
            )
            return pipeline_of(with_table(draft, source, table_fold(source, ttl)))

    @named
    def versions(self, name: str, /) -> Pipeline:
        """Make a stream of a table's accepted changes, right after a :meth:`table` with ``time=``.

        A row has the fields of the record, and ``deleted``, or the field that ``.table(...,
        deleted=)`` names: it is true in a deletion, which needs no other field but the key. The
        event time is the field ``time=``; a deletion without one has the newest time of its input
        before it. Where a key's times go back, its newest version is not the row of the table,
        which goes by offsets.
        """
        with self._step("versions", name) as draft:
            return pipeline_of(with_versions(draft, versions_of(name, draft)))

    @named
    def derive(self, name: str, /, **fields: Operand) -> Pipeline:
        """Add fields: ``notional=rp.col("price") * rp.col("size")``.

        All are computed from the row as it comes in. Integer overflow or division by zero
        dead-letters an event; a result row is absent meanwhile.
        """
        with self._step("derive", name) as draft:
            step = derive_of(name, draft, fields)
            return pipeline_of(with_step(draft, "derive", step, row=None))

    @named
    def filter(self, name: str, condition: Expr | bool, /) -> Pipeline:
        """Keep the rows for which ``condition`` is true; rows where it is null go too.

        Of result rows, filtered ones are absent from the results.
        """
        with self._step("filter", name) as draft:
            step = filter_of(name, draft, condition)
            return pipeline_of(with_step(draft, "filter", step, row=draft.row))

    @named
    def map(
        self,
        name: str,
        function: Callable[[Row], Row],
        /,
        *,
        into: type | Schema,
        batch: bool = False,
    ) -> Pipeline:
        """Replace each row by the result of ``function``, with the fields of ``into``.

        batch=False: called per row with an object with the fields as attributes (an instance of
        the record class where rows still have its fields), returns an instance of ``into``, or
        anything else with its fields as attributes, or a dict of them.
        batch=True: called with a dict of NumPy arrays that can only be read, returns a dict of
        arrays of that length, at a small fraction of the cost. A value that the field's type does
        not take as it is (``ripple.model.schema.values``) makes the row a dead letter, an array of
        another type is a NodeError. The function must be a function of its argument alone. On
        result rows, the key and window fields are carried over and must be in ``into``; a row for
        which the function raises is absent from the results.
        """
        with self._step("map", name) as draft:
            step = map_of(name, draft, function, into=into, batch=batch)
            return pipeline_of(with_step(draft, "map", step, row=step.into))

    @named
    def flat_map(
        self,
        name: str,
        function: Callable[[Row], Iterable[Row]] | Expr,
        /,
        *,
        into: type | Schema | str | Sequence[str] | None = None,
    ) -> Pipeline:
        """Replace each event by the rows that ``function`` returns: none, one or many.

        function: called per row as that of ``map``; returns an iterable of rows with the fields of
        ``into``, at most 10,000 of one record. A record of which it makes a row that does not fit,
        or too many, is a dead letter as a whole.

        Or a field that is a list, ``rp.col("tags")``: each row becomes one for each item, without a
        call in Python. The item is in the field's place, under the name ``into``, by default its
        own; other fields stay. Of a map there are two fields, by default ``("key", "value")``, and
        the rows are in the order of the keys. An empty list or map and null make no row.
        """
        with self._step("flat_map", name) as draft:
            step = flat_map_of(name, draft, function, into=into)
            row = step.into if isinstance(step, FlatMap) else None
            return pipeline_of(with_step(draft, "flat_map", step, row=row))

    @named
    def partition(
        self,
        name: str,
        /,
        key: Key | Sequence[Key],
        *,
        partitions: int | None = None,
        via: Literal["log"] | None = None,
    ) -> Pipeline:
        """Group rows by one or more fields: text, integer or bool, and never null.

        After a fold, the key may be any field of its result rows, or ``()`` for one total.
        partitions and via say how a cluster spreads the groups (``docs/stages.md``): over how many
        partitions, 8 by default and 1 for one total; and "log" to pass rows through a durable log.
        Before a fold, partitions counts where records are repartitioned; else they stay in the
        partitions of the input.
        """
        with self._step("partition", name) as draft:
            chosen = key if isinstance(key, (tuple, list)) else (key,)
            fields = tuple(key_field(item, draft.fields, draft.fold) for item in chosen)
            names = [field.name for field in fields]
            if not names and draft.fold is None:
                raise PlanError(
                    "events are spread over workers by their key: name a field; for one total, "
                    "fold by a field first, and then its rows by ()"
                )
            check_distinct(names, "key")
            check_spread(partitions, via, key=names)
            return pipeline_of(
                grown(
                    draft,
                    "partition",
                    partition=name,
                    key=fields,
                    partitions=partitions,
                    via_log=via == "log",
                    path=(*draft.path, name),
                )
            )

    @named
    def window(
        self,
        name: str,
        assigner: Assigner,
        /,
        *,
        trigger: Trigger | None = None,
        lateness: str | int | None = None,
        future: str | int = FUTURE_TOLERANCE_DEFAULT,
    ) -> Pipeline:
        """Group events by event time too: Tumbling, Sliding, Session or TradingSessions.

        trigger: when results show, by default when the watermark reaches the window's end.
        lateness: how far below the watermark an event still counts, "60s" by default; final rows
        are never late, and take none. future: how far ahead of it an event is not yet flagged.
        """
        with self._step("window", name) as draft:
            spec = window_of(
                name, draft, assigner, trigger=trigger, lateness=lateness, future=future
            )
            return pipeline_of(grown(draft, "window", window=spec, path=(*draft.path, name)))

    @named
    def fold(self, name: str, /, *unnamed: Any, **aggregates: Any) -> Pipeline:
        """Keep aggregates per key (and window): ``vwap=rp.vwap("price", "size")``.

        A result row has the key fields, window_start_ns and window_end_ns if there is a window,
        and the aggregates.
        unnamed: aggregates whose results have names of their own, such as ``rp.ohlc("price")``.
        ttl: a span of event time, such as ``ttl="7d"``; without windows. A key shows the events of
        its newest session, in which each is less than ``ttl`` after the one before. Its row is
        removed when the watermark is ``ttl`` past the last of them, and its state freed 60 s later,
        which is also how late an event may be. An aggregate called ``ttl`` is one.
        """
        with self._step("fold", name) as draft:
            fold = fold_of(name, draft, with_unnamed(unnamed, aggregates))
            return pipeline_of(with_fold(draft, fold))

    @named
    def distinct(
        self,
        name: str,
        /,
        key: Key | Sequence[Key],
        *,
        within: str | int | None = None,
        lateness: str | int | None = None,
        emit: Literal["final"] = "final",
        ttl: None = None,
    ) -> Pipeline:
        """Keep a row unless an earlier one of its key is at most ``within`` before it.

        The row before it of its key decides, kept or not: of a key that comes again and again, only
        the first row of each run stays. Rows of one time stand in the order of sources and offsets.
        key: the field, or fields; never null. within: a span of event time. lateness: how far below
        the watermark a row still counts, "60s" by default; rows that come by the watermark are
        never late, and take none. emit: "final": a row is given once, when no row on time
        can precede it any more, ``lateness`` above it by the watermark. ttl: none, since ``within``
        ends keys.
        """
        with self._step("distinct", name) as draft:
            if ttl is not None:
                raise PlanError(
                    f"ttl is {shown(ttl)}, but a key is forgotten within= after its last row: "
                    "leave ttl= out"
                )
            node = distinct_of(name, draft, key, within=within, lateness=lateness, emit=emit)
            return pipeline_of(with_stream(draft, "distinct", node, is_held=True))

    @named
    def scan(
        self,
        name: str,
        /,
        key: Key | Sequence[Key],
        *,
        state: type[S] | None = None,
        step: Callable[[S, Any], Any] | OrderBook | Position | None = None,
        into: type | Schema | None = None,
        settled: bool = False,
        show: Literal["rows", "last"] = "rows",
        version_of: Key = None,
        lateness: str | int | None = None,
        ttl: str | int | None = None,
        timers: Mapping[str, Callable[[S, int], Any]] | None = None,
        window: Last | None = None,
        **columns: Any,
    ) -> Pipeline:
        """Give the rows that ``step(state, row)`` makes of each row of a key, in their order.

        Or add ``columns`` to each row, as ``previous=rp.lag("price")``, without state, step and
        into: ``rp.lag``, ``rp.ema``, ``rp.cum_max``, ``rp.cum_min``, ``rp.cum_sum``,
        ``rp.bar`` and ``rp.rolling_sum``, ``rolling_mean``, ``rolling_max`` and ``rolling_min``.
        Or, with ``step=rp.OrderBook(...)``, give the best levels of an order book at each change.

        The order is by event time; rows of one time stand in the order of sources and offsets. key:
        the field, or fields; never null. state: a dataclass of numbers, texts, booleans, dates,
        times and decimals, lists of these and maps, each with a default for a new key. step:
        changes the state, and returns an instance of ``into``, or anything else with its fields as
        attributes, or a dict of them, or None for no row; or an ``rp.Position``, without state and
        into. It reads no clock, draws no random number and keeps nothing elsewhere. If it raises,
        the state is unchanged, and the row counts as one that cannot be computed. into: the fields
        of a row, beside the key. settled: False, the rows are a table. Each is there from its
        reading on, and corrected by earlier rows of its key, until it is final. True, they are a
        stream. Each comes once, when no row on time can precede it: the watermark is past it by
        ``lateness``. show: "last", without settled=True: the table has one row for each key, the
        newest that the step made, as long as the state lasts. version_of: a field; rows of a key
        with the same time and the same value there are versions of one row: the newest, in the
        order of sources and offsets, counts in the place of the first. lateness: how far below the
        watermark a row still counts, "60s" by default; rows that come by the watermark are never
        late, and take none. ttl: how long after its last row a key's state lasts, in event time;
        for ever by default. timers: fields of the state of type
        ``rp.Timestamp | None``, each with a function. At the time that the field holds it is called
        with the state, where the field is None again, and the time, and returns as ``step`` does.
        window: ``rp.Last(20)``, with settled=True; ``columns`` are aggregates then, as
        ``p95=rp.percentile("price", 95)``, over the last 20 rows of the key up to each row.
        """
        # Few pipelines scan.
        from ripple.model.pipeline.scanning import scan_of, table_of  # noqa: PLC0415

        with self._step("scan", name) as draft:
            node = scan_of(
                name,
                draft,
                key,
                columns,
                state=state,
                step=step,
                into=into,
                settled=settled,
                show=show,
                version_of=version_of,
                lateness=lateness,
                ttl=ttl,
                timers=timers,
                window=window,
            )
            made: dict[str, Any] = {"fields": node.fields_out, "row": None}
            if isinstance(node, StepScan):
                made["deleted"] = ""
                names = {field.name for field in node.schema.fields}
                made["row"] = node.into if names.issuperset(node.kept) else None
            if isinstance(node, StepScan | BookScan) and node.is_eager:
                return pipeline_of(with_row_table(draft, node, table_of(node)))
            return pipeline_of(with_stream(draft, "scan", node, is_held=True, **made))

    @named
    def ask(
        self,
        name: str,
        function: Callable[[Row], Awaitable[Row]],
        /,
        *,
        into: type | Schema,
        timeout: str | int = "10s",
        retries: int = 3,
        concurrency: int = 16,
    ) -> Pipeline:
        """Give each row of a stream the fields of its answer, which ``async def function`` returns.

        function: called per row as that of ``map``, several at a time; returns an instance of
        ``into``, or anything else with its fields as attributes, or a dict of them. timeout: of a
        call. retries: how often a call that fails or takes longer is made again, after pauses that
        grow from 1 s to 30 s. concurrency: how many calls run at a time, at most 1,024. Rows,
        their order in each input and their lateness are as with ``map``, in any order of answers. A
        row without an answer is left out and counted with the rows that cannot be computed, with
        its reason.
        """
        # Few pipelines ask.
        from ripple.model.pipeline.asking import ask_of  # noqa: PLC0415

        with self._step("ask", name) as draft:
            node = ask_of(
                name,
                draft,
                function,
                into=into,
                timeout=timeout,
                retries=retries,
                concurrency=concurrency,
            )
            made: dict[str, Any] = {"fields": node.fields_out, "row": None, "deleted": ""}
            return pipeline_of(
                with_stream(draft, "ask", node, is_settled=False, is_held=True, **made)
            )

    @named
    def join_asof(
        self,
        name: str,
        right: Pipeline,
        /,
        *,
        on: Key | Sequence[Key] = None,
        left_on: Key | Sequence[Key] = None,
        right_on: Key | Sequence[Key] = None,
        strategy: Literal["backward", "forward", "nearest"] = "backward",
        tolerance: str | int | None = None,
        allow_exact_matches: bool = True,
        how: Literal["left", "inner"] = "left",
        lateness: str | int | None = None,
        emit: Literal["eager", "final"] | None = None,
        suffix: str = "_right",
    ) -> Pipeline:
        """Join each row with the row of ``right`` with its keys that counted at its event time.

        right: another branch of the pipeline. on: the key fields, of one name on both sides;
        left_on, right_on: of other names. A null key matches nothing. strategy: "backward" takes
        the last row at the time or before, "forward" the first one then or after, "nearest" the
        backward one unless the forward one is nearer; rows of one time are in the order of sources
        and offsets. tolerance: how far apart in event time the two may be; without it any span,
        which "backward" alone takes. allow_exact_matches: whether a row of the very same time
        counts. how: "left" gives each row, with nulls where nothing matches; "inner" only matching
        rows. lateness: how far below its watermark a row of either side still counts, "60s" by
        default; sides of rows that come by the watermark take none. emit: "final" gives a row once,
        in the order of event time, when no row on time can change its match. "eager" gives a table:
        a row is there once it is read, with its match so far, and is final when "final" would give
        it; ``row_input``, ``row_offset`` and ``row_index`` are its key. suffix: for fields of the
        right side with a name that the left side has; its keys are left out.
        """
        # Few pipelines have joins.
        from ripple.model.pipeline import joining  # noqa: PLC0415

        with self._step("join_asof", name) as draft:
            sides = joining.checked_sides(
                "join_asof", draft, _branch(right), on=on, left_on=left_on, right_on=right_on
            )
            node = joining.asof_of(
                name,
                sides,
                strategy=strategy,
                tolerance=tolerance,
                allow_exact_matches=allow_exact_matches,
                how=how,
                lateness=lateness,
                emit=emit,
                suffix=suffix,
            )
            if not node.is_eager:
                return pipeline_of(with_joined(sides.both, "join_asof", node))
            return pipeline_of(with_row_table(sides.both, node, joining.row_table_of(node)))

    @named
    def join_interval(
        self,
        name: str,
        right: Pipeline,
        /,
        *,
        on: Key | Sequence[Key] = None,
        left_on: Key | Sequence[Key] = None,
        right_on: Key | Sequence[Key] = None,
        within: tuple[str | int, str | int],
        how: Literal["inner", "left", "right", "full"] = "inner",
        lateness: str | int | None = None,
        emit: Literal["eager", "final"] | None = None,
        suffix: str = "_right",
    ) -> Pipeline:
        """Join each row with the rows of ``right`` with its keys that are near in event time.

        right: another branch of the pipeline. on: the key fields, of one name on both sides;
        left_on, right_on: of other names. A null key matches nothing. within: how far before and
        after a row its partners are, both included, such as ("-5s", "5s"). how: "inner" gives the
        pairs; "left", "right" and "full" also the rows of that side, or of both, without a partner,
        with nulls for the other one's fields but its keys. A record of which more than 10,000 rows
        would be made has none: it is counted among the rows that cannot be computed. lateness:
        how far below its watermark a row of either side still counts, "60s" by default; sides of
        rows that come by the watermark take none. emit: "final" gives a row with its partners, in
        their order, when neither it nor one of them can come any more. "eager" gives a table: a
        pair is there once both rows are read, a row without a partner until it has one, and each is
        final when "final" would give it; ``row_input``, ``row_offset``, ``row_index``,
        ``right_input``, ``right_offset`` and ``right_index`` are its key, "", 0 and 0 for a missing
        row. suffix: for fields of the right side with a name that the left side has; its keys are
        left out.
        """
        # Few pipelines have joins.
        from ripple.model.pipeline import joining  # noqa: PLC0415

        with self._step("join_interval", name) as draft:
            sides = joining.checked_sides(
                "join_interval", draft, _branch(right), on=on, left_on=left_on, right_on=right_on
            )
            node = joining.interval_of(
                name,
                sides,
                within=within,
                how=how,
                lateness=lateness,
                emit=emit,
                suffix=suffix,
            )
            both = sides.of_both(node.finals) if node.shows_right else sides.both
            if not node.is_eager:
                return pipeline_of(with_joined(both, "join_interval", node))
            return pipeline_of(with_row_table(both, node, joining.row_table_of(node)))

    @named
    def join(
        self,
        name: str,
        right: Pipeline | Constant,
        /,
        *,
        on: Key | Sequence[Key] = None,
        left_on: Key | Sequence[Key] = None,
        right_on: Key | Sequence[Key] = None,
        how: Literal["inner", "left", "right", "full"] = "inner",
        suffix: str = "_right",
    ) -> Pipeline:
        """Join the rows of two tables: results of folds, or tables from topics, of one pipeline.

        on: the fields of both sides that must be equal, or left_on and right_on where they are
        called otherwise. Where they are the whole key on both sides, each row has at most one
        partner, and ``how`` says whose rows without one are there, with nulls in the fields of the
        other side. Where they are the key on the right, rows of the left name one of the right,
        ``how`` is "inner" or "left", and a row has the key of the left. Where they are the key of
        neither, there is a row for each pair, with the keys of both, and, unless ``how`` is
        "inner", ``sides`` at their end: "both", or "left_only" and "right_only" for a row without a
        partner, which has "", 0 and False in the key of the other side. Null is never equal. A row
        has the key, the other fields of the left, then those of the right, with ``suffix`` where
        there is a field of that name.

        right: or an ``rp.constant(...)``. Then events are joined as well as rows of tables: each
        gets the fields of the row that its fields name, which are the whole key of the constant;
        one without such a row goes ("inner"), or has nulls there ("left").
        """
        # Few pipelines have joins.
        from ripple.model.pipeline.constant import Constant, constant_join_of  # noqa: PLC0415
        from ripple.model.pipeline.table_join import table_join_of  # noqa: PLC0415

        if isinstance(right, Constant):
            with self._step("join", name, allowed_as="derive") as draft:
                keys = {"on": on, "left_on": left_on, "right_on": right_on}
                step = constant_join_of(name, draft, right, **keys, how=how, suffix=suffix)
                return pipeline_of(with_step(draft, "derive", step, row=None))

        with self._step("join", name) as draft:
            other = _branch(right, "it joins")
            join = table_join_of(
                name,
                draft,
                other,
                on=on,
                left_on=left_on,
                right_on=right_on,
                how=how,
                suffix=suffix,
            )
            return pipeline_of(with_joined_tables(draft, other, join))

    @named
    def finals(self, name: str, /) -> Pipeline:
        """Make a stream of a fold's final rows: each enters it once its window is over.

        That is when the watermark has reached the window's end and the lateness after it. The
        event time of a row is ``window_end_ns`` - 1; rows of one time come in the order of their
        keys, after events of that time. None of them is late, so that windows of them end at once.
        """
        with self._step("finals", name) as draft:
            node = finals_of(name, draft)
            made: dict[str, Any] = {"finals": name, "origins": (name,), "row": None, "deleted": ""}
            return pipeline_of(with_stream(draft, "finals", node, is_held=False, fold=None, **made))

    @named
    def sink(
        self,
        name: str,
        /,
        *,
        topic: str | None = None,
        of: str | None = None,
        key: Key | Sequence[Key] = None,
    ) -> Pipeline:
        """Show the rows here: the events, or the result rows of the latest fold.

        of: another fold whose result rows are shown. Steps may go on behind a sink. A sink of
        events receives each once, in the order of its input. key: of events, the field, or fields,
        that a topic of Kafka gets as the key of a record; None for records without one. Result rows
        have the key of their fold.
        """
        with self._step("sink", name) as draft:
            output = output_of(name, draft, topic=topic, of=of, key=key)
            return pipeline_of(
                grown(draft, "sink", outputs=(*draft.outputs, output), is_open=False)
            )

    def also(self, other: Pipeline, /) -> Pipeline:
        """Return the pipeline with the steps of both branches, each of which ends with a sink.

        other: a branch of the same pipeline. Common steps are computed once.
        """
        with blaming("pipeline", self.name):
            draft, branch = self._draft, _branch(other, "also takes")
            check_ended(draft, branch)
            return pipeline_of(united(draft, branch))

    def migrate(
        self,
        fold: str,
        function: Callable[[pa.Table], pa.Table] | None = None,
        /,
        *,
        from_digest: str,
    ) -> Pipeline:
        """Say how the state of ``fold``, or of a scan, is made from the state of other code.

        function: takes the table that ``ripple checkpoint export`` shows, one row per key, and
        returns the fold's new one. Of a scan it may be left out: fields of the state are taken
        over by their names, and new ones have their defaults. from_digest: of the node that wrote
        it, as ``ripple plan --checkpoint-dir`` prints it; for any other checkpoint nothing happens.
        """
        # Few pipelines migrate.
        from ripple.model.pipeline.migration import migration_of  # noqa: PLC0415

        with blaming("migrate", fold):
            draft = self._draft
            migration = migration_of(draft, fold, function, from_digest)
            return pipeline_of(replace(draft, migrations=(*draft.migrations, migration)))

    def plan(self) -> Plan:
        """Return the validated plan; raises ``PlanError`` while the pipeline has no sink.

        Functions are fingerprinted now, with all that they read: see ``docs/changing.md``.
        """
        draft = self._draft
        if draft.is_open or not draft.sources:
            raise unfinished(draft)
        nodes = (draft.sources, draft.steps, draft.folds, draft.outputs)
        plan = Plan(draft.name, *nodes, draft.migrations)
        check_read(plan)
        return keyed(plan)

    def _repr_html_(self) -> str | None:
        """Return a picture for notebooks, None while a sink is missing."""
        try:
            return self.plan()._repr_html_()
        except PlanError:
            return None

    def __repr__(self) -> str:
        steps = " > ".join(name for _, name in self._draft.used)
        return f"<Pipeline {self.name!r}{': ' if steps else ''}{steps}>"

    if not TYPE_CHECKING:  # else a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to write a step of another library."""
            from ripple.model.other_names import no_attribute  # noqa: PLC0415 - only on errors

            raise no_attribute(self, name, "step")

    @contextmanager
    def _step(self, verb: str, name: str, allowed_as: str = "") -> Iterator[Draft]:
        """Check that the step may stand here; give the draft in the stage *before* the step.

        allowed_as: the verb of the steps that may stand where this one may, if it is another one.
        """
        with blaming(verb, name):
            draft = self._draft
            why_not = refusal(draft, allowed_as or verb)
            if why_not is not None:
                raise PlanError(why_not)
            check_name(name)
            yield draft.begun(name, verb)


def pipeline_of(draft: Draft) -> Pipeline:
    """Return the pipeline that has been written so far."""
    pipeline = Pipeline.__new__(Pipeline)
    pipeline._draft = draft
    return pipeline


def _branch(given: Any, beginning: str = "the right side is") -> Draft:
    """Return the draft of another branch. beginning: of the message for another object."""
    if not isinstance(given, Pipeline):
        raise PlanError(f"{beginning} another branch of the pipeline, not {shown(given)}")
    return given._draft
