"""A topic: a folder with a description and one folder of segments per partition.

The description, ``topic``, is an S-expression and, on a line of its own, its CRC-32C.
"""

from __future__ import annotations

import dataclasses
import re
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ripple.core import sexp
from ripple.core.codec.crc import crc32c
from ripple.core.errors import LimitError, SchemaError
from ripple.core.sexp import SexpError
from ripple.model.schema import notation
from ripple.model.schema.types import KEY_TYPES, DateTime, Float, Int, Int64, Schema, bare_type
from ripple.storage.log import near_topics
from ripple.storage.log.body import columns_of
from ripple.storage.log.errors import TopicError
from ripple.storage.log.segment import SEGMENT_SUFFIX
from ripple.storage.log.settings import LogSettings
from ripple.storage.log_uri import is_number
from ripple.world import paths
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.core.sexp import Sexp
    from ripple.world.ports import Disk, File

PARTITIONS_MAX = 10_000
DESCRIPTION_BYTES_MAX = 1 << 20
FORMAT = 1
GROWN_FORMAT = 2  # of topics that take several numbers of writers: older releases refuse them

_RESTORE = (
    "restore it from a copy, or put there the file `topic` of a new topic with the same "
    "schema, partitions, key and settings, made by ripple log create, or by a run with a new output"
)

_TEMPORARY = re.compile(r"topic-([0-9]+)\.tmp")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic on a disk, as described in its file.

    ``key``: the fields that decide a record's partition; without any, batches stick and rotate.
    ``time_field``: the event time in nanoseconds; without one, seeking by time is impossible.
    ``before``: smaller numbers of writers that it takes, ascending: its former partition counts.
    """

    disk: Disk
    path: str
    schema: Schema
    partitions: int = 1
    key: tuple[str, ...] = ()
    time_field: str | None = None
    settings: LogSettings = field(default_factory=LogSettings)
    before: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise TopicError or SchemaError for an invalid topic."""
        _check_path(self.path)
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise TopicError(
                f"{self.path}: {self.partitions} partitions: must be from 1 to {PARTITIONS_MAX}"
            )
        for count in self.before:
            if not 1 <= count < self.partitions or self.partitions % count:
                raise TopicError(
                    f"{self.path}: {self.partitions} partitions cannot be divided among {count}"
                )
        columns_of(self.schema)
        kinds = {member.name: member.type for member in self.schema.fields}
        for name in (*self.key, *([self.time_field] if self.time_field else ())):
            if name not in kinds:
                raise SchemaError(
                    f"schema {self.schema.name} has no field {name!r}: it has {', '.join(kinds)}"
                )
        if self.time_field and not isinstance(kinds[self.time_field], Int | Int64 | DateTime):
            raise SchemaError(
                f"the time field {self.time_field!r} is not an integer of nanoseconds"
            )

    @classmethod
    def create(
        cls,
        disk: Disk,
        path: str,
        schema: Schema,
        *,
        partitions: int = 1,
        key: Sequence[str] = (),
        time_field: str | None = None,
        settings: LogSettings | None = None,
    ) -> Topic:
        """Create a topic durably; raises TopicError if it exists, and OSError.

        Its name is printable, and not a number: that would name a partition (see LogUri).
        """
        topic = cls(
            disk, path, schema, partitions, tuple(key), time_field, settings or LogSettings()
        )
        kinds = {member.name: bare_type(member.type) for member in schema.fields}
        for member in topic.key:
            if not isinstance(kinds[member], (*KEY_TYPES, Float)):
                raise SchemaError(
                    f"the key {member!r} of topic {path} is a {type(kinds[member]).__name__}: "
                    "a key is text, a number, a truth value, a date, a UUID or bytes"
                )
        name = path.rpartition("/")[2]
        if not name.isprintable():
            raise TopicError(f"{name!r} cannot be a topic's name: not all of it can be printed")
        if is_number(name):
            raise TopicError(
                f"{name!r} cannot be a topic's name: a number at a URI's end is a partition"
            )
        disk.make_folder(path)
        if disk.exists(f"{path}/topic"):
            raise TopicError(f"{path}: there is a topic already: append to it, or name another one")
        if any(
            is_number(name) and _has_segments(disk, f"{path}/{name}") for name in disk.list(path)
        ):
            raise TopicError(
                f"{path} has partitions, but {path}/topic, which describes them, is missing: "
                "restore it from a copy, or create a topic of another name"
            )
        if not topic._write():
            raise TopicError(f"{path}: there is a topic already: append to it, or name another one")
        return topic

    @classmethod
    def ensure(
        cls, disk: Disk, path: str, schema: Schema, *, partitions: int, settings: LogSettings
    ) -> Topic:
        """Return the topic, made by ``create`` if it is missing; an existing one may differ.

        Raises TopicError, SchemaError and OSError.
        """
        if not disk.exists(f"{path}/topic"):
            try:
                return cls.create(disk, path, schema, partitions=partitions, settings=settings)
            except TopicError:
                if not disk.exists(f"{path}/topic"):
                    raise
                # Another process was faster.
        return cls.open(disk, path)

    @classmethod
    def open(cls, disk: Disk, path: str) -> Topic:
        """Read a topic's description; raises TopicError if it is missing or damaged."""
        _check_path(path)
        try:
            data = disk.read_bytes(f"{path}/topic", length_max=DESCRIPTION_BYTES_MAX)
        except FileNotFoundError:
            raise TopicError(
                f"{path}: there is no topic: create it first (ripple log create)"
                f"{near_topics.hint(disk, path)}"
            ) from None
        except IsADirectoryError:
            raise TopicError(f"{path}/topic is a folder: move it away, then {_RESTORE}") from None
        except LimitError as error:
            why = f"is not a description of a topic: {error}"
            raise TopicError(f"{path}/topic {why}; {_RESTORE}") from error
        text, _, checksum = data.decode("utf-8", "replace").rstrip("\n").rpartition("\n")
        if checksum != f"crc32c {crc32c(text.encode('utf-8')):08x}":
            raise TopicError(f"{path}/topic is damaged: its checksum does not match; {_RESTORE}")
        try:
            return cls(disk, path, *_read(text))
        except (SexpError, SchemaError) as error:
            raise TopicError(f"{path}/topic cannot be understood: {error}") from error

    def divided(self, count: int) -> Topic:
        """Return the topic with ``count`` among the numbers of writers that it takes.

        It grows to ``count`` partitions, a multiple, if it has fewer. Its records stay in place.
        Open readers keep the former partitions. One process at a time. Raises TopicError for a
        topic divided by key, since a key would be in two partitions then; OSError.
        """
        if self.takes(count):
            return self
        if self.key:
            raise TopicError(
                f"{self.path} is divided by {', '.join(self.key)}, whose records would be in two "
                "partitions: create another topic"
            )
        *before, partitions = sorted({*self.before, self.partitions, count})
        made = dataclasses.replace(self, partitions=partitions, before=tuple(before))
        replace(self.disk, f"{self.path}/topic", made._description())
        return made

    def takes(self, count: int) -> bool:
        """Return whether so many writers may divide it: its partition count, now or before."""
        return count == self.partitions or count in self.before

    def folder(self, partition: int) -> str:
        """Return the folder of a partition; raises TopicError if there is no such partition."""
        if not 0 <= partition < self.partitions:
            raise TopicError(
                f"{self.path}: no partition {partition}: it has 0 to {self.partitions - 1}"
            )
        return f"{self.path}/{partition}"

    def _description(self) -> bytes:
        """Return the content of its file. Raises TopicError if it is too long."""
        before: list[Sexp] = [["before", [str(count) for count in self.before]]]
        text = sexp.dumps(
            [
                ["format", str(GROWN_FORMAT if self.before else FORMAT)],
                ["schema", notation.to_sexp(self.schema)],
                ["partitions", str(self.partitions)],
                ["key", list(self.key)],
                ["time_field", [self.time_field] if self.time_field else []],
                ["settings", self.settings.to_sexp()],
                *(before if self.before else ()),
            ]
        )
        data = f"{text}\ncrc32c {crc32c(text.encode('utf-8')):08x}\n".encode()
        if len(data) > DESCRIPTION_BYTES_MAX:
            raise TopicError(
                f"{self.path}: a description of {len(data)} bytes exceeds DESCRIPTION_BYTES_MAX, "
                f"{DESCRIPTION_BYTES_MAX}: shorten the schema's names and docs"
            )
        return data

    def _write(self) -> bool:
        """Write the description durably unless there is one; return whether it was written."""
        data = self._description()
        # Without a lock: a process frozen in here would keep all others out.
        temporary, file = self._temporary()
        with closing(file):
            file.append(data)
            file.sync()
        try:
            is_mine = self.disk.link_absent(temporary, f"{self.path}/topic")
        except FileNotFoundError:
            return False  # another process was faster, and cleaned up
        self.disk.sync_folder(self.path)
        for name in filter(_TEMPORARY.fullmatch, self.disk.list(self.path)):
            with suppress(FileNotFoundError):
                self.disk.remove(f"{self.path}/{name}")
        return is_mine

    def _temporary(self) -> tuple[str, File]:
        """Open a temporary file for the description, unique among concurrent writers."""
        while True:
            found = map(_TEMPORARY.fullmatch, self.disk.list(self.path))
            number = 1 + max((int(one[1]) for one in found if one), default=0)
            path = f"{self.path}/topic-{number}.tmp"
            with suppress(FileExistsError):
                return path, self.disk.open(path, exclusive=True)


