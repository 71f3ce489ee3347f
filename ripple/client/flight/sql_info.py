"""Capabilities of the server: SqlInfo, by its numbers, and the types of values.

Drivers ask for all of them first, and some fail if a number is absent
(https://arrow.apache.org/docs/format/FlightSql.html).
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STATEMENT_BYTES_MAX = 1 << 16
STATEMENTS_MAX = 2  # concurrent queries: each is a process that uses a core


class Bits(int):
    """An int32: a bit set, or one choice of several."""


Value: TypeAlias = "str | bool | int | Bits | list[str]"
_CASE_INSENSITIVE, _NULLS_AT_END, _FULL_OUTER_JOINS = Bits(1), Bits(3), Bits(2)
_FORWARD_ONLY, _READ_ONLY = Bits(0b10), Bits(0b10)
_ABOUT: dict[int, Value] = {
    0: "Ripple",
    1: version("ripple-stream"),
    2: str(pa.__version__),
    3: True,  # is read-only
    4: True,  # answers SQL
    5: False,  # answers Substrait,
    6: "",  # from this version of it
    7: "",  # to this one
    8: Bits(0),  # begins no transactions
    9: False,  # cancels nothing: a client that disconnects is noticed
    100: Bits(0),  # handles do not expire
    101: Bits(0),
    **dict.fromkeys((500, 501, 502), False),  # creates no catalogues, schemas, tables
    503: _CASE_INSENSITIVE,
    504: '"',  # what names are quoted by
    505: _CASE_INSENSITIVE,  # quoted ones, too
    506: True,  # all tables can be selected from
    507: _NULLS_AT_END,
    **{number: list[str]() for number in range(508, 513)},  # keywords and functions of its own
    513: "\\",
    514: "",  # more characters of names that are not quoted
    515: True,  # AS of columns
    516: True,  # null and something is null
    518: True,  # AS of tables,
    519: False,  # which may be the names of others
    520: True,  # ORDER BY expressions,
    521: True,  # and by what is not selected
    522: Bits(0b11),  # so GROUP BY
    523: True,  # LIKE ... ESCAPE
    524: True,  # columns that are never null
    525: Bits(0b111),  # ODBC's grammar: minimum, core, extended
    526: Bits(0b111),  # that of 1992: entry, intermediate, full
    527: False,  # no integrity is checked
    528: _FULL_OUTER_JOINS,
    529: "schema",
    530: "procedure",
    531: "catalog",
    532: True,  # which comes first
    **dict.fromkeys((533, 534, 535), Bits(0)),  # where names may stand; what cursors may change
    536: False,  # FOR UPDATE
    537: False,  # procedures
    538: Bits(0b1111),  # subqueries: compared, in EXISTS, in IN, quantified
    539: True,  # that refer to what is outside
    540: Bits(0b11),  # UNION, UNION ALL
    **dict.fromkeys(range(541, 556), 0),  # lengths and counts without a limit of their own
    556: True,  # large values count in a row's size
    557: STATEMENT_BYTES_MAX,
    558: STATEMENTS_MAX,
    559: 0,
    560: 0,
    561: 0,
    562: 0,  # no isolation, for there are
    563: False,  # no transactions
    564: Bits(0b1),
    565: False,
    566: False,
    567: _FORWARD_ONLY,
    568: _READ_ONLY,
    569: _READ_ONLY,
    570: Bits(0),
    571: Bits(0),
    **dict.fromkeys((572, 573, 574), False),  # updates in batches, savepoints, parameters by name
    575: True,  # large values that are read are copies
    576: False,
}
_CONVERTS = 517
_UNION = (
    pa.field("string_value", pa.string()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.string())),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)
_PLACES: dict[type, int] = {str: 0, bool: 1, int: 2, Bits: 3, list: 4, dict: 5}
SCHEMA = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union(_UNION), nullable=False),
    ]
)


def about(wanted: Sequence[int]) -> pa.Table:
    """Return these capabilities, all if there are no numbers."""
    known: dict[int, Any] = {**_ABOUT, _CONVERTS: {}}  # see CAST
    chosen = {n: known[n] for n in sorted(known) if not wanted or n in wanted}
    places = [_PLACES[type(value)] for value in chosen.values()]
    children: list[pa.Array] = []
    offsets = [0] * len(places)
    for place, field in enumerate(_UNION):
        rows = [row for row, its in enumerate(places) if its == place]
        for offset, row in enumerate(rows):
            offsets[row] = offset
        children.append(pa.array(_values(chosen.values(), place), field.type))
    union = pa.UnionArray.from_dense(
        pa.array(places, pa.int8()),
        pa.array(offsets, pa.int32()),
        children,
        [field.name for field in _UNION],
    )
    return pa.Table.from_arrays([pa.array(chosen, pa.uint32()), union], schema=SCHEMA)


def _values(chosen: Iterable[Any], place: int) -> list[Any]:
    found = [value for value in chosen if _PLACES[type(value)] == place]
    return [list(value.items()) for value in found] if place == _PLACES[dict] else found


class _Type(NamedTuple):
    """A type of values, as in ODBC and JDBC. size: digits, bits or characters."""

    name: str
    number: int
    size: int | None = None
    radix: int | None = None
    quote: str | None = None
    subcode: int | None = None


_DATETIME = 9
_TYPES = (
    _Type("TINYINT", -6, 3, 10),
    _Type("BIGINT", -5, 19, 10),
    _Type("BLOB", -3, quote="'"),
    _Type("DECIMAL", 3, 38, 10),
    _Type("INTEGER", 4, 10, 10),
    _Type("SMALLINT", 5, 5, 10),
    _Type("FLOAT", 7, 24, 2),
    _Type("DOUBLE", 8, 53, 2),
    _Type("VARCHAR", 12, quote="'"),
    _Type("BOOLEAN", -7, 1),
    _Type("DATE", 91, 10, quote="'", subcode=1),
    _Type("TIME", 92, 15, quote="'", subcode=2),
    _Type("TIMESTAMP", 93, 26, quote="'", subcode=3),
)
_NULLABLE, _SEARCHABLE = 1, 3
TYPES_SCHEMA = pa.schema(
    [
        pa.field("type_name", pa.string(), nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.string()),
        pa.field("literal_suffix", pa.string()),
        pa.field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.string()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)


def types(number: int | None) -> list[tuple[Any, ...]]:
    """Return the rows of ``TYPES_SCHEMA``, of one type or of all."""
    return [
        (
            *(one.name, one.number, one.size, one.quote, one.quote, None, _NULLABLE),
            *(one.name == "VARCHAR", _SEARCHABLE, False if one.radix else None, False),
            *(False if one.radix else None, one.name, None, None),
            *(one.number if one.subcode is None else _DATETIME, one.subcode, one.radix, None),
        )
        for one in sorted(_TYPES, key=lambda one: (one.number, one.name))
        if number in (None, one.number)
    ]
