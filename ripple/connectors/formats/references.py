"""Schemas that refer to others in their registry, put together as one document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ripple.core.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEPTH_MAX = 64
_NAMED = ("record", "error", "enum", "fixed")


def whole(form: str, text: str, others: Mapping[str, str]) -> str:
    """Return a document with its references in it.

    form: of the registry. others: all referenced documents, also each other's, by the names used
    for them. Raises SchemaError.
    """
    if not others:
        return text
    try:
        document = json.loads(text)
        parsed = {name: json.loads(other) for name, other in others.items()}
    except (ValueError, RecursionError) as error:
        raise SchemaError("it, or what it refers to, is no JSON") from error
    if form == "AVRO":
        return json.dumps(_Avro(parsed).filled(document, "", 0))
    if form == "JSON":
        return json.dumps(_json(document, document, parsed, 0))
    raise SchemaError(f"it is {form}, which is not read")


class _Avro:
    """Puts a named type where it is used first; Avro knows it by its name from there on."""

    def __init__(self, others: Mapping[str, Any]) -> None:
        self._others = others
        self._defined: set[str] = set()

    def filled(self, node: Any, space: str, depth: int) -> Any:
        """Return a type with its references. space: the namespace around it."""
        _check(depth)
        if isinstance(node, list):
            return [self.filled(one, space, depth + 1) for one in node]
        if isinstance(node, str):
            name = node if "." in node or not space else f"{space}.{node}"
            if name not in self._others or name in self._defined:
                return node
            self._defined.add(name)
            return self.filled(self._others[name], "", depth + 1)
        if not isinstance(node, dict):
            return node
        kind = node.get("type")
        if kind in _NAMED:
            return self._named(node, space, depth)
        inner = [key for key in ("type", "items", "values") if key in node]
        return {**node, **{key: self.filled(node[key], space, depth + 1) for key in inner}}

    def _named(self, node: dict[str, Any], space: str, depth: int) -> dict[str, Any]:
        name = str(node.get("name"))
        own = name.rpartition(".")[0] if "." in name else str(node.get("namespace", space))
        self._defined.add(name if "." in name or not own else f"{own}.{name}")
        made = {**node, "namespace": own}
        if isinstance(node.get("fields"), list):
            made["fields"] = [
                {**field, "type": self.filled(field.get("type"), own, depth + 1)}
                if isinstance(field, dict)
                else field
                for field in node["fields"]
            ]
        return made


def _json(node: Any, document: Any, others: Mapping[str, Any], depth: int) -> Any:
    """Return a node with its references to other documents resolved. document: the node's own."""
    _check(depth)
    if isinstance(node, list):
        return [_json(one, document, others, depth + 1) for one in node]
    if not isinstance(node, dict):
        return node
    pointer = node.get("$ref")
    if isinstance(pointer, str):
        name, _, path = pointer.partition("#")
        target = others.get(name) if name else document
        if target is None:
            return node
        beside = {key: one for key, one in node.items() if key != "$ref"}
        found = _json(_at(target, path, pointer), target, others, depth + 1)
        return {**found, **beside} if isinstance(found, dict) else found
    return {
        key: _json(one, document, others, depth + 1)
        for key, one in node.items()
        if key not in ("$defs", "definitions")  # they are where they are used
    }


def _at(document: Any, path: str, pointer: str) -> Any:
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if not (isinstance(document, dict) and key in document):
            raise SchemaError(f"$ref {pointer!r} leads nowhere")
        document = document[key]
    return document


def _check(depth: int) -> None:
    if depth > DEPTH_MAX:
        raise SchemaError(f"it is nested, or refers to itself, more than {DEPTH_MAX} times")