def _check_path(path: str) -> None:
    try:
        names = paths.parts(path)
    except ValueError as error:
        raise TopicError(str(error)) from error
    if not names:
        raise TopicError("a topic is a folder within another, and has a name")


# Cached: a process opens the same topic for each of its partitions, and each reader.
@lru_cache(maxsize=64)
def _read(
    text: str,
) -> tuple[Schema, int, tuple[str, ...], str | None, LogSettings, tuple[int, ...]]:
    match sexp.loads(text):
        case [
            ["format", str() as version],
            ["schema", schema],
            ["partitions", str() as partitions],
            ["key", list() as key],
            ["time_field", list() as time_field],
            ["settings", settings],
            *others,
        ]:
            if version not in (str(FORMAT), str(GROWN_FORMAT)):
                raise TopicError(
                    f"the topic has format {version}; this release reads {FORMAT} and "
                    f"{GROWN_FORMAT}"
                )
            names = tuple(str(name) for name in key)
            times = [str(name) for name in time_field]
            return (
                notation.from_sexp(schema),
                _count(partitions),
                names,
                times[0] if times else None,
                LogSettings.from_sexp(settings),
                _before(others),
            )
    raise TopicError("a topic has format, schema, partitions, key, time_field and settings")


def _count(text: object) -> int:
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise TopicError(f"partitions is {text!r}, not a whole number")


def _before(others: list[Sexp]) -> tuple[int, ...]:
    match others:
        case []:
            return ()
        case [["before", list() as counts]]:
            return tuple(map(_count, counts))
    raise TopicError("a topic has before, and nothing else, after its settings")


def _has_segments(disk: Disk, folder: str) -> bool:
    """Return whether a folder is a partition's, not one left empty by a crash, or foreign."""
    return any(name.endswith(SEGMENT_SUFFIX) for name in disk.list(folder))
