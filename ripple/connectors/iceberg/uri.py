"""Places of tables in a catalog: ``CATALOG/NAMESPACE.TABLE[@SNAPSHOT]``."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from ripple.core.errors import RippleError

_FORM = re.compile(r"([^/@.]+)/((?:[^/@.]+\.)+)([^/@.]+)(?:@([^/@]+))?")


class TableUri(NamedTuple):
    """A table: its catalog, as pyiceberg's settings name it, its namespace, and its name.

    snapshot: the number or the name (a tag, a branch) of one; "" for the present one.
    """

    catalog: str
    namespace: tuple[str, ...]
    name: str
    snapshot: str

    @classmethod
    def parse(cls, text: str, error: type[RippleError]) -> Self:
        """Read it. Raises ``error`` for any other text."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise error(
                f"cannot tell which table iceberg:{text} is: it must be "
                "iceberg:CATALOG/NAMESPACE.TABLE, a source also with @SNAPSHOT"
            )
        catalog, namespace, name, snapshot = found.groups()
        return cls(catalog, tuple(namespace[:-1].split(".")), name, snapshot or "")

    @property
    def identifier(self) -> tuple[str, ...]:
        """The namespace and the name."""
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        """Return it without a snapshot, for people."""
        return f"iceberg:{self.catalog}/{'.'.join(self.identifier)}"


def identity(text: str) -> str:
    """Return the table, without a snapshot."""
    return str(TableUri.parse(text, RippleError))
