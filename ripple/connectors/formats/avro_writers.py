"""How Avro records are read by the schema that their writer registered."""

from __future__ import annotations

import json
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from ripple.connectors.coercion import TYPED_TIME
from ripple.connectors.formats.avro_columns import KINDS
from ripple.connectors.formats.avro_decimals import scale_of, text_of
from ripple.connectors.formats.avro_types import bare_type, inner_record, type_name
from ripple.connectors.formats.framed import unreadable
from ripple.core.errors import SchemaError
from ripple.core.extras import needed
from ripple.model.schema.avro import from_avro
from ripple.model.schema.avro_times import DAY_NS, in_nanoseconds, without_units
from ripple.model.schema.logical.columns import text_of_number
from ripple.model.schema.nested import NESTED_DEPTH_MAX, flattened
from ripple.model.schema.types import DECIMALS, Date, Dict, Int, List, Logical, LogicalText

with needed("avro", "format=avro of a kafka: URI"):
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ripple.connectors.formats.registry import Registered
    from ripple.connectors.record_shape import RecordShape
    from ripple.model.schema.types import FieldType, Schema

FORM = "AVRO"
FIELDS_MAX = 512


def is_of(kind: Logical | List, ticks_ns: int) -> TypeGuard[Logical]:
    """Tell whether numbers of a unit are values of a logical type: days dates, others times."""
    return not isinstance(kind, List) and (ticks_ns == DAY_NS) == isinstance(kind, Date)


class Writer(NamedTuple):
    """How records of a registered schema are read.

    why_not: why they cannot be; "" if they can. fields: as ``decode`` takes them, None where they
    are read one by one. names: of all fields, in order. ticks_ns: of those fields that are moments
    or dates, how many nanoseconds their unit has. scales: of those that are decimals in bytes.
    parsed: for fastavro.
    """

    why_not: str
    fields: Sequence[tuple[int, int, bool]] | None = None
    names: Sequence[str] = ()
    ticks_ns: Mapping[str, int] = MappingProxyType({})
    scales: Mapping[str, int] = MappingProxyType({})
    parsed: Any = None

    def to_ns(self, row: Any, logical: Mapping[str, Logical | List] = MappingProxyType({})) -> None:
        """Turn the moments of a row, if it is one, into nanoseconds, dates and decimals into texts.

        logical: has the dates; a day beyond the calendar becomes its digits.
        """
        for name, ticks_ns in (*self.ticks_ns.items(), *self.scales.items()):
            *around, last = name.split(".")
            inner = row
            for part in around:
                inner = inner.get(part) if isinstance(inner, dict) else None
            if not isinstance(inner, dict) or inner.get(last) is None:
                continue
            if name in self.scales:
                read = partial(text_of, scale=ticks_ns)
            else:
                read = partial(_moment, ticks_ns=ticks_ns, of=_declared(logical.get(name)))
            value = inner[last]
            inner[last] = [*map(read, value)] if isinstance(value, list) else read(value)


def _moment(number: Any, ticks_ns: int, of: FieldType | None) -> Any:
    """Return a moment or a date as nanoseconds, or as a text of its type."""
    if isinstance(of, Logical) and is_of(of, ticks_ns):
        return text_of_number(number * (1 if ticks_ns == DAY_NS else ticks_ns), of)
    return number * ticks_ns if isinstance(number, int) else number


def understood(text: str, shape: RecordShape) -> Schema:
    """Return an Avro schema with those of its fields that the shape has."""
    return understood_in(document_of(text), shape)


def document_of(text: str) -> Any:
    """Return a schema that fastavro takes; raises SchemaError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError("it is no JSON") from error
    try:
        parsed_in(document)
    except SchemaError as error:
        raise SchemaError(f"it is no Avro schema: {error}") from error
    return document


def understood_in(document: Any, shape: RecordShape) -> Schema:
    """Return a record's schema with only the fields that the shape has."""
    if not isinstance(document, dict) or document.get("type") != "record":
        raise SchemaError("it is no Avro record")
    fields = _wanted_of(
        document.get("fields"), known_in(shape), records_in(document), logical=shape.logical
    )
    return flattened(from_avro({**document, "fields": fields}, name=shape.schema.name))


def writer_of(found: Registered, shape: RecordShape) -> Writer:
    """Return how records of a schema are read as ``shape``."""
    why = unreadable(found, FORM, shape, understood)
    if why:
        return Writer(f"schema {found.id}: {why}")
    document = json.loads(found.text)
    plain, parsed = parsed_in(document)
    known = known_in(shape)
    kinds = {name: _kind(kind) for name, kind in _leaves(plain["fields"], records_in(plain))}
    flat = [
        (kind, null_at, name in known)
        for name, (kind, null_at) in kinds.items()
        if kind is not None
    ]
    fields = flat if len(flat) == len(kinds) <= FIELDS_MAX else None
    wanted = _wanted_of(document["fields"], known, records_in(document), keeps_units=True)
    ticks_ns = ticks_of(wanted, shape.logical)
    for name in sorted(shape.units & ticks_ns.keys()):
        return Writer(f"schema {found.id}: field {name!r} is {TYPED_TIME}")
    return Writer("", fields, list(kinds), ticks_ns, scales_of(wanted, shape.logical), parsed)


