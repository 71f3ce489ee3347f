"""Schemas as JSON Schema documents (2020-12), and back where the types allow.

=====================  ===================================================================
field type             JSON Schema
=====================  ===================================================================
``String``, ``Bool``   ``string``, ``boolean``
``Int``, ``Int64``     ``integer``, with the format ``int64`` for ``Int64``
``Float``              ``number``
``Date``               ``string`` of the format ``date``, marked ``x-ripple-type``
``DateTime``           ``string`` of the format ``date-time``, likewise
``Uuid``               ``string`` of the format ``uuid``, likewise
``Bytes``              ``string`` of base64, likewise
``Opaque``             anything, marked ``x-ripple-type``
``Option``             ``anyOf`` of the type and ``null``
``List``               ``array`` with ``items``
``Record``             ``object`` with ``properties``; an optional field is not ``required``
``Variant``            ``enum`` of names if no case has arguments; otherwise ``oneOf`` a name
                       and ``{name: [arguments]}``
``Ref``                ``$ref`` to ``#`` if it is the schema itself, else to ``ripple:name``
=====================  ===================================================================

``from_json_schema(to_json_schema(s)) == s``. Other people's documents may also use ``$ref`` within
the document (inlined, or a ``Ref`` where a type contains itself), lists of types, ``const``, and
``anyOf``/``oneOf``, with the alternatives as cases, named after ``title``, reference or type.
Keywords that only narrow values (``minimum``, ``pattern``, ...) are not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from ripple.core.errors import SchemaError
from ripple.core.sexp import dumps
from ripple.model.schema.avro_times import is_named_unit
from ripple.model.schema.document import (
    Bounds,
    Document,
    Json,
    build,
    excerpt,
    list_of,
    parse,
    refuse_empty,
    text_of,
    version_of,
)
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.notation import marked, type_to_sexp
from ripple.model.schema.types import (
    Bool,
    Case,
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

_SCALARS: dict[FieldType, dict[str, Json]] = {
    String(): {"type": "string"},
    Int(): {"type": "integer"},
    Int64(): {"type": "integer", "format": "int64"},
    Float(): {"type": "number"},
    Bool(): {"type": "boolean"},
    Opaque(): {"x-ripple-type": "opaque"},
}
_PLAIN: dict[str, FieldType] = {
    "string": String(),
    "integer": Int(),
    "number": Float(),
    "boolean": Bool(),
}
# These say something about structure that no field type can.
_REFUSED = (
    "not",
    "if",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
)


def to_json_schema(schema: Schema) -> dict[str, Json]:
    """Return the JSON Schema document.

    Raises SchemaError naming the field that has two kinds of null: an
    option of an option, or an optional field of an option.
    """
    refuse_empty(schema.name, "schema", schema.fields)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": schema.name,
        "x-ripple-version": schema.version,
        **_documented(schema.doc),
        **_object(schema.fields, schema.name, schema.name),
    }


def _object(fields: tuple[Field, ...], path: str, root: str) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {
            field.name: {**_node(field, f"{path}.{field.name}", root), **_documented(field.doc)}
            for field in fields
        },
        "required": [field.name for field in fields if not field.optional],
    }


def _node(field: Field, path: str, root: str) -> dict[str, Json]:
    if field.optional and isinstance(field.type, Option):
        raise SchemaError(f"{path}: an optional field of an option has two kinds of null")
    return _type(field.type, path, root)


def _type(kind: FieldType, path: str, root: str) -> dict[str, Json]:
    match kind:
        case Option(Option()):
            raise SchemaError(f"{path}: an option of an option has two kinds of null")
        case Option():
            return {"anyOf": [_type(kind.of, path, root), {"type": "null"}]}
        case List():
            return {"type": "array", "items": _type(kind.of, f"{path}[]", root)}
        case Record():
            refuse_empty(path, "record", kind.fields)
            return _object(kind.fields, path, root)
        case Variant():
            refuse_empty(path, "variant", kind.cases)
            if not any(case.args for case in kind.cases):
                return {"enum": [case.name for case in kind.cases]}
            return {"oneOf": [_case(case, f"{path}.{case.name}", root) for case in kind.cases]}
        case Ref():
            return {"$ref": "#" if kind.name == root else f"ripple:{quote(kind.name, safe='')}"}
        case Logical():
            return {**rule_of(kind).json, "x-ripple-type": dumps(type_to_sexp(kind))}
        case _:
            return dict(_SCALARS[kind])


def _case(case: Case, path: str, root: str) -> dict[str, Json]:
    if not case.args:
        return {"const": case.name}
    arguments = {
        "type": "array",
        "prefixItems": [_type(arg, path, root) for arg in case.args],
        "items": False,
        "minItems": len(case.args),
    }
    return {
        "type": "object",
        "properties": {case.name: arguments},
        "required": [case.name],
        "additionalProperties": False,
    }


def _documented(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"description": doc}


def from_json_schema(
    document: Document, *, name: str | None = None, version: int | None = None
) -> Schema:
    """Return the schema of a JSON Schema document of an object, given as text or parsed.

    ``name`` replaces the document's title, ``version`` its ``x-ripple-version``. Raises
    SchemaError naming the field that cannot be expressed, and for documents
    beyond the limits of :mod:`ripple.model.schema.document`.
    """
    root = parse(document)
    reader = _Reader(root)
    node, pointer = _node_of(root, "the document"), "#"
    if "$ref" in node:
        pointer = str(node["$ref"])
        node = reader.target(pointer, "the document")
    name = name or text_of(node, "title", "the document") or text_of(root, "title", "the document")
    if not name:
        raise SchemaError("the document has no title: give name=")
    # Both spellings of the root lead back to it.
    kind = reader.inside({"#": name, pointer: name}, node, name, 0)
    if not isinstance(kind, Record):
        raise SchemaError(f"{name}: a schema is a record, the document's root is no object")
    return Schema(
        name,
        kind.fields,
        version_of(node, "x-ripple-version", name) if version is None else version,
        text_of(node, "description", name),
    )


class _Reader:
    """One import: knows the pointers that it is inside of, so that recursion becomes a Ref."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._inside: dict[str, str] = {}
        self._bounds = Bounds()

    def inside(self, names: dict[str, str], node: Json, path: str, depth: int) -> FieldType:
        outer, self._inside = self._inside, {**self._inside, **names}
        kind = self.kind(node, path, depth)
        self._inside = outer
        return kind

    def kind(self, node: Json, path: str, depth: int) -> FieldType:
        node = _node_of(node, path)
        self._bounds.visit(path, depth)
        for keyword in _REFUSED:
            if keyword in node:
                raise SchemaError(f"{path}: {keyword} cannot be expressed")
        mark = node.get("x-ripple-type")
        if mark == "opaque":
            return Opaque()
        logical = marked(mark) if isinstance(mark, str) else None
        if logical is not None:
            return logical
        if "$ref" in node:
            return self._reference(node, path, depth)
        for keyword in ("anyOf", "oneOf", "allOf"):
            if keyword in node:
                return self._alternatives(keyword, list_of(node, keyword, path), path, depth)
        if "enum" in node or "const" in node:
            return _enumeration(node, path)
        if isinstance(node.get("type"), list):
            alternatives = [{**node, "type": name} for name in node["type"]]
            return self._alternatives("type", alternatives, path, depth)
        return self._plain(node, path, depth)

    def _plain(self, node: Mapping[str, Json], path: str, depth: int) -> FieldType:
        title = node.get("title")
        if node.get("type") in ("integer", "number") and is_named_unit(title):
            raise SchemaError(f"{path}: the unit {title!r} is none of ours: use plain numbers, or "
                              "nanoseconds since 1970 for timestamps")  # fmt: skip
        match node.get("type"):
            case "integer" if node.get("format") == "int64":
                return Int64()
            case "array":
                if "prefixItems" in node or "items" not in node:
                    raise SchemaError(f"{path}: an array needs one schema for all its items")
                return List(self.kind(node["items"], f"{path}[]", depth + 1))
            case "object":
                return self._record(node, path, depth)
            case str() as name if name in _PLAIN:
                return _PLAIN[name]
        raise SchemaError(f"{path}: {excerpt(node)} cannot be expressed: it has no known type")

    def _record(self, node: Mapping[str, Json], path: str, depth: int) -> FieldType:
        properties = node.get("properties")
        if not isinstance(properties, dict) or isinstance(node.get("additionalProperties"), dict):
            raise SchemaError(
                f"{path}: an object with any keys cannot be expressed: use an array of objects "
                "with a key field"
            )
        required = list_of(node, "required", path)
        fields = []
        for name, inner in properties.items():
            here = f"{path}.{name}"
            kind = self.kind(inner, here, depth + 1)
            optional = name not in required
            if optional and isinstance(kind, Option):
                kind = kind.of
            fields.append(Field(name, kind, optional, text_of(inner, "description", here)))
        return build(path, Record, tuple(fields))

    def _alternatives(
        self, keyword: str, alternatives: list[Json], path: str, depth: int
    ) -> FieldType:
        if keyword == "allOf" and len(alternatives) != 1:
            raise SchemaError(f"{path}: allOf several schemas cannot be expressed: merge them")
        present = [each for each in alternatives if _node_of(each, path).get("type") != "null"]
        if not present:
            raise SchemaError(f"{path}: null alone is not a type of values")
        tagged = any("const" in each or _arguments(each) for each in present)
        if len(present) == 1 and not tagged:
            kind = self.kind(present[0], path, depth + 1)
        else:
            cases = tuple(self._case(each, path, depth) for each in present)
            kind = build(path, Variant, cases)
        nullable = len(present) < len(alternatives) and not isinstance(kind, Option)
        return Option(kind) if nullable else kind

    def _case(self, node: Mapping[str, Json], path: str, depth: int) -> Case:
        if isinstance(node.get("const"), str):
            return Case(node["const"])
        tagged = _arguments(node)
        if tagged:
            name, arguments = tagged
            here = f"{path}.{name}"
            return Case(name, tuple(self.kind(each, here, depth + 1) for each in arguments))
        name = text_of(node, "title", path) or text_of(node, "$ref", path) or str(node.get("type"))
        name = unquote(name.rsplit("/", 1)[-1])
        return Case(name, (self.kind(node, f"{path}.{name}", depth + 1),))

    def _reference(self, node: Mapping[str, Json], path: str, depth: int) -> FieldType:
        pointer = text_of(node, "$ref", path) or ""
        if pointer.startswith("ripple:"):
            return Ref(unquote(pointer.removeprefix("ripple:")))
        if pointer in self._inside:
            return Ref(self._inside[pointer])
        target = self.target(pointer, path)
        name = text_of(target, "title", path) or unquote(pointer.rsplit("/", 1)[-1])
        return self.inside({pointer: name}, target, path, depth + 1)

    def target(self, pointer: str, path: str) -> Mapping[str, Json]:
        if pointer != "#" and not pointer.startswith("#/"):
            raise SchemaError(f"{path}: $ref {pointer!r} leads out of the document")
        node = self._root
        for step in pointer.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                raise SchemaError(f"{path}: $ref {pointer!r} leads nowhere in the document")
            node = node[key]
        return _node_of(node, path)


