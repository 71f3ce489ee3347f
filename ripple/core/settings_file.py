"""A file of settings: TOML, or an S-expression of the same tables.

((cluster ((name prod))))
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from ripple.core.setting import SettingsError
from ripple.core.sexp import Sexp, SexpError, loads

FILE_BYTES_MAX = 1 << 20
TABLES_MAX = 32  # in each other
_TOO_DEEP = f"its tables are nested deeper than {TABLES_MAX}"


def read_file(data: bytes, name: str) -> Mapping[str, Any]:
    """Return the tables of a file: TOML, or an S-expression where it begins with a parenthesis."""
    if len(data) > FILE_BYTES_MAX:
        raise SettingsError(f"{name} has {len(data)} bytes, more than {FILE_BYTES_MAX}")
    try:
        text = data.decode()
        is_sexp = text.lstrip().startswith("(")
        held = _table(loads(text), name) if is_sexp else tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, SexpError) as error:
        raise SettingsError(f"{name} cannot be read: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{name} cannot be read: {_TOO_DEEP}") from error
    if _depth_exceeds(held, TABLES_MAX):
        raise SettingsError(f"{name} cannot be read: {_TOO_DEEP}")
    return held


def _depth_exceeds(held: object, most: int) -> bool:
    if not isinstance(held, Mapping):
        return False
    return most == 0 or any(_depth_exceeds(one, most - 1) for one in held.values())


def _table(value: Sexp, place: str) -> dict[str, Any]:
    """Return a list of pairs as a table; a value that is a list is a table too."""
    found: dict[str, Any] = {}
    for pair in value if isinstance(value, list) else [value]:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise SettingsError(
                f"{place} has {pair!r:.60} where a pair of name and value should be"
            )
        name, held = str(pair[0]), pair[1]
        if name in found:
            raise SettingsError(f"{place} has {name} twice")
        found[name] = held if isinstance(held, str) else _table(held, f"{place}, {name}")
    return found