def ticks_of(
    fields: Iterable[Any], logical: Mapping[str, Logical | List] = MappingProxyType({})
) -> dict[str, int]:
    """Return the nanoseconds of a tick of each field that is a moment or a date, by path.

    Lists of these are among them if their items are declared as times or dates.
    """
    found: dict[str, int] = {}
    for path, kind, _ in _values_in(fields, logical):
        plain, ns = in_nanoseconds(kind)
        if plain != kind:
            found[path] = ns
    return found


def scales_of(fields: Iterable[Any], logical: Mapping[str, Logical | List]) -> dict[str, int]:
    """Return the scale of each field that is a decimal in bytes, and is read as one, by path."""
    return {
        path: scale
        for path, kind, declared in _values_in(fields, logical)
        if isinstance(declared, DECIMALS) and (scale := scale_of(kind)) is not None
    }


def _values_in(
    fields: Iterable[Any], logical: Mapping[str, Logical | List], at: str = ""
) -> Iterator[tuple[str, Any, FieldType | None]]:
    """Yield the path, the type of Avro and the declared type of each field that is no record.

    Of a list these are the types of its items, but for plain integers the list's type of Avro.
    """
    for field in fields:
        inner, path = inner_record(field["type"], {}), f"{at}{field['name']}"
        if inner is not None:
            yield from _values_in(inner["fields"], logical, f"{path}.")
            continue
        kind, declared = field["type"], _declared(logical.get(path))
        if isinstance(logical.get(path), List) and not isinstance(declared, Int):
            bare = bare_type(kind)
            kind = bare.get("items") if isinstance(bare, dict) else kind
        yield path, kind, declared


def _declared(of: Logical | List | None) -> FieldType | None:
    """Return a declared type, of a list that of its items."""
    return of.of if isinstance(of, List) else of


def known_in(shape: RecordShape) -> set[str]:
    """Return the fields of a shape that a schema without dots in names may have, and paths."""
    names = (member.name for member in shape.schema.fields)
    return {name for name in names if "." not in name or name in shape.paths}


def records_in(document: Any) -> dict[str, Any]:
    """Return the records that a schema defines, by their names without namespaces."""
    found: dict[str, Any] = {}
    left = [document]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
        elif isinstance(node, dict):
            if node.get("type") == "record" and isinstance(node.get("name"), str):
                found.setdefault(node["name"].rpartition(".")[2], node)
            left += [*node.values()]
    return found


def _wanted_of(
    fields: Any,
    known: set[str],
    records: Mapping[str, Any],
    at: str = "",
    *,
    keeps_units: bool = False,
    logical: Mapping[str, Logical | List] = MappingProxyType({}),
) -> list[Any]:
    """Return the fields of a schema that are known by their paths, with all types in place.

    logical: of which the values become texts, see ``RecordShape``.
    """
    found = []
    for field in fields or ():
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            continue
        path, kind = f"{at}{field['name']}", field.get("type")
        if path in known:
            plain, ns = in_nanoseconds(kind)
            of = logical.get(path)
            is_decimal = isinstance(of, DECIMALS)
            is_bytes = (is_decimal and scale_of(kind) is not None) or (
                isinstance(of, LogicalText) and type_name(kind) in ("bytes", "fixed")
            )
            if (
                is_bytes
                or (isinstance(of, List) and type_name(kind) == "array")
                or (isinstance(of, Dict) and type_name(kind) == "map")
                or (of is not None and is_of(of, ns) and plain != kind)
            ):
                plain = ["null", "string"] if isinstance(kind, list) else "string"
            kept = kind if keeps_units else plain
            found.append({**field, "type": kept})
        elif any(name.startswith(f"{path}.") for name in known):
            inner = inner_record(kind, records)
            if inner is None:
                found.append(field)  # which is of another type, as the comparison says
                continue
            within = _wanted_of(
                inner.get("fields"),
                known,
                records,
                f"{path}.",
                keeps_units=keeps_units,
                logical=logical,
            )
            # A name of its own, for one that is used twice is here twice.
            made = {"type": "record", "name": path.replace(".", "__"), "fields": within}
            found.append({**field, "type": ["null", made] if isinstance(kind, list) else made})
    return found


def _leaves(
    fields: Iterable[Any], records: Mapping[str, Any], at: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield all fields of a writer and their types, in the order of their bytes.

    The bytes of an inner record are those of its fields, one after the other. A record in a union
    is left as it is: the number of its type comes before it.
    """
    for field in fields:
        inner = None if isinstance(field["type"], list) else inner_record(field["type"], records)
        if inner is None or depth == NESTED_DEPTH_MAX:
            yield f"{at}{field['name']}", field["type"]
        else:
            yield from _leaves(inner["fields"], records, f"{at}{field['name']}.", depth + 1)


def parsed_in(document: Any) -> tuple[Any, Any]:
    """Return a schema without units, and as fastavro takes it. Raises SchemaError."""
    try:
        plain: Any = without_units(document)
        return plain, fastavro.parse_schema(plain)
    except (
        SchemaParseException,
        UnknownType,
        ValueError,
        LookupError,
        TypeError,
        RecursionError,
    ) as error:
        raise SchemaError(str(error)) from error


def _kind(given: Any) -> tuple[int | None, int]:
    """Return the name of a type in ``decode``, and which member of its union null is."""
    null_at = -1
    if isinstance(given, list):
        if len(given) != 2 or "null" not in given:
            return None, -1
        null_at = given.index("null")
        given = given[1 - null_at]
    if isinstance(given, dict):
        given = given.get("type")
    kind = KINDS.get(given) if isinstance(given, str) else None
    if kind == KINDS["null"] and null_at >= 0:
        return None, -1
    return kind, null_at
