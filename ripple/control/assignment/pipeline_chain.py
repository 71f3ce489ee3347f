"""The record of the pipelines of a cluster of several: a fenced chain in the common store.

Each entry holds all pipelines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.founding import founded
from ripple.control.assignment.pipelines import PIPELINES_MAX, Hosted, Pipelines, check
from ripple.core.errors import InputError, RippleError
from ripple.core.setting import SettingsError
from ripple.storage.fenced import Chain
from ripple.storage.store.s3_settings import is_s3

if TYPE_CHECKING:
    from ripple.storage.fenced import Reading
    from ripple.world.ports import ObjectStore

PREFIX = "cluster/pipelines/"
ATTEMPTS_MAX = 16
READ_S = 1.0
READ_S3_S = 5.0  # a request costs money there

_FIELDS = {one.name: str(one.type) for one in fields(Hosted)}
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: type(value) is int and 0 < value < 1 << 53,
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": lambda value: (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    ),
}


@dataclass(frozen=True)
class _Content:
    """Entries as JSON fields."""

    def to_fields(self, content: Pipelines) -> Mapping[str, Any]:
        listed = [asdict(one) | {"sinks": list(one.sinks)} for one in content.all]
        return {"pipelines": listed, "entry": content.entry}

    def from_fields(self, fields: Mapping[str, Any]) -> Pipelines:
        listed, entry = fields.get("pipelines"), fields.get("entry")
        if set(fields) != {"pipelines", "entry"} or type(entry) is not int:
            raise AssignmentError(f"an entry of {PREFIX} has other fields: upgrade what is older")
        if not isinstance(listed, list) or len(listed) > PIPELINES_MAX:
            raise AssignmentError(f"an entry of {PREFIX} has more than {PIPELINES_MAX} pipelines")
        found = Pipelines(entry, tuple(map(_hosted, listed)))
        try:
            check(found)
        except InputError as error:
            raise AssignmentError(f"an entry of {PREFIX}: {error}") from error
        return found


def _hosted(values: object) -> Hosted:
    if not isinstance(values, dict) or set(values) != set(_FIELDS):
        raise AssignmentError(f"a pipeline in {PREFIX} has other fields: upgrade what is older")
    for name, kind in _FIELDS.items():
        if not _KINDS[kind](values[name]):
            raise AssignmentError(f"a pipeline in {PREFIX} has {name} {values[name]!r:.60}")
    return Hosted(**values | {"sinks": tuple(values["sinks"])})


class PipelineChain:
    """Reads and writes the record. store: the common one of all pipelines."""

    def __init__(self, store: ObjectStore, nonce: str = "") -> None:
        self._nonce = nonce
        self._chain = Chain(store, PREFIX, _Content())

    async def newest(self) -> Pipelines:
        """Return the newest entry.

        Raises AssignmentError for an unreadable one, since an older one may have removed pipelines;
        ChainError and StoreError.
        """
        return _newest(await self._chain.newest())

    async def change(self, change: Callable[[Pipelines], Pipelines]) -> Pipelines:
        """Add an entry, the newest one with a change; return it.

        After a concurrent entry of the same number the change is applied to that entry. Raises the
        change's errors, AssignmentError, ChainError and StoreError.
        """
        for _ in range(ATTEMPTS_MAX):
            reading = await self._chain.newest()
            after = replace(change(_newest(reading)), entry=reading.newest_number + 1)
            entry = reading.next(self._nonce, after, self._chain.codec)
            there = await self._chain.create(entry)
            if there is not None and (there.owner, there.content) == (entry.owner, after):
                await self._chain.forget(entry)
                return after
        raise AssignmentError(f"{PREFIX} was changed {ATTEMPTS_MAX} times meanwhile: try again")


def _newest(reading: Reading[Pipelines]) -> Pipelines:
    if reading.damaged:
        raise AssignmentError(f"{reading.damaged[0]}: it says which pipelines run; restore it")
    return Pipelines() if reading.entry is None else reading.entry.content


class RecordReader:
    """Polls the record; after a failure the last reading stays valid."""

    def __init__(
        self, store: ObjectStore, place: str, say: Callable[[str], None], *, way_out: str
    ) -> None:
        """Read nothing yet. place: the store's URI; way_out: from a store of one pipeline."""
        self.interval_s = READ_S3_S if is_s3(place) else READ_S  # between two readings
        self.record: Pipelines | None = None
        self._store, self._place = store, place
        self._chain = PipelineChain(store)
        self._say, self._way_out = say, way_out
        self._problem = ""

    async def read(self) -> Pipelines | None:
        """Return the newest record, None after a failure, which is logged once.

        Raises SettingsError for a store of one pipeline.
        """
        try:
            is_of_one = self.record is None and await founded(self._store) is not None
            found = None if is_of_one else await self._chain.newest()
        except RippleError as error:
            if str(error) != self._problem:
                self._say(f"the record of pipelines cannot be read: {error}")
            self._problem = str(error)
            return None
        if found is None:
            raise SettingsError(
                f"store is {self._place}, which has the cluster of one pipeline: {self._way_out}"
            )
        self._problem, self.record = "", found
        return found
