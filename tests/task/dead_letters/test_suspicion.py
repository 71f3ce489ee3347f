"""Who is blamed for a death: the one record that kills, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ripple.task.dead_letters.suspicion import (
    DEATHS_MAX,
    PIECES_MAX,
    End,
    Range,
    Suspect,
    Suspicion,
)


class DeathError(Exception):
    """A process that dies."""


def lives(
    killers: set[int], batches: list[Range], opened: Suspicion, kills: Iterator[int]
) -> Iterator[Suspicion]:
    """Live until all batches are passed; yield what is suspected after each death.

    kills: after how many pieces somebody outside kills each life.
    """
    suspicion = opened
    while True:
        suspicion.note(["opened", "v1"])
        for name, offset in suspicion.guilty():
            suspicion.note(["quarantined", name, offset])
        try:
            live(killers - {*suspicion.quarantined.get("a", ())}, batches, suspicion, next(kills))
        except DeathError:
            # The next life knows the entries alone.
            entries = suspicion.entries()
            if isinstance(at := suspicion.in_flight, Range):
                entries.append(["begin", at.input, at.first_offset, at.next_offset])
            suspicion = Suspicion.of(entries)
            yield suspicion
        else:
            return


def live(killers: set[int], batches: list[Range], suspicion: Suspicion, left: int) -> None:
    for batch in batches:
        pieces = suspicion.pieces(batch)
        assert [one.first_offset for one in pieces[1:]] == [one.next_offset for one in pieces[:-1]]
        assert (pieces[0].first_offset, pieces[-1].next_offset) == (
            batch.first_offset,
            batch.next_offset,
        )
        for piece in pieces:
            suspicion.note(["begin", "a", piece.first_offset, piece.next_offset])
            if any(piece.first_offset <= one < piece.next_offset for one in killers) or left == 0:
                raise DeathError
            left -= 1
        suspicion.note(["stabilizing", {"a": batch.next_offset}])
        suspicion.note(["idle"])


def cut_into(sizes: list[int]) -> list[Range]:
    ends = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    return [Range("a", first, end) for first, end in pairwise(ends)]


NEVER = 1 << 60


def until_quiet(killers: set[int], sizes: list[int]) -> tuple[Suspicion, int]:
    """Return what is known in the end, and how many deaths it took."""
    suspicion, deaths = Suspicion(), 0
    batches = cut_into(sizes)
    for after in lives(killers, batches, suspicion, iter(lambda: NEVER, None)):
        suspicion, deaths = after, deaths + 1
        assert deaths <= (DEATHS_MAX + 1) * len(killers), "it loops"
    return suspicion, deaths


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.sets(st.integers(0, sum(sizes) - 1), max_size=4))
    )
)
def test_every_killer_is_quarantined_and_nobody_else(found: tuple[list[int], set[int]]) -> None:
    sizes, killers = found
    suspicion, deaths = until_quiet(killers, sizes)
    assert [*suspicion.quarantined.get("a", ())] == sorted(killers)
    assert not suspicion.suspects
    assert deaths <= DEATHS_MAX * len(killers)


def test_lone_killer_takes_three_deaths() -> None:
    assert until_quiet({437}, [1000, 1000])[1] == DEATHS_MAX
    assert until_quiet({1000}, [1000, 1])[1] == DEATHS_MAX


def test_killer_in_a_very_long_batch_takes_one_more() -> None:
    suspicion, deaths = until_quiet({99_000}, [16 * PIECES_MAX, 16 * PIECES_MAX])
    assert deaths == DEATHS_MAX + 1
    assert suspicion.quarantined == {"a": {99_000: ""}}


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.lists(st.integers(0, 300), max_size=12, unique=True),
)
def test_kills_that_strike_no_record_twice_quarantine_nobody(
    sizes: list[int], kills: list[int]
) -> None:
    strikes = iter([*kills, *[NEVER] * 50])
    suspicion = Suspicion()
    alone: list[Range] = []
    for after in lives(set(), cut_into(sizes), suspicion, strikes):
        suspicion = after
        if isinstance(after.in_flight, Range) and after.in_flight.span == 1:
            alone.append(after.in_flight)
    if all(alone.count(one) < DEATHS_MAX - 1 for one in alone):
        assert not suspicion.quarantined


def deaths_in(*ranges: tuple[int, int], version: str = "v1") -> Suspicion:
    entries = [["opened", version]]
    for first, end in ranges:
        entries += [["begin", "a", first, end], ["opened", version]]
    return Suspicion.of(entries)


def test_death_while_idle_counts_nothing() -> None:
    suspicion = Suspicion.of(
        [["opened", "v1"], ["begin", "a", 0, 9], ["idle"], ["opened", "v1"], ["opened", "v1"]]
    )
    assert not suspicion.suspects


def test_range_that_is_passed_is_forgotten() -> None:
    suspicion = deaths_in((0, 10))
    assert suspicion.pieces(Range("a", 0, 10)) == [Range("a", at, at + 1) for at in range(10)]
    suspicion.note(["begin", "a", 0, 4])
    suspicion.note(["begin", "a", 4, 5])
    suspicion.note(["idle"])
    assert [one.range for one in suspicion.suspects] == [Range("a", 5, 10)]
    assert suspicion.pieces(Range("a", 0, 5)) == [Range("a", 0, 5)]
    assert suspicion.pieces(Range("b", 0, 10)) == [Range("b", 0, 10)]


def test_ranges_alone_never_condemn_a_record() -> None:
    assert deaths_in(*[(0, 10)] * 9).guilty() == []
    assert deaths_in(*[(0, 10)] * 9, (4, 5)).guilty() == []
    assert deaths_in((0, 10), (4, 5), (4, 5)).guilty() == [("a", 4)]


def test_new_version_is_not_blamed_for_the_old_one() -> None:
    suspicion = deaths_in((4, 5), (4, 5))
    suspicion.note(["quarantined", "a", 77])
    suspicion.note(["begin", "a", 4, 5])
    suspicion.note(["opened", "v2"])
    assert suspicion.guilty() == []
    assert suspicion.quarantined == {"a": {77: ""}}


def test_kills_before_one_cut_are_counted_until_it_is_passed() -> None:
    stabilizing = [["stabilizing", {"a": 10}], ["opened", "v1"]]
    suspicion = Suspicion.of([["opened", "v1"], *stabilizing, *stabilizing])
    assert suspicion.stuck == ({"a": 10}, 2)
    assert Suspicion.of([*suspicion.entries(), *stabilizing]).stuck == ({"a": 10}, 3)
    suspicion.note(["stabilizing", {"a": 9}])
    suspicion.note(["idle"])
    assert suspicion.stuck == ({"a": 10}, 2)
    suspicion.note(["stabilizing", {"a": 10}])
    suspicion.note(["idle"])
    assert suspicion.stuck is None


def test_error_is_no_kill_and_is_remembered_with_what_it_is_blamed_on() -> None:
    stabilizing = [["stabilizing", {"a": 10}], ["failed", "no room"], ["opened", "v1"]]
    suspicion = Suspicion.of([["opened", "v1"], *stabilizing, *stabilizing])
    assert suspicion.stuck is None
    assert suspicion.last == End({"a": 10}, "no room")
    suspicion.note(["begin", "a", 4, 5])
    suspicion.note(["failed", "no such price"])
    suspicion.note(["opened", "v1"])
    assert suspicion.suspects == [Suspect(Range("a", 4, 5), 1, "no such price")]
    suspicion.note(["begin", "a", 4, 5])
    suspicion.note(["opened", "v1"])
    assert suspicion.suspects == [Suspect(Range("a", 4, 5), 2, "no such price")]
    suspicion.note(["begin", "a", 4, 5])
    suspicion.note(["ended", "a disk that is full"])
    suspicion.note(["opened", "v1"])
    assert suspicion.suspects == [Suspect(Range("a", 4, 5), 2, "no such price")]
    assert suspicion.last == End(None, "a disk that is full")


def words() -> st.SearchStrategy[list[list[object]]]:
    offsets = st.integers(0, 12)
    begin = st.tuples(offsets, st.integers(1, 12)).map(lambda p: ["begin", "a", p[0], p[0] + p[1]])
    cut = offsets.map(lambda offset: ["stabilizing", {"a": offset}])
    opened = st.sampled_from(["v1", "v1", "v2"]).map(lambda version: ["opened", version])
    quarantined = offsets.map(lambda offset: ["quarantined", "a", offset])
    ends = st.sampled_from([["idle"], ["failed", "why"], ["ended", ""], ["ended", "why"]])
    return st.lists(st.one_of(begin, cut, opened, opened, ends, quarantined))


@given(words(), words())
def test_summary_stands_for_the_whole_history(before, after) -> None:
    """Whenever nothing is in flight, the file can begin anew, and nobody notices."""
    whole = Suspicion.of([*before, ["idle"]])
    short = Suspicion.of(whole.entries())
    for entry in after:
        whole.note(entry)
        short.note(entry)
        assert short == whole
        spans = [one.range for one in whole.suspects]
        assert not any(a.overlaps(b) for i, a in enumerate(spans) for b in spans[:i])