def _enumeration(node: Mapping[str, Json], path: str) -> FieldType:
    values = list_of(node, "enum", path) if "enum" in node else [node["const"]]
    present = [value for value in values if value is not None]
    strange = [value for value in present if not isinstance(value, str)]
    if strange:
        raise SchemaError(f"{path}: an enum may hold texts and null, not {excerpt(strange[0])}")
    kind = build(path, Variant, tuple(Case(value) for value in present))
    return kind if len(present) == len(values) else Option(kind)


def _arguments(node: Mapping[str, Json]) -> tuple[str, list[Json]] | None:
    # The form in which a case with arguments is written here.
    properties = node.get("properties")
    if node.get("additionalProperties") is not False or not isinstance(properties, dict):
        return None
    if len(properties) != 1 or node.get("required") != list(properties):
        return None
    name, inner = next(iter(properties.items()))
    if not isinstance(inner, dict) or inner.get("items") is not False:
        return None
    items = inner.get("prefixItems")
    return (name, items) if isinstance(items, list) and items else None


def _node_of(node: Json, path: str) -> Mapping[str, Json]:
    if not isinstance(node, dict | bool):
        raise SchemaError(f"{path}: {excerpt(node)} is no schema")
    if not isinstance(node, dict) or not node:
        raise SchemaError(f"{path}: {excerpt(node)} allows any value; say which type")
    return node
