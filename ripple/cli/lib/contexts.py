"""Contexts: named clusters with their credentials' files, in a file of the user's.

A context is used as a whole or not at all: if a coordinator is named, none is used, so that no
cluster is shown another's token. It holds names of files and no secret.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTEXT_VARIABLE = "RIPPLE_CONTEXT"
FILE_VARIABLE = "RIPPLE_CONTEXTS"
FILE_BYTES_MAX = 1 << 20
FILES = ("token_file", "tls_certificate", "tls_key", "tls_authority")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Context:
    """One cluster. coordinator: addresses, comma-separated; all others are names of files."""

    coordinator: str
    token_file: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_authority: str | None = None

    @property
    def known(self) -> dict[str, str]:
        """The fields that are set."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contents of the file. current: the context used by default."""

    by_name: Mapping[str, Context]
    current: str | None = None

    def named(self, name: str) -> Context:
        """Return a context. Raises InputError."""
        if name not in self.by_name:
            held = ", ".join(self.by_name) or "none (ripple config context set creates one)"
            raise InputError(f"no context {name!r}; there are {held}")
        return self.by_name[name]

    def having(self, name: str, context: Context) -> Contexts:
        """Return a copy with a context added or replaced; the first one becomes current."""
        if not _NAME.fullmatch(name):
            raise InputError(f"invalid name {name!r}: letters, digits, '.', '_', '-', at most 63")
        return Contexts({**self.by_name, name: context}, self.current or name)

    def using(self, name: str) -> Contexts:
        """Return a copy with another current context."""
        self.named(name)
        return replace(self, current=name)

    def without(self, name: str) -> Contexts:
        """Return a copy without a context."""
        self.named(name)
        left = {one: context for one, context in self.by_name.items() if one != name}
        return Contexts(left, None if self.current == name else self.current)

    def text(self) -> str:
        """Return the file's text, in TOML."""
        lines = [] if self.current is None else [f"current = {json.dumps(self.current)}"]
        for name, context in sorted(self.by_name.items()):
            lines += ["", f"[context.{json.dumps(name)}]"]
            lines += [f"{key} = {json.dumps(value)}" for key, value in context.known.items()]
        return "\n".join(lines).lstrip("\n") + "\n"

    @classmethod
    def of(cls, text: str) -> Contexts:
        """Parse a file's text. Raises ValueError, with the problem as message."""
        said = tomllib.loads(text)
        current, tables = said.pop("current", None), said.pop("context", {})
        if said:
            raise ValueError(f"it has {next(iter(said))!r}, and only current and context belong")
        if not isinstance(tables, dict) or not isinstance(current, str | None):
            raise ValueError("current is a name, and context has a table for each name")
        return cls({name: _context(name, table) for name, table in tables.items()}, current)


def _context(name: str, table: Any) -> Context:
    if not isinstance(table, dict) or not all(isinstance(one, str) for one in table.values()):
        raise ValueError(f"context {name!r} is not a table of texts")
    unknown = {*table} - {one.name for one in fields(Context)}
    if unknown:
        raise ValueError(f"context {name!r} has an unknown field {sorted(unknown)[0]!r}")
    if not table.get("coordinator"):
        raise ValueError(f"context {name!r} has no coordinator")
    return Context(**table)


def place(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's file of contexts, which may not exist."""
    given = environment.get(FILE_VARIABLE)
    if given:
        return Path(given)
    home = environment.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home) / "ripple" / "contexts.toml"


def read(path: Path) -> Contexts:
    """Read the contexts, none if there is no file. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return Contexts({})
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        if len(data) > FILE_BYTES_MAX:
            raise ValueError(f"it has more than {FILE_BYTES_MAX} bytes")
        return Contexts.of(data.decode())
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def keep(path: Path, contexts: Contexts) -> None:
    """Replace the file atomically; only its user may read it. Raises InputError."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w") as file:
            file.write(contexts.text())
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def in_use(
    name: str | None, coordinator: str | None, environment: Mapping[str, str], variable: str
) -> Context | None:
    """Return the context in effect; None if a coordinator is named, or if there is none.

    name, coordinator: from flags, which precede variables. variable: the coordinator's variable.
    Raises InputError.
    """
    if name is not None and coordinator is not None:
        raise InputError("--context and --coordinator name two clusters: give one of them")
    if coordinator is not None or (name is None and environment.get(variable)):
        return None
    contexts = read(place(environment))
    chosen = name or environment.get(CONTEXT_VARIABLE) or contexts.current
    return None if chosen is None else contexts.named(chosen)
