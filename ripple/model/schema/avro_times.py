"""Units of Avro's numbers: moments, dates and others; also those of Kafka Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.schema.document import Json

_SECOND_NS = 1_000_000_000
DAY_NS = 86_400 * _SECOND_NS
_MOMENTS = {"millis": _SECOND_NS // 1000, "micros": _SECOND_NS // 1_000_000, "nanos": 1}
_NUMBERS = ("int", "long", "float", "double")

# Nanoseconds in one of the unit, by the type and the name of what counts from 1970 on. Kafka
# Connect and Debezium give names of their own, besides Avro's or instead.
TICKS_NS: dict[tuple[str, str], int] = {
    **{("long", f"timestamp-{unit}"): ns for unit, ns in _MOMENTS.items()},
    **{("long", f"local-timestamp-{unit}"): ns for unit, ns in _MOMENTS.items()},
    ("int", "date"): DAY_NS,
    ("long", "org.apache.kafka.connect.data.Timestamp"): _MOMENTS["millis"],
    ("int", "org.apache.kafka.connect.data.Date"): DAY_NS,
    ("long", "io.debezium.time.Timestamp"): _MOMENTS["millis"],
    ("long", "io.debezium.time.MicroTimestamp"): _MOMENTS["micros"],
    ("long", "io.debezium.time.NanoTimestamp"): 1,
    ("int", "io.debezium.time.Date"): DAY_NS,
}
_NAMES_OF_UNITS = ("io.debezium.time.", "org.apache.kafka.connect.data.")
_PLAIN = ("io.debezium.time.Year",)  # a number like any other


def unit_of(node: Json) -> tuple[str, str] | None:
    """Return the type and the name of the unit of a type's numbers, None without one."""
    if not isinstance(node, dict) or node.get("type") not in _NUMBERS:
        return None
    kind, logical, other = str(node["type"]), node.get("logicalType"), node.get("connect.name")
    if logical is not None:
        return kind, str(logical)
    return (kind, str(other)) if is_named_unit(other) else None


def is_named_unit(name: Json) -> bool:
    """Whether a name is Kafka Connect's or Debezium's for a unit of numbers, in any format."""
    return isinstance(name, str) and name.startswith(_NAMES_OF_UNITS) and name not in _PLAIN


def check_unit(node: Mapping[str, Json], path: str) -> None:
    """Raise SchemaError unless numbers are plain ones or nanoseconds."""
    unit = unit_of(node)
    if unit is not None and TICKS_NS.get(unit) != 1:
        kind, name = unit
        raise SchemaError(
            f"{path}: the unit {name!r} of {kind} is none of ours: timestamps are nanoseconds "
            "since 1970, a long of timestamp-nanos; other numbers are plain ones"
        )


def in_nanoseconds(kind: Json) -> tuple[Json, int]:
    """Return a type, with a plain long where it is a moment or a date, and nanoseconds in its unit.

    Those are 1 where nothing has to be converted. Moments in a union with null are looked at as
    well, those within arrays and records are not.
    """
    if isinstance(kind, list):
        members = [in_nanoseconds(member) for member in kind]
        units = [ns for member, ns in members if member not in ("null", {"type": "null"})]
        return ([member for member, _ in members], units[0]) if len(units) == 1 else (kind, 1)
    if isinstance(kind, dict) and isinstance(kind.get("type"), (dict, list)):
        inner, ns = in_nanoseconds(kind["type"])
        return ({"type": inner}, ns) if inner != kind["type"] else (kind, 1)
    unit = unit_of(kind)
    if unit is None or unit not in TICKS_NS:
        return kind, 1
    return "long", TICKS_NS[unit]


def without_units(node: Json) -> Json:
    """Return a schema that reads values as written, and not as a library's objects."""
    if isinstance(node, list):
        return [without_units(member) for member in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value if key in ("default", "doc", "symbols") else without_units(value)
        for key, value in node.items()
        if key != "logicalType"
    }
