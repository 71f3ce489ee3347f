"""The receipt of a backfill, for people and for later checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from ripple.core.arguments import shown
from ripple.core.errors import InputError, RippleError
from ripple.spark.backfill.seam import BROKEN, PROVEN, UNPROVEN
from ripple.storage.checkpoint.format import Checkpoint, checkpoint_of

FORMAT = 1
_ALL = 1 << 64
_SHOWN_MAX = 10
_LISTS = ("identity", "files", "partitions")
_TEXTS = ("pipeline", "topology_hash", "version", "store", "backfill")

_BROKEN = {
    "missing": "{count:,} records of the log are missing in history",
    "doubled": "{count:,} records after the live cut are in history, too",
    "unknown": "{count:,} records of history are unknown to the log, or duplicates",
}


class BackfillError(RippleError):
    """History and the live log do not match, or the pipeline has begun. Nothing was adopted."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """History up to ``until_ns``, and the live log from there on; of several, by source.

    backfill: the fingerprint of both, of the pipeline and the number of partitions. files: the
    counts of each file of history. partitions: the report of each, with its checkpoint. identity:
    the fields that identify a record, () for all of them. header: whether files of CSV name their
    columns.
    """

    pipeline: str
    topology_hash: str
    version: str
    history: str | Mapping[str, str]
    live: str | Mapping[str, str]
    until_ns: int
    store: str
    backfill: str
    identity: tuple[str, ...]
    header: bool
    files: tuple[Mapping[str, Any], ...]
    partitions: tuple[Mapping[str, Any], ...]

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each output, equal to that of one engine over all of history."""
        totals: Counter[str] = Counter()
        for part in self.partitions:
            for output, digest in part["digests"].items():
                totals[output] += int(digest, 16)
        return {output: f"{total % _ALL:016x}" for output, total in totals.items()}

    @property
    def rows(self) -> int:
        """The number of records of history."""
        return sum(one["rows"] for one in self._inputs())

    @property
    def refused(self) -> Mapping[str, int]:
        """The number of rejected records of history, by cause."""
        found: Counter[str] = Counter()
        for one in (*self.files, *self.partitions):
            found.update(one["refused"])
        return dict(sorted(found.items()))

    @property
    def letters(self) -> Iterator[Mapping[str, Any]]:
        """The dead letters that were kept."""
        for one in (*self.files, *self.partitions):
            yield from one["letters"]

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The starting points of partitions."""
        return tuple(checkpoint_of(dict(one["checkpoint"])) for one in self.partitions)

    def broken(self) -> list[str]:
        """Return the objections, one per line."""
        return [
            f"{one['name']}: {text.format(count=one[what])}, the first of {_time(at_ns)}"
            for one in self._inputs()
            if one["verdict"] == BROKEN
            for what, text in _BROKEN.items()
            if one[what]
            for at_ns in [one["at_ns"][what]]
        ]

    def unproven(self) -> list[str]:
        """Return the inputs without proof that history reaches the log."""
        return [one["name"] for one in self._inputs() if one["verdict"] == UNPROVEN]

    def check(self, *, allows_unproven: bool) -> None:
        """Raise BackfillError if there are objections."""
        broken, unproven = self.broken(), self.unproven()
        if broken:
            raise BackfillError(
                "history and the log do not meet, so nothing was adopted:\n  " + "\n  ".join(broken)
            )
        if not self.rows:
            refused = sum(self.refused.values())
            raise BackfillError(
                f"history has no record before {_time(self.until_ns)}: {self._left_out() or 'none'}"
                f" later, {refused:,} rejected. Give another --until, or --history; without one "
                "there is nothing to begin from. Nothing was adopted"
            )
        if unproven and not allows_unproven:
            raise BackfillError(
                f"no proof that history reaches the log in {', '.join(unproven)}: the log has "
                "no record there before the end of history, so it cannot be compared. Give an "
                "earlier --until; or --allow-unproven if you are sure. Nothing was adopted"
            )

    def _left_out(self) -> str:
        """Return the number of records at or after history's end as text, "" for none."""
        count = sum(one["beyond"] for one in self.files)
        if not count:
            return ""
        first_ns = min(one["beyond_ns"] for one in self.files if one["beyond"])
        return f"{count:,}, the first of {_time(first_ns)}, are"

    def _inputs(self) -> Iterator[Mapping[str, Any]]:
        for part in self.partitions:
            yield from part["inputs"]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON fields."""
        return {"format": FORMAT, **asdict(self), "digests": self.digests}

    @classmethod
    def of(cls, text: str, place: str) -> Receipt:
        """Parse a receipt. Raises InputError."""
        try:
            held: dict[str, Any] = json.loads(text)
            _check_fields(held)
            if held.pop("format") != FORMAT:
                raise InputError(f"{place} is a receipt of another release: use that, or run again")
            digests = held.pop("digests")
            held |= {name: tuple(held[name]) for name in _LISTS}
            found = cls(**held)
            _check_kinds(held)
            if found.digests != digests:
                raise InputError(
                    f"{place} was changed: its digests are not those of its partitions"
                )
            return found
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{place} is not a receipt of a backfill: {error}") from error

    def text(self) -> str:
        """Return it for people."""
        proven = sum(one["verdict"] == PROVEN for one in self._inputs())
        count = sum(1 for _ in self._inputs())
        left_out = self._left_out()
        lines = [
            f"pipeline {self.pipeline}, topology {self.topology_hash}",
            f"history    {self.rows:,} records before {_time(self.until_ns)}, of "
            f"{len(self.files)} files",
            *(
                f"read       {_place(one)}: {one['rows']:,} records, digest {one['digest']}"
                for one in self.files
                if "digest" in one  # read by Spark
            ),
            *([f"left out   {left_out} of its end or later"] if left_out else []),
            f"rejected   {sum(self.refused.values()):,}",
            *(f"           {number:,} x {cause}" for cause, number in self.refused.items()),
        ]
        lines += [
            f"input      {one['name']}: {one['rows']:,} records, then the log from offset "
            f"{one['offset']:,}; {one['before']:,} before and {one['behind']:,} late ones "
            f"compared: {one['verdict']}"
            for one in self._inputs()
        ]
        lines += [f"digest     {name} {digest}" for name, digest in self.digests.items()]
        lines.append(f"proven     {proven} of {count} inputs meet the log without gap or overlap")
        return "\n".join(lines)


def _place(counts: Mapping[str, Any]) -> str:
    """Return a place with the versions of the tables that a DataFrame reads."""
    tables = [one for one in counts.get("tables", ()) if one != counts["place"]]
    return f"{counts['place']} of {', '.join(tables)}" if tables else str(counts["place"])


def _check_fields(held: Any) -> None:
    """Raise ValueError unless the fields are those of a receipt."""
    if not isinstance(held, dict):
        raise ValueError("it is no object of JSON")
    known = {"format", "digests", *(one.name for one in fields(Receipt))}
    for name in sorted(known - held.keys()):
        raise ValueError(f"it has no field {name!r}")
    for name in sorted(held.keys() - known):
        raise ValueError(f"its field {shown(name)} is in no receipt")
    for name in _LISTS:
        if not isinstance(held[name], list):
            raise ValueError(f"its field {name!r} is no list")


def _check_kinds(held: Mapping[str, Any]) -> None:
    """Raise ValueError for a field of the wrong type; lists are compared later."""
    kinds: dict[str, type] = dict.fromkeys(_TEXTS, str) | {"until_ns": int, "header": bool}
    for name, kind in kinds.items():
        if type(held[name]) is not kind:
            raise ValueError(f"its {name} is {shown(held[name])}")
    for name in ("history", "live"):
        places = held[name].values() if isinstance(held[name], Mapping) else [held[name]]
        if not all(isinstance(place, str) for place in places):
            raise ValueError(f"its {name} is {shown(held[name])}")
    if not all(isinstance(name, str) for name in held["identity"]):
        raise ValueError(f"its identity is {shown(held['identity'])}")


def changes(given: Receipt, laid: Receipt) -> list[str]:
    """Return the differences of a receipt from the stored one."""
    if given.backfill != laid.backfill:
        return [
            f"it is of backfill {given.backfill}, and its history, log, time, pipeline and release "
            f"of ripple would be {laid.backfill} now: one of them has changed"
        ]
    found = list(_unlike(asdict(given), asdict(laid), ""))
    more = [f"and {len(found) - _SHOWN_MAX:,} more"] if len(found) > _SHOWN_MAX else []
    return found[:_SHOWN_MAX] + more


def _unlike(given: Any, laid: Any, path: str) -> Iterator[str]:
    if isinstance(given, Mapping) and isinstance(laid, Mapping):
        for name in dict.fromkeys([*laid, *given]):
            yield from _unlike(given.get(name), laid.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(given, (list, tuple)) and isinstance(laid, (list, tuple)):
        for at, (one, other) in enumerate(zip_longest(given, laid)):
            yield from _unlike(one, other, f"{path}[{at}]")
    elif given != laid:
        yield f"{path}: the receipt has {shown(given)}, and the store {shown(laid)}"


def differences(one: Receipt, other: Receipt) -> Iterable[str]:
    """Yield the differences between two receipts that should agree."""
    for name in ("topology_hash", "backfill", "digests", "refused"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            yield f"{name.replace('_', ' ')}: {mine}, and now {theirs}"
    for mine, theirs in zip(one.partitions, other.partitions, strict=False):
        for what in ("counters", "watermarks_ns", "digests"):
            if mine[what] != theirs[what]:
                yield f"partition {mine['partition']}: {what} {mine[what]}, and now {theirs[what]}"


def _time(time_ns: int) -> str:
    at, rest_ns = divmod(time_ns, 1_000_000_000)
    text = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest_ns:09d}Z" if rest_ns else f"{text}Z"
