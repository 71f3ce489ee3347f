"""A version of the assignment as JSON fields: the content of an entry of its chain.

Reading is strict. The proposer of the next version writes all of it again, so an unknown field
would be lost: another form is refused, and so is an unknown field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.member import Code, Member, check_id
from ripple.control.assignment.rules import check_version
from ripple.control.assignment.version import Assignment, Pin, Share, Stage

FORM = 2

T = TypeVar("T")


@dataclass(frozen=True)
class AssignmentContent:
    """Versions as the fields of an entry."""

    def to_fields(self, content: Assignment) -> Mapping[str, Any]:
        """Return the fields; each code is there once."""
        codes = sorted({member.code for member in content.members}, key=_code_fields)
        return {
            "form": FORM,
            "version": content.version,
            "cause": content.cause,
            "stages": [
                [stage.name, stage.partitions, *([stage.by] if stage.by else [])]
                for stage in content.stages
            ],
            "shares": [[s.owner, s.since, s.next, s.former, s.standby] for s in content.shares],
            "codes": [_code_fields(code) for code in codes],
            "members": [_member_fields(member, codes) for member in content.members],
            "pins": [[pin.partition, pin.worker, pin.reason] for pin in content.pins],
            "frozen": content.frozen,
            "inputs": [list(one) for one in content.inputs],
        }

    def from_fields(self, fields: Mapping[str, Any]) -> Assignment:
        """Parse ``to_fields``. Raises AssignmentError."""
        form = fields.get("form")
        if form != FORM:
            raise AssignmentError(
                f"a version of the assignment has form {form!r}, this version of Ripple reads "
                f"{FORM}: upgrade what is older"
            )
        held = _Fields(fields, "a version of the assignment")
        codes = held.rows("codes", _code)
        assignment = Assignment(
            version=held.integer("version"),
            cause=held.text("cause"),
            stages=held.rows("stages", _stage),
            shares=held.rows("shares", _share),
            members=held.rows("members", lambda row: _member(row, codes)),
            pins=held.rows("pins", lambda row: Pin(row.integer(0), row.text(1), row.text(2))),
            frozen=held.text_or_none("frozen"),
            inputs=held.rows("inputs", lambda row: (row.text(0), row.integer(1))),
        )
        held.check_read("form")
        check_version(assignment)
        return assignment


def _code_fields(code: Code) -> list[Any]:
    schemas, stages = [list(one) for one in code.schemas], [list(one) for one in code.stages]
    ends = [[list(one) for one in code.ends]] if code.ends else []  # written by earlier releases
    fields = [code.pipeline, code.plan_hash, code.topology_hash, code.protocol, schemas, stages]
    return [*fields, *ends]


def _code(row: _Fields) -> Code:
    schemas = row.rows(4, lambda schema: (schema.text(0), schema.text(1)))
    stages = row.rows(5, lambda stage: (stage.text(0), stage.integer(1)))
    ends = row.rows(6, lambda end: (end.text(0), end.text(1))) if row.has(6) else ()
    return Code(row.text(0), row.text(1), row.text(2), row.integer(3), schemas, stages, ends)


def _member_fields(member: Member, codes: list[Code]) -> dict[str, Any]:
    return {
        "id": member.id,
        "incarnation": member.incarnation,
        "nonce": member.nonce,
        "addresses": [list(address) for address in member.addresses],
        "starts": list(member.starts),
        "code": codes.index(member.code),
        "leaving": member.is_leaving,
    }


def _member(row: _Fields, codes: tuple[Code, ...]) -> Member:
    number = row.integer("code")
    if not 0 <= number < len(codes):
        raise AssignmentError(f"{row.name} has code {number}, of {len(codes)}")
    check_id(row.text("id"))
    return Member(
        id=row.text("id"),
        incarnation=row.integer("incarnation"),
        nonce=row.text("nonce"),
        addresses=row.rows("addresses", lambda address: (address.text(0), address.text(1))),
        starts=row.integers("starts"),
        code=codes[number],
        is_leaving=row.boolean("leaving"),
    )


def _stage(row: _Fields) -> Stage:
    return Stage(row.text(0), row.integer(1), row.text(2) if row.has(2) else "")


def _share(row: _Fields) -> Share:
    return Share(
        row.text_or_none(0),
        row.integer(1),
        next=row.text_or_none(2),
        former=row.text_or_none(3),
        standby=row.text_or_none(4),
    )


class _Fields:
    """The fields of an object by name, or of a list by number, each checked for its type."""

    def __init__(self, held: Any, name: str) -> None:
        self.name = name
        if isinstance(held, list):
            held = dict(enumerate(held))
        if not isinstance(held, Mapping):
            raise AssignmentError(f"{name} is {held!r:.40}")
        self._held: Mapping[Any, Any] = held
        self._read: set[int | str] = set()

    def _get(self, key: int | str, what: str, *types: type) -> Any:
        self._read.add(key)
        if key not in self._held:
            raise AssignmentError(f"{self.name} has no {key}")
        value = self._held[key]
        # A bool is an int to Python only.
        if type(value) not in types:
            raise AssignmentError(f"{self.name}: {key} is {value!r:.40}, not {what}")
        return value

    def has(self, key: int | str) -> bool:
        return key in self._held

    def text(self, key: int | str) -> str:
        return str(self._get(key, "a text", str))

    def text_or_none(self, key: int | str) -> str | None:
        value: str | None = self._get(key, "a text or null", str, type(None))
        return value

    def integer(self, key: int | str) -> int:
        return int(self._get(key, "an integer", int))

    def integers(self, key: int | str) -> tuple[int, ...]:
        held = self._get(key, "a list", list)
        row = _Fields(held, f"{self.name}, {key}")
        return tuple(row.integer(number) for number in range(len(held)))

    def boolean(self, key: int | str) -> bool:
        return bool(self._get(key, "a boolean", bool))

    def rows(self, key: int | str, read: Callable[[_Fields], T]) -> tuple[T, ...]:
        found = []
        for number, held in enumerate(self._get(key, "a list", list)):
            row = _Fields(held, f"{self.name}, {key} {number}")
            found.append(read(row))
            row.check_read()
        return tuple(found)

    def check_read(self, *others: str) -> None:
        """Raise AssignmentError for fields that were not read."""
        unknown = [str(key) for key in self._held if key not in self._read and key not in others]
        if unknown:
            raise AssignmentError(f"{self.name} has {unknown[0]!r}, which this version ignores")
