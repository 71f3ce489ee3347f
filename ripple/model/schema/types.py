"""The closed set of field types, and the records made of them.

A value of a type, outside columns, is: ``str``, ``int``, ``float`` or ``bool``; for ``Opaque`` an
S-expression; for a logical type its stored value, a number or a text
(``ripple.model.schema.logical``); for ``Option`` None or the value; for ``List`` a list; for a
record a dict by field name, in which an absent optional field has no entry; for ``Variant`` a
tuple of the case's name and its arguments, such as ``("limit", 101.5)`` or ``("market",)``.

A schema or a record may be without fields, and a variant without cases: Ripple/OCaml writes such
ones, and a peer's must be readable. They cannot be declared, imported or filled with rows here.
"""

from __future__ import annotations

from operator import index
from typing import TypeAlias

from ripple.core.arguments import need_bool, need_text, need_whole, shown
from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen

# Far below Python's own recursion limit, so that code which walks a schema may simply recurse.
DEPTH_MAX = 48


@frozen
class String:
    """UTF-8 text."""


@frozen
class Int:
    """An integer of OCaml's native width: 63 bits on the wire, 64 in a column."""


@frozen
class Int64:
    """A 64-bit signed integer."""


@frozen
class Float:
    """An IEEE 754 double."""


@frozen
class Bool:
    """True or false."""


class Logical:
    """A logical type: columns store its values as 64-bit integers, or as texts.

    It is no number for that: a place without a rule for it refuses it. All else about such a type
    stands in ``ripple.model.schema.logical``.
    """

    __slots__ = ()


class LogicalText(Logical):
    """A logical type stored as texts, which sort like the values."""

    __slots__ = ()


@frozen
class Date(Logical):
    """A day of the Gregorian calendar from year 1 to 9999, stored as the days since 1970."""


@frozen
class DateTime(Logical):
    """An instant, stored as nanoseconds since 1970, UTC."""


@frozen
class PatternDate(Date):
    """A day that a source writes by a pattern. In no schema."""


@frozen
class PatternTime(DateTime):
    """An instant that a source writes by a pattern. In no schema."""


@frozen
class Uuid(LogicalText):
    """A UUID, stored as its 36 characters in lower case."""


@frozen
class Bytes(LogicalText):
    """Any bytes, stored as hexadecimal digits in lower case."""


@frozen
class HexBytes(Bytes):
    """Bytes that a source writes as hexadecimal digits and not in base64. In no schema."""


@frozen
class JsonText(LogicalText):
    """A text that a source may have as an array or an object of JSON. In no schema."""


PRECISION_MAX = 18  # digits, in a scaled integer of 64 bits
PRECISION_OTHERS = 38  # of decimals of 128 bits


@frozen
class Decimal(Logical):
    """Exact numbers of up to ``precision`` digits, ``scale`` of them behind the point.

    ``rp.col("price").cast(rp.Decimal(18, 4))`` in expressions, and for fields
    ``Annotated[decimal.Decimal, rp.Decimal(18, 4)]``. Stored as a count of 10 ** -scale. Of 19 to
    38 digits it is a ``WideDecimal``. Raises PlanError for more.
    """

    precision: int
    scale: int = 0

    def __new__(cls, precision: int = 1, scale: int = 0) -> Decimal:
        """Make the type for a number of digits."""
        try:
            digits = index(precision)
        except TypeError:  # refused below
            digits = 0
        if PRECISION_MAX < digits <= PRECISION_OTHERS:
            return WideDecimal(precision, scale)  # type: ignore[return-value]  # on purpose
        return object.__new__(cls)

    def __post_init__(self) -> None:
        _check_digits(self, 1)

    @classmethod
    def wide(cls, scale: int) -> Decimal:
        """Return the type of all numbers of 64 bits, of results: 19 digits, no WideDecimal.

        No field can be declared so: ``rp.Decimal(19, 4)`` has numbers beyond 64 bits.
        """
        found = cls(PRECISION_MAX, min(scale, PRECISION_MAX))
        object.__setattr__(found, "precision", PRECISION_MAX + 1)
        return found

    @classmethod
    def of(cls, precision: int, scale: int) -> Decimal:
        """Return the type with these, also as ``wide`` makes it. Raises PlanError."""
        is_wide = precision == PRECISION_MAX + 1 and scale <= PRECISION_MAX
        return cls.wide(scale) if is_wide else cls(precision, scale)

    def __str__(self) -> str:
        return f"rp.Decimal({self.precision}, {self.scale})"

    __repr__ = __str__


@frozen
class WideDecimal(LogicalText):
    """Decimals of 19 to 38 digits, as ``Decimal`` makes them. Raises PlanError for other ones.

    Stored as a text of 32 letters, which sorts like the numbers.
    """

    precision: int
    scale: int = 0

    def __post_init__(self) -> None:
        _check_digits(self, PRECISION_MAX + 1)

    def __str__(self) -> str:
        return f"rp.Decimal({self.precision}, {self.scale})"

    __repr__ = __str__


def _check_digits(kind: Decimal | WideDecimal, least: int) -> None:
    """Make the numbers of digits plain integers. Raises PlanError for numbers out of range."""
    precision = need_whole("rp.Decimal: precision", kind.precision, least, most=PRECISION_OTHERS)
    scale = need_whole("rp.Decimal: scale", kind.scale, 0, most=precision)
    object.__setattr__(kind, "precision", precision)
    object.__setattr__(kind, "scale", scale)


