"""The fields of a repartitioned source, as a value."""

from __future__ import annotations

from typing import TypeAlias

from ripple.core.frozen import frozen

Key: TypeAlias = tuple[str, ...]

# Fields of Pydantic's models may have any names; those of nodes have none of these.
_ESCAPES = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%,;:"})


@frozen
class NewDivision:
    """The dividing fields of a repartitioned source.

    by: for the rows of all folds, joins and distinct rows except ``others``. others: the folds
    without these fields in their keys, in order, each with its own fields. A record goes to the
    partition of each of its rows.
    """

    by: Key
    others: tuple[tuple[str, Key], ...] = ()

    def of(self, reader: str) -> Key:
        """Return the fields for the rows of a reader."""
        return dict(self.others).get(reader, self.by)

    @property
    def code(self) -> str:
        """A unique text of it, for the comparison of workers and for assignments."""
        others = (f"{name}:{_code(key)}" for name, key in self.others)
        return ";".join([_code(self.by), *others])

    def __str__(self) -> str:
        others = (f"; for {name} by {', '.join(key)}" for name, key in self.others)
        return f"{', '.join(self.by)}{''.join(others)}"


def _code(key: Key) -> str:
    return ",".join(name.translate(_ESCAPES) for name in key)
