"""The given history of a pipeline's sources.

A table needs none. Its topic holds the newest record of each key by offset, and files have no
offsets, so the run after the backfill reads it from its first record, as any run does: with the
history of the events in its state it is, at each cut, where it would be without a backfill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.core.named_uris import name_and_uri
from ripple.spark.portions import sources_at
from ripple.task.arguments import sources_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Sources

A_DATAFRAME = "a DataFrame"
"""The place of a DataFrame in a receipt."""


def history_at(history: Any, plan: Plan, live: Any, *, header: bool = False) -> Sources:
    """Return the shares of the history of all sources of events.

    history, live: the URI of the one source, or URIs by source. Raises InputError, also for a
    table with another history than its topic.
    """
    found = sources_at(_whole(plan, history, live), plan, header=header, files_apart=True)
    tables = _tables(plan)
    return replace(found, each=tuple(one for one in found.each if one.name not in tables))


def history_texts(plan: Plan, given: Sequence[str], live: Mapping[str, str]) -> list[str]:
    """Add the topics of tables, as their history, to ``[SOURCE=]URI`` texts."""
    named = {name_and_uri(text)[0] for text in given}
    return [*given, *(f"{name}={live[name]}" for name in _tables(plan) if name not in named)]


def noted(plan: Plan, given: Any, live: Any) -> str | dict[str, str]:
    """Return the URI of the one source, or URIs by source. Raises InputError."""
    places = dict(sources_of(plan, _whole(plan, given, live)))
    (only,) = places.values() if len(places) == 1 else (places,)
    return only


def _whole(plan: Plan, history: Any, live: Any) -> Any:
    tables, places = _tables(plan), sources_of(plan, live)
    if len(tables) == len(plan.sources):
        raise InputError(
            f"{plan.name} reads tables alone, and a topic holds its table: there is no history "
            "to backfill. Let it begin from the topic, with ripple run"
        )
    if not tables or not isinstance(history, Mapping):
        return history
    for name in tables:
        if history.get(name, places[name]) != places[name]:
            raise InputError(
                f"{name} is a table: offsets tell the newest record of a key, its topic "
                f"{places[name]} holds it, and the run reads it from its first record. Give no "
                "history for it"
            )
    return {**history, **{name: places[name] for name in tables}}


def _tables(plan: Plan) -> list[str]:
    return [source.name for source in plan.sources if source.table is not None]