@frozen
class Dict(LogicalText):
    """Values of ``of`` by texts, the names; ``of`` is String, Int, Int64, Float or Bool.

    Stored as an object of JSON in canonical form. Raises SchemaError for another type of values.
    """

    of: FieldType

    def __post_init__(self) -> None:
        if not isinstance(self.of, (String, Int, Int64, Float, Bool)):
            raise SchemaError(
                f"a map has texts, integers, floats or truth values, not {shown(self.of)}"
            )


DECIMALS = (Decimal, WideDecimal)
"""The types of exact decimals, of either width."""

TEXTS = (String, LogicalText)
"""The types stored as texts."""

KEY_TYPES = (String, Int, Int64, Bool, Logical)
"""The types of keys: of two floats that are equal, the bits may differ."""

KEY_WORDS = "a text, an integer, a bool, a date, a time, a decimal, a UUID or bytes"
"""Those that a message proposes."""


@frozen
class Opaque:
    """A value known only by its S-expression (Ripple/OCaml's ``Sexp_opaque``)."""


@frozen
class Option:
    """A value of ``of``, or none."""

    of: FieldType


@frozen
class List:
    """Any number of values of ``of``."""

    of: FieldType


@frozen
class Record:
    """A nested record without a name of its own; the names of its fields are distinct."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        _check_members("a record", "field", Field, self.fields)


@frozen
class Case:
    """One alternative of a variant and its positional arguments."""

    name: str
    args: tuple[FieldType, ...] = ()


@frozen
class Variant:
    """Exactly one of several cases, their names distinct."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        _check_members("a variant", "case", Case, self.cases)


@frozen
class Ref:
    """A value of another schema, by name."""

    name: str


FieldType: TypeAlias = (
    String | Int | Int64 | Float | Bool | Logical | Opaque | Option | List | Record | Variant | Ref
)


@frozen
class Field:
    """A named member of a record; an optional one may be absent."""

    name: str
    type: FieldType
    optional: bool = False
    doc: str | None = None


@frozen
class Schema:
    """A record type: a name, a version of 1 or more, and fields.

    Field names are distinct and types nest at most ``DEPTH_MAX`` deep; raises
    SchemaError otherwise.
    """

    name: str
    fields: tuple[Field, ...]
    version: int = 1
    doc: str | None = None

    def __post_init__(self) -> None:
        need_text("the name of a schema", self.name, SchemaError)
        version = need_whole(f"schema {self.name}: the version", self.version, 1, SchemaError)
        object.__setattr__(self, "version", version)
        _check_doc(f"schema {self.name}", self.doc)
        _check_members(f"schema {self.name}", "field", Field, self.fields)
        for field in self.fields:
            _check_type(f"{self.name}.{field.name}", field.type)


def bare_type(kind: FieldType) -> FieldType:
    """Return the type of the values that are there: of an ``Option`` the type that it holds."""
    return kind.of if isinstance(kind, Option) else kind


def inner_types(kind: FieldType) -> tuple[FieldType, ...]:
    """Return the types that ``kind`` is directly made of."""
    if isinstance(kind, Option | List):
        return (kind.of,)
    if isinstance(kind, Record):
        return tuple(field.type for field in kind.fields)
    if isinstance(kind, Variant):
        return tuple(arg for case in kind.cases for arg in case.args)
    return ()


def _check_type(path: str, kind: FieldType) -> None:
    # Level by level: a type too deep for the limit must not exhaust the stack first.
    level: tuple[FieldType, ...] = (kind,)
    for _ in range(DEPTH_MAX):
        for inner in level:
            if not isinstance(inner, FieldType):
                raise SchemaError(f"{path}: the type must be a field type, not {shown(inner)}")
        level = tuple(part for inner in level for part in inner_types(inner))
        if not level:
            return
    raise SchemaError(
        f"{path}: nested deeper than {DEPTH_MAX} (DEPTH_MAX); give the inner part a schema of "
        "its own and refer to it"
    )


def _check_members(owner: str, member: str, kind: type, members: tuple[Field | Case, ...]) -> None:
    if not isinstance(members, tuple) or not all(isinstance(one, kind) for one in members):
        raise SchemaError(
            f"{owner}: {member}s must be a tuple of {kind.__name__}s, not {shown(members)}"
        )
    seen: set[str] = set()
    for one in members:
        need_text(f"the name of a {member} of {owner}", one.name, SchemaError)
        if one.name in seen:
            raise SchemaError(f"{owner} has two {member}s named {one.name!r}; rename one")
        seen.add(one.name)
        if isinstance(one, Field):
            need_bool(f"{owner}: optional of {one.name!r}", one.optional, SchemaError)
            _check_doc(f"{owner}.{one.name}", one.doc)
        elif not isinstance(one.args, tuple):
            raise SchemaError(
                f"{owner}: args of {one.name!r} must be a tuple of types, not {shown(one.args)}"
            )


def _check_doc(owner: str, doc: object) -> None:
    if doc is not None and not (isinstance(doc, str) and not doc):
        need_text(f"{owner}: doc", doc, SchemaError)
