"""A keyed table in row form: small, plain, and the columnar one's oracle in tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ripple.core.errors import DeltaError
from ripple.engine.changes.algebra import apply
from ripple.engine.changes.rows import ABSENT, Delta, Set

if TYPE_CHECKING:
    from ripple.model.schema.types import Schema

K = TypeVar("K")


class Table(Mapping[K, Any], Generic[K]):
    """Values by key, changed by deltas only. A ``schema`` makes its dicts records."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        self._values: dict[K, Any] = {}

    def apply(self, deltas: Iterable[tuple[K, Delta[Any]]]) -> None:
        """Apply the deltas in order, all of them or none.

        Raises :class:`DeltaError` naming the key whose delta does not fit; the table is then as
        it was before the call.
        """
        after: dict[K, Any] = {}
        for key, delta in deltas:
            before = after.get(key, self._values.get(key, ABSENT))
            try:
                after[key] = apply(delta, before, schema=self.schema)
            except DeltaError as error:
                raise DeltaError(f"key {key!r}: {error}") from error
        for key, value in after.items():
            if value is ABSENT:
                self._values.pop(key, None)
            else:
                self._values[key] = value

    def snapshot(self) -> list[tuple[K, Delta[Any]]]:
        """Return the deltas that make this table out of an empty one: a Set per key."""
        return [(key, Set(value)) for key, value in self._values.items()]

    def __getitem__(self, key: K) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
