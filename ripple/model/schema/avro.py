"""Schemas as Avro schemas (specification 1.12), and back where the types allow.

=====================  =====================================================================
field type             Avro
=====================  =====================================================================
``String``, ``Bool``   ``string``, ``boolean``
``Int``, ``Int64``     ``long``; an attribute marks ``Int``
``Date``               ``int`` of the logical type ``date``, with such an attribute
``DateTime``           ``long`` of the logical type ``timestamp-nanos``, likewise
``Uuid``               ``string`` of the logical type ``uuid``, likewise
``Bytes``              ``bytes``
``Decimal``            ``bytes`` of the logical type ``decimal``, likewise
``Dict``               ``map``, likewise
``Float``              ``double``
``Opaque``             ``string`` of the S-expression; an attribute marks it
``Option``             union with ``null``
``List``               ``array``
``Record``             ``record``, named after its path
``Variant``            ``enum`` if no case has arguments; otherwise a union of one ``record``
                       per case, an attribute naming the case
``Ref``                the name of the schema itself; Avro has no reference out of a document
=====================  =====================================================================

An optional field is a union with ``null`` and the default ``null``; attributes are extra keys,
which Avro readers ignore. ``from_avro(to_avro(s)) == s``. Other people's schemas may also use
``int`` (``Int``), ``float``, and unions, with cases named after the members' types. A
number has no logical type but nanoseconds since 1970: another unit is refused by its name. Their
decimals and maps are read, and other logical types count as the type below them. Namespaces are
dropped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ripple.core.errors import PlanError, SchemaError
from ripple.core.sexp import dumps
from ripple.model.schema.avro_times import check_unit
from ripple.model.schema.document import (
    Bounds,
    Document,
    Json,
    build,
    excerpt,
    list_of,
    map_of,
    parse,
    refuse_empty,
    text_of,
    version_of,
)
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.notation import marked, type_to_sexp
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Case,
    Decimal,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SCALARS: dict[FieldType, Json] = {
    String(): "string",
    Int(): {"type": "long", "ripple.type": "Int"},
    Int64(): "long",
    Float(): "double",
    Bool(): "boolean",
    Opaque(): {"type": "string", "ripple.type": "Opaque"},
}
_PRIMITIVES: dict[str, FieldType] = {
    "string": String(),
    "int": Int(),
    "long": Int64(),
    "float": Float(),
    "double": Float(),
    "boolean": Bool(),
    "bytes": Bytes(),
}
_MARKED: dict[tuple[str, str], FieldType] = {
    ("long", "Int"): Int(),
    ("string", "Opaque"): Opaque(),
}
_ADVICE = {
    "fixed": "use bytes",
    "map": "say the type of its values",
    "null": "null alone is not a type of values",
}


def to_avro(schema: Schema) -> dict[str, Json]:
    """Return the Avro schema as parsed JSON.

    Raises SchemaError naming a field with a name that Avro does not allow, that refers to another
    schema, or that has two kinds of null: an option of an option, or an optional field of an
    option.
    """
    refuse_empty(schema.name, "schema", schema.fields)
    record = _Writer(schema.name).record(schema.name, schema.fields, schema.name)
    return {**record, "ripple.version": schema.version, **_documented(schema.doc)}


class _Writer:
    """One export: keeps the names of its records and enums apart."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._taken: set[str] = set()

    def record(self, name: str, fields: tuple[Field, ...], path: str) -> dict[str, Json]:
        return {
            "type": "record",
            "name": self._unique(_checked_name(name, path)),
            "fields": [self._field(field, f"{path}.{field.name}", name) for field in fields],
        }

    def _field(self, field: Field, path: str, owner: str) -> dict[str, Json]:
        name = _checked_name(field.name, path)
        kind = self._type(field.type, path, f"{owner}_{name}")
        if field.optional and isinstance(field.type, Option):
            raise SchemaError(f"{path}: an optional field of an option has two kinds of null")
        if field.optional:
            return {
                "name": name,
                "type": _nullable(kind),
                "default": None,
                **_documented(field.doc),
            }
        return {"name": name, "type": kind, **_documented(field.doc)}

    def _type(self, kind: FieldType, path: str, name: str) -> Json:
        match kind:
            case Option(Option()):
                raise SchemaError(f"{path}: an option of an option has two kinds of null")
            case Option():
                return _nullable(self._type(kind.of, path, name))
            case List():
                return {"type": "array", "items": self._type(kind.of, f"{path}[]", name)}
            case Record():
                refuse_empty(path, "record", kind.fields)
                return self.record(name, kind.fields, path)
            case Variant() if any(case.args for case in kind.cases):
                return [self._case(case, path, name) for case in kind.cases]
            case Variant():
                refuse_empty(path, "variant", kind.cases)
                symbols = [_checked_name(case.name, path) for case in kind.cases]
                return {"type": "enum", "name": self._unique(name), "symbols": symbols}
            case Ref():
                if kind.name != self._root:
                    raise SchemaError(f"{path}: Avro cannot refer to {kind.name!r}, another schema")
                return kind.name
            case Logical():
                return {**rule_of(kind).avro, "ripple.type": dumps(type_to_sexp(kind))}
            case _:
                return _SCALARS[kind]

    def _case(self, case: Case, path: str, name: str) -> dict[str, Json]:
        path, name = f"{path}.{case.name}", f"{name}_{_checked_name(case.name, path)}"
        arguments = [Field(f"arg{index}", arg) for index, arg in enumerate(case.args)]
        return {**self.record(name, tuple(arguments), path), "ripple.case": case.name}

    def _unique(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._taken:
            count += 1
            candidate = f"{name}_{count}"
        self._taken.add(candidate)
        return candidate


def _nullable(kind: Json) -> list[Json]:
    return ["null", *(kind if isinstance(kind, list) else [kind])]


def _checked_name(name: str, path: str) -> str:
    if not _NAME.fullmatch(name):
        raise SchemaError(f"{path}: {name!r} is no name in Avro: letters, digits and _ only")
    return name


def _documented(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"doc": doc}


def from_avro(document: Document, *, name: str | None = None, version: int | None = None) -> Schema:
    """Return the schema of an Avro record, given as text or parsed.

    ``name`` replaces the record's, ``version`` its ``ripple.version``. Raises
    SchemaError naming the field that cannot be expressed, and for documents
    beyond the limits of :mod:`ripple.model.schema.document`.
    """
    root = parse(document)
    if not isinstance(root, dict) or root.get("type") != "record":
        raise SchemaError(f"an Avro schema for events is a record, not {excerpt(root)}")
    own = _short_name(root, "the document")
    kind = _Reader(own, name or own).kind(root, name or own, 0)
    assert isinstance(kind, Record)
    return Schema(
        name or own,
        kind.fields,
        version_of(root, "ripple.version", own) if version is None else version,
        text_of(root, "doc", own),
    )


class _Reader:
    """One import: knows the named types met so far, and the enclosing ones."""

    def __init__(self, root: str, name: str) -> None:
        self._root, self._name = root, name
        self._defined: dict[str, dict[str, Json]] = {}
        self._inside: list[str] = []
        self._bounds = Bounds()

    def kind(self, node: Json, path: str, depth: int) -> FieldType:
        self._bounds.visit(path, depth)
        match node:
            case str():
                return self._named(node, path, depth)
            case list():
                return self._union(node, path, depth)
            case {"type": "record"}:
                return self._record(node, path, depth)
            case {"type": "enum"}:
                self._define(node, path)
                symbols = list_of(node, "symbols", path)
                return build(path, Variant, tuple(Case(_text(each, path)) for each in symbols))
            case {"type": str() as name, "ripple.type": str() as mark} if (name, mark) in _MARKED:
                return _MARKED[name, mark]
            case {"type": str() as name, "ripple.type": str() as mark} if (
                kind := marked(mark)
            ) is not None and rule_of(kind).avro["type"] == name:
                return kind
            case {"type": "array", "items": of} | {"type": "map", "values": of}:
                return self._of_many(node["type"], of, path, depth)
            case {"type": "bytes", "logicalType": "decimal"}:
                return _decimal(node, path)
            case {"type": inner} if inner not in ("array", *_ADVICE):
                check_unit(node, path)
                return self.kind(inner, path, depth + 1)
        raise _inexpressible(node, path)

    def _of_many(self, around: Json, of: Json, path: str, depth: int) -> FieldType:
        if around == "array":
            return List(self.kind(of, f"{path}[]", depth + 1))
        return map_of(path, self.kind(of, f"{path}{{}}", depth + 1))

    def _named(self, name: str, path: str, depth: int) -> FieldType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        short = name.rsplit(".", 1)[-1]
        if short in self._inside:
            return Ref(self._name if short == self._root else short)
        if short in self._defined:
            return self.kind(self._defined[short], path, depth + 1)
        raise _inexpressible(name, path)

    def _record(self, node: dict[str, Json], path: str, depth: int) -> FieldType:
        self._inside.append(self._define(node, path))
        fields = tuple(self._field(each, path, depth) for each in list_of(node, "fields", path))
        self._inside.pop()
        return build(path, Record, fields)

    def _field(self, node: Json, path: str, depth: int) -> Field:
        if not isinstance(node, dict) or "type" not in node:
            raise SchemaError(f"{path}: {excerpt(node)} is no field of an Avro record")
        name = _text(node.get("name"), path)
        here = f"{path}.{name}"
        kind = self.kind(node["type"], here, depth + 1)
        optional = isinstance(kind, Option) and "default" in node and node["default"] is None
        if optional and isinstance(kind, Option):
            kind = kind.of
        return Field(name, kind, optional, text_of(node, "doc", here))

    def _union(self, members: list[Json], path: str, depth: int) -> FieldType:
        present = [member for member in members if member not in ("null", {"type": "null"})]
        if not present:
            raise _inexpressible("null", path)
        if any(isinstance(member, list) for member in present):
            raise SchemaError(f"{path}: a union right inside a union is not allowed in Avro")
        marked = any(isinstance(member, dict) and "ripple.case" in member for member in present)
        if len(present) == 1 and not marked:
            kind = self.kind(present[0], path, depth)
        else:
            cases = tuple(self._case(member, path, depth) for member in present)
            kind = build(path, Variant, cases)
        nullable = len(present) < len(members) and not isinstance(kind, Option)
        return Option(kind) if nullable else kind

    def _case(self, member: Json, path: str, depth: int) -> Case:
        if isinstance(member, dict) and "ripple.case" in member:
            name = _text(member["ripple.case"], path)
            if not member.get("fields"):
                return Case(name)
            record = self._record(member, f"{path}.{name}", depth)
            assert isinstance(record, Record)
            return Case(name, tuple(field.type for field in record.fields))
        name = _member_name(member, path)
        return Case(name, (self.kind(member, f"{path}.{name}", depth + 1),))

    def _define(self, node: dict[str, Json], path: str) -> str:
        name = _short_name(node, path)
        if self._defined.setdefault(name, node) is not node:
            raise SchemaError(f"{path}: the Avro name {name!r} is defined twice")
        return name


def _member_name(member: Json, path: str) -> str:
    if isinstance(member, str):
        return member.rsplit(".", 1)[-1]
    if isinstance(member, dict) and "name" in member:
        return _short_name(member, path)
    if isinstance(member, dict) and isinstance(member.get("type"), str):
        return str(member["type"])
    raise _inexpressible(member, path)


def _decimal(node: dict[str, Json], path: str) -> FieldType:
    precision, scale = node.get("precision"), node.get("scale", 0)
    try:
        return Decimal(precision, scale)  # type: ignore[arg-type]  # which it checks
    except PlanError:
        raise _inexpressible(node, path, "use up to 38 digits, or string") from None


def _short_name(node: Mapping[str, Json], path: str) -> str:
    return _text(node.get("name"), path).rsplit(".", 1)[-1]


def _text(value: Json, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise SchemaError(f"{path}: {excerpt(value)} is no name")
    return value


def _inexpressible(node: Json, path: str, advice: str = "") -> SchemaError:
    name = node.get("type") if isinstance(node, dict) else node
    advice = advice or (_ADVICE.get(name, "") if isinstance(name, str) else "") or "no such type"
    return SchemaError(f"{path}: Avro type {excerpt(node)} cannot be expressed: {advice}")
