"""A connector's settings as a dataclass, and as JSON Schema with secrets marked.

    @dataclass(frozen=True)
    class Settings:
        host: str = setting("the server's name", default="127.0.0.1", variable="QUOTES_HOST")
        password: str | None = setting("of the user", secret=True, variable="QUOTES_PASSWORD")

Settings come from the environment alone, since other users can read URIs in the list of processes.
"""

from __future__ import annotations

import types
from dataclasses import MISSING, field, fields
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ripple.core.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ripple.connectors.connector import Connector

S = TypeVar("S")

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


class Stream(NamedTuple):
    """A readable stream: ``place`` is its URI as ``--source`` takes it.

    columns: their Arrow schema, None if unknown. replayable: whether a restarted run resumes it.
    """

    place: str
    columns: pa.Schema | None = None
    partitions: int = 1
    key: tuple[str, ...] = ()
    replayable: bool = False


def setting(says: str, *, variable: str, default: Any = MISSING, secret: bool = False) -> Any:
    """Return the field of a setting: str, int, float or bool, or one of them or None.

    says: its meaning. variable: of the environment, that has it. secret: never shown.
    """
    about = {"says": says, "variable": variable, "secret": secret}
    if default is MISSING:
        return field(metadata=about, repr=not secret)
    return field(default=default, metadata=about, repr=not secret)


def schema_of_settings(connector: Connector, settings: type | None) -> dict[str, Any]:
    """Return the JSON Schema of a connector's place and settings; raises ConnectorError."""
    place = {"type": "string", "description": connector.form, "pattern": f"^{connector.scheme}:"}
    properties: dict[str, Any] = {"place": place}
    required = ["place"]
    for name, kind, one in _members(connector.scheme, settings):
        described: dict[str, Any] = {
            "type": _TYPES[kind],
            "description": one.metadata["says"],
            "x-environment": one.metadata["variable"],
        }
        if one.metadata["secret"]:
            described |= {"writeOnly": True, "format": "password", "x-secret": True}
        elif one.default not in (MISSING, None):
            described["default"] = one.default
        if one.default is MISSING:
            required.append(name)
        properties[name] = described
    return {
        "$schema": DIALECT,
        "title": connector.scheme,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def settings_from(scheme: str, settings: type[S], environment: Mapping[str, str]) -> S:
    """Return the settings of an environment. Raises ConnectorError, which shows no secret."""
    found: dict[str, Any] = {}
    for name, kind, one in _members(scheme, settings):
        variable = one.metadata["variable"]
        text = environment.get(variable, "")
        if text:
            found[name] = _value(scheme, variable, kind, text, is_secret=one.metadata["secret"])
        elif one.default is MISSING:
            raise ConnectorError(f"{scheme}: {variable} is not set: {one.metadata['says']}")
    return settings(**found)


def _value(scheme: str, variable: str, kind: type, text: str, *, is_secret: bool) -> Any:
    try:
        return _TRUTHS[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        shown = "what it is set to" if is_secret else repr(text)
        raise ConnectorError(f"{scheme}: {variable}: {shown} is no {_TYPES[kind]}") from None


def _members(scheme: str, settings: type | None) -> list[tuple[str, type, Any]]:
    """Return name, type and field of each setting. Raises ConnectorError."""
    if settings is None:
        return []
    hints, found = get_type_hints(settings), []
    for one in fields(settings):
        kind = hints[one.name]
        if get_origin(kind) in (Union, types.UnionType):
            (kind, *others) = [each for each in get_args(kind) if each is not type(None)]
            kind = None if others else kind
        if kind not in _TYPES or "variable" not in one.metadata:
            raise ConnectorError(
                f"{scheme}: {settings.__name__}.{one.name} is no setting: give it one of the types "
                "str, int, float and bool, and setting(...) of ripple.connectors.settings"
            )
        found.append((one.name, kind, one))
    return found
