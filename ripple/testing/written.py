"""Events with times and other values as their source writes them: as texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import InputError
from ripple.model.pipeline.input_names import is_answers, source_of
from ripple.model.schema.checks import form_of, formless
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import Logical, Option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import FieldType

    Reader = Callable[[str], Any]

Happened = TypeVar("Happened")


def read(plan: Plan, events: Iterable[tuple[str, Happened]]) -> Iterator[tuple[str, Happened]]:
    """Yield events, each with its input, with texts read by the form of their field.

    So events may be as the source writes them, or have the values: a number of an ``rp.Timestamp``
    is nanoseconds, whatever the form. Other things that happen pass. Raises InputError for a text
    that the form does not have.
    """
    readers: dict[str, dict[str, Reader]] = {}
    for name, event in events:
        if isinstance(event, Mapping) and not is_answers(name):
            if name not in readers:
                readers[name] = _readers(source_of(plan, name))
            yield name, _read(event, readers[name])
        else:
            yield name, event


def without_forms(plan: Plan) -> Plan:
    """Return the same plan with sources of values, not of texts in a form."""
    return replace(
        plan,
        sources=tuple(
            replace(one, checks={name: formless(of) for name, of in one.checks.items()})
            for one in plan.sources
        ),
    )


def _readers(source: SourceSpec) -> dict[str, Reader]:
    found = {}
    for member in source.fields:
        kind = member.type.of if isinstance(member.type, Option) else member.type
        form = form_of(kind, source.checks.get(member.name))
        if form is not None:
            found[member.name] = _reader(member.name, kind, form)
    return found


def _reader(field: str, kind: FieldType, form: Any) -> Reader:
    def value_of(text: str) -> Any:
        stored, misfits = form.parsed(pa.array([text], pa.string()))
        if misfits[0]:
            raise InputError(f"of an event, {field} {form.words}, but {shown(text)}")
        found = stored[0].as_py()
        return rule_of(kind).value(found) if isinstance(kind, Logical) else found

    return value_of


def _read(event: Any, readers: Mapping[str, Reader]) -> Any:
    texts = {
        name: reader(event[name])
        for name, reader in readers.items()
        if isinstance(event.get(name), str)
    }
    return {**event, **texts} if texts else event
