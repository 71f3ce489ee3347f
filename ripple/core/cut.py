"""Cuts compared: per input, the next offset to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ripple.core.errors import InputError, OutputError

Cut: TypeAlias = Mapping[str, int]
INPUTS_SHOWN_MAX = 8
_NUMBERED = re.compile(r".*/(?P<number>\d+)")
_WAY = re.compile(r"^(\d+/)+(?=\D)")


def is_within(cut: Cut, limit: Cut) -> bool:
    """Return whether ``cut`` is at or before ``limit`` in every input."""
    return all(offset <= limit.get(name, 0) for name, offset in cut.items())


def has_reached(here: Cut, cut: Cut) -> bool:
    """Return whether ``here`` has reached ``cut``, perhaps a cut by paths of other partitions.

    It has once each of its paths has reached the furthest path of the same input in ``cut``.
    """
    if cut.keys() == here.keys():
        return is_within(cut, here)
    slowest: dict[str, int] = {}
    for name, offset in here.items():
        source = source_of(name)
        slowest[source] = min(offset, slowest.get(source, offset))
    return all(offset <= slowest.get(source_of(name), 0) for name, offset in cut.items())


def between(cut: Cut, to: Cut) -> int:
    """Return how many offsets lie between two cuts."""
    return sum(max(0, end - cut.get(name, 0)) for name, end in to.items())


def events_between(cut: Cut, to: Cut) -> int:
    """Return how many events of the sources lie between two cuts.

    A later stage's cut has an input once for each path of its events, named by the partitions on
    the path (``3/0/trades/1``): the lowest offset counts, and counts once.
    """
    found: dict[str, int] = {}
    for name, end in to.items():
        source = source_of(name)
        found[source] = max(found.get(source, 0), end - cut.get(name, 0))
    return sum(found.values())


def source_of(name: str) -> str:
    """Return the input of a source that an entry is of, without the path to it."""
    return _WAY.sub("", name)


def of_sources(cut: Cut) -> Cut | None:
    """Return a cut by the inputs of sources; None where one has come further on some path."""
    found: dict[str, int] = {}
    for name, offset in cut.items():
        if found.setdefault(source_of(name), offset) != offset:
            return None
    return found


def in_order(cuts: Iterable[Cut]) -> list[Cut]:
    """Return the distinct cuts, earliest first.

    Raises OutputError for two that cannot both lie on one way through the inputs.
    """
    ordered: list[Cut] = []
    for cut in sorted(cuts, key=lambda cut: sorted(cut.items())):
        if ordered and dict(ordered[-1]) == dict(cut):
            continue
        if ordered and not is_within(ordered[-1], cut):
            raise OutputError(
                f"the outputs were written by different runs: one has reached {dict(ordered[-1])}, "
                f"another {dict(cut)}: remove the one that is to be written anew"
            )
        ordered.append(cut)
    return ordered


def of_sender(cut: Cut, sender: str) -> Cut | None:
    """Return the part of a follower's cut that is of one sender; None for an unknown sender.

    That is not a cut at which nothing was read: the sender has shown nothing yet, not even that.
    """
    prefix = f"{sender}/"
    return {of.removeprefix(prefix): n for of, n in cut.items() if of.startswith(prefix)} or None


def check_inputs(cut: Cut, names: Iterable[str], owner: str) -> None:
    """Raise InputError unless ``cut`` is of the inputs ``names``."""
    if set(cut) != set(names):
        raise InputError(
            f"{owner} is of the inputs {', '.join(cut)}, but this run reads {', '.join(names)}: "
            f"read the same partitions{_grown(cut, [*names])}, or begin with another folder of "
            "checkpoints and outputs"
        )


def _grown(cut: Cut, names: Sequence[str]) -> str:
    """Return the advice to read a topic with its first partitions alone, before it grew."""
    read, there = ([_NUMBERED.fullmatch(name) for name in some] for some in (cut, names))
    numbers = sorted(int(one["number"]) for one in there if one)
    held = [int(one["number"]) for one in read if one] or [0]
    if len(numbers) < 2 or len(numbers) < len(names) or sorted(held) != numbers[: len(held)]:
        return ""
    step = numbers[1] - numbers[0]  # of the partitions that share the topic
    return (
        f" (of a topic of Kafka that has got more, ?partitions={len(held) * step} after its name "
        "reads those that it had)"
    )


def text(cut: Cut) -> str:
    """Return a cut for people: the offset alone where there is one input."""
    if len(cut) == 1:
        return str(next(iter(cut.values())))
    return ", ".join(f"{name} {offset}" for name, offset in cut.items())


def brief(cut: Cut) -> str:
    """Return a cut for a line: of many inputs, as later stages have them, the first ones."""
    more = len(cut) - INPUTS_SHOWN_MAX
    first = text(dict(list(cut.items())[:INPUTS_SHOWN_MAX]))
    return first if more <= 0 else f"{first} and of {more} more input{'s' if more > 1 else ''}"
