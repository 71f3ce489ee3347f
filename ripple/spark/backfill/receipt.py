"""What a backfill has found, for people and to be checked again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
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
_TEXTS = ("pipeline", "topology_hash", "version", "history", "live", "store", "backfill")

_BROKEN = {
    "missing": "the log has {count:,} that history has not",
    "doubled": "the log has {count:,} behind where it is live that history has, too",
    "unknown": "history has {count:,} more than the log, or than it may",
}


class BackfillError(RippleError):
    """History and the live log do not fit, or somebody has begun already. Nothing was adopted."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """History up to ``until_ns``, and the live log from there on.

    backfill: the fingerprint of both, of the pipeline and of how many partitions there are. files:
    of history, what each had. partitions: what was found of each, and its checkpoint. identity: the
    fields that tell a record from others, () for all of them. header: whether files of CSV name
    their columns.
    """

    pipeline: str
    topology_hash: str
    version: str
    history: str
    live: str
    until_ns: int
    store: str
    backfill: str
    identity: tuple[str, ...]
    header: bool
    files: tuple[Mapping[str, Any], ...]
    partitions: tuple[Mapping[str, Any], ...]

    @property
    def digests(self) -> dict[str, str]:
        """Of each output over all partitions: what one engine over all of history would have."""
        totals: Counter[str] = Counter()
        for part in self.partitions:
            for output, digest in part["digests"].items():
                totals[output] += int(digest, 16)
        return {output: f"{total % _ALL:016x}" for output, total in totals.items()}

    @property
    def rows(self) -> int:
        """Records of history."""
        return sum(one["rows"] for one in self._inputs())

    @property
    def refused(self) -> Mapping[str, int]:
        """Records of history that were refused, by cause."""
        found: Counter[str] = Counter()
        for one in (*self.files, *self.partitions):
            found.update(one["refused"])
        return dict(sorted(found.items()))

    @property
    def letters(self) -> Iterator[Mapping[str, Any]]:
        """What was refused, as far as it was kept."""
        for one in (*self.files, *self.partitions):
            yield from one["letters"]

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """What partitions begin from."""
        return tuple(checkpoint_of(dict(one["checkpoint"])) for one in self.partitions)

    def broken(self) -> list[str]:
        """Return what speaks against it, a line for each thing."""
        return [
            f"{one['name']}: {text.format(count=one[what])}, the first of {_time(at_ns)}"
            for one in self._inputs()
            if one["verdict"] == BROKEN
            for what, text in _BROKEN.items()
            if one[what]
            for at_ns in [one["at_ns"][what]]
        ]

    def unproven(self) -> list[str]:
        """Return the inputs of which nothing shows that history reaches the log."""
        return [one["name"] for one in self._inputs() if one["verdict"] == UNPROVEN]

    def check(self, *, allows_unproven: bool) -> None:
        """Raise BackfillError where it is no ground to adopt anything."""
        broken, unproven = self.broken(), self.unproven()
        if broken:
            raise BackfillError(
                "history and the log do not meet, so nothing was adopted:\n  " + "\n  ".join(broken)
            )
        if not self.rows:
            refused = sum(self.refused.values())
            raise BackfillError(
                f"history has no record before {_time(self.until_ns)}: {self._left_out() or 'none'}"
                f" later, {refused:,} refused. Give another --until, or --history; without one "
                "there is nothing to begin from. Nothing was adopted"
            )
        if unproven and not allows_unproven:
            raise BackfillError(
                f"nothing shows that history reaches the log in {', '.join(unproven)}: the log has "
                "no record there before the end of history, so it cannot be compared. Give an "
                "earlier --until; or say --allow-unproven if you know it. Nothing was adopted"
            )

    def _left_out(self) -> str:
        """Return how many records of the files are of the end of history or later, "" for none."""
        count = sum(one["beyond"] for one in self.files)
        if not count:
            return ""
        first_ns = min(one["beyond_ns"] for one in self.files if one["beyond"])
        return f"{count:,}, the first of {_time(first_ns)}, are"

    def _inputs(self) -> Iterator[Mapping[str, Any]]:
        for part in self.partitions:
            yield from part["inputs"]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"format": FORMAT, **asdict(self), "digests": self.digests}

    @classmethod
    def of(cls, text: str, place: str) -> Receipt:
        """Read one. Raises InputError."""
        try:
            held: dict[str, Any] = json.loads(text)
            if held.pop("format") != FORMAT:
                raise InputError(f"{place} is a receipt of another release: use that, or run anew")
            digests = held.pop("digests")
            held |= {name: tuple(held[name]) for name in ("identity", "files", "partitions")}
            found = cls(**held)
            _check_kinds(held)
            if found.digests != digests:
                raise InputError(
                    f"{place} was changed: its digests are not those of its partitions"
                )
            return found
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{place} is no receipt of a backfill: {error}") from error

    def text(self) -> str:
        """Return it for people."""
        proven = sum(one["verdict"] == PROVEN for one in self._inputs())
        count = sum(1 for _ in self._inputs())
        left_out = self._left_out()
        lines = [
            f"pipeline {self.pipeline}, topology {self.topology_hash}",
            f"history    {self.rows:,} records before {_time(self.until_ns)}, of "
            f"{len(self.files)} files",
            *([f"left out   {left_out} of its end or later"] if left_out else []),
            f"refused    {sum(self.refused.values()):,}",
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


def _check_kinds(held: Mapping[str, Any]) -> None:
    """Raise ValueError for what is no value of its field; what is in lists is compared later."""
    kinds: dict[str, type] = dict.fromkeys(_TEXTS, str) | {"until_ns": int, "header": bool}
    for name, kind in kinds.items():
        if type(held[name]) is not kind:
            raise ValueError(f"its {name} is {shown(held[name])}")
    if not all(isinstance(name, str) for name in held["identity"]):
        raise ValueError(f"its identity is {shown(held['identity'])}")


def changes(given: Receipt, laid: Receipt) -> list[str]:
    """Return in what a receipt is not the one that the store has of its backfill."""
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
    """Yield in what two receipts of the same differ that must not."""
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
