"""A topic's settings, stored with the topic."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ripple.core.codec.compression import Compression
from ripple.storage.log.errors import TopicError
from ripple.storage.log.frame import HEADER_BYTES

if TYPE_CHECKING:
    from ripple.core.sexp import Sexp


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Every limit of a topic; 0 means none where stated.

    sync_appends, sync_bytes: an append syncs when so many appends, or bytes, are unsynced (0: not
    for this reason; both 0: only on request, when an index is written, and on closing).
    segment_bytes_max, segment_age_ns_max (0: none): a segment that would grow beyond is sealed.
    retention_bytes_max, retention_age_ns_max (0: none): the oldest sealed segments beyond are
    removed. age_by: ``clock``, or ``event`` for the span of event time that the log covers, which
    one event with a wrong date can stretch. compression: of bodies that get smaller by it.
    batch_bytes_max: of an append, before compression. index_interval_bytes: between index entries.
    producers_max: remembered for idempotent appends; the longest silent one is forgotten.
    """

    sync_appends: int = 1
    sync_bytes: int = 0
    segment_bytes_max: int = 128 << 20
    segment_age_ns_max: int = 0
    retention_bytes_max: int = 0
    retention_age_ns_max: int = 0
    age_by: str = "clock"
    compression: Compression = Compression.NONE
    batch_bytes_max: int = 16 << 20
    index_interval_bytes: int = 64 << 10
    producers_max: int = 1000

    def __post_init__(self) -> None:
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if not low <= value <= high:
                raise TopicError(f"setting {name} is {value}: it must be from {low} to {high}")
        if self.age_by not in AGES:
            raise TopicError(f"setting age_by is {self.age_by!r}: it is one of {', '.join(AGES)}")

    @property
    def has_retention(self) -> bool:
        """Whether retention ever removes segments."""
        return self.retention_bytes_max > 0 or self.retention_age_ns_max > 0

    def to_sexp(self) -> Sexp:
        """Return the settings as an S-expression."""
        return [[name, text] for name, text in self.to_texts().items()]

    def to_texts(self) -> dict[str, str]:
        """Return every setting's text by name."""
        return {field.name: _text(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_sexp(cls, value: Sexp) -> LogSettings:
        """Read the output of ``to_sexp``; raises TopicError naming the invalid part."""
        known = {field.name for field in fields(cls)}
        found: dict[str, int | str | Compression] = {}
        for member in value if isinstance(value, list) else [value]:
            match member:
                case [str() as name, str() as text] if name in known and name not in found:
                    found[name] = _value(name, text)
                case _:
                    raise TopicError(f"not a setting of this release: {member!r}")
        return cls(**found)  # type: ignore[arg-type]  # names and kinds were matched above


AGES = ("clock", "event")
_WHOLE_MAX = 1 << 62
_RANGES = (
    ("sync_appends", 0, _WHOLE_MAX),
    ("sync_bytes", 0, _WHOLE_MAX),
    ("segment_bytes_max", HEADER_BYTES, _WHOLE_MAX),
    ("segment_age_ns_max", 0, _WHOLE_MAX),
    ("retention_bytes_max", 0, _WHOLE_MAX),
    ("retention_age_ns_max", 0, _WHOLE_MAX),
    # A frame is read whole, so this bounds what a reader holds.
    ("batch_bytes_max", 1, 1 << 30),
    ("index_interval_bytes", HEADER_BYTES, _WHOLE_MAX),
    ("producers_max", 1, 100_000),
)


def compression_of(name: str) -> Compression:
    """Return the compression called ``none``, ``lz4`` or ``zstd``."""
    try:
        return Compression[name.upper()]
    except KeyError:
        raise TopicError(f"compression is none, lz4 or zstd, not {name!r}") from None


def _text(value: object) -> str:
    return value.name.lower() if isinstance(value, Compression) else str(value)


def _value(name: str, text: str) -> int | str | Compression:
    if name == "age_by":
        return text
    if name == "compression":
        return compression_of(text)
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise TopicError(f"setting {name} is {text!r}, not a whole number")
    return int(text)
