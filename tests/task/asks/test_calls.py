"""The calls of an ask: how many at a time, until when, and again after which pauses."""

from __future__ import annotations

from ripple.engine.operators.answer_rows import Identity
from ripple.task.asks.calls import LEAST_NS, Call, Calls

S = 1_000_000_000


def calls_of(count: int, *, concurrency: int = 2, retries: int = 2) -> Calls:
    calls = Calls(concurrency, 10 * S, retries, lambda pause_s: pause_s)
    calls.add(Call(Identity("in", offset, 0), object, bytes) for offset in range(count))
    return calls


def offsets(calls: list[Call]) -> list[int]:
    return [call.row.offset for call in calls]


def test_so_many_calls_at_a_time_in_the_order_of_the_rows() -> None:
    calls = calls_of(4)
    first = calls.due(0)
    calls.answered(first[1])

    assert offsets(first) == [0, 1]
    assert offsets(calls.due(1)) == [2]
    assert calls.due(2) == []
    assert len(calls) == 3


def test_a_call_is_overdue_after_its_timeout() -> None:
    calls = calls_of(1)
    (call,) = calls.due(5)

    assert calls.next_in_ns(0, 0) == 10 * S + 5
    assert calls.overdue(10 * S + 4, S) == []
    assert calls.overdue(10 * S + 5, S) == [call]


def test_a_call_is_given_up_once_the_run_has_also_waited_for_it() -> None:
    calls = calls_of(1)
    (call,) = calls.due(0, 5 * S)

    assert not calls.owed(10 * S - 1, 5 * S)
    assert calls.owed(20 * S, 5 * S)
    assert calls.overdue(20 * S, 5 * S) == []
    assert calls.next_in_ns(20 * S, 5 * S) == LEAST_NS
    assert not calls.owed(20 * S, 5 * S + LEAST_NS)
    assert calls.overdue(20 * S, 5 * S + LEAST_NS) == [call]


def test_a_failed_call_is_made_again_after_its_pause_before_others() -> None:
    calls = calls_of(3, concurrency=1)
    (call,) = calls.due(0)
    assert not calls.failed(call, 0)
    (other,) = calls.due(0)
    calls.answered(other)

    assert offsets([other]) == [1]
    assert offsets(calls.due(1 * S)) == [0]
    assert (call.made, call.ends_ns) == (2, 11 * S)


def test_pauses_double_up_to_the_longest_and_the_last_failure_counts() -> None:
    calls = calls_of(1, retries=7)
    now_ns, pauses_s = 0, []
    while True:
        (call,) = calls.due(now_ns)
        if calls.failed(call, now_ns):
            break
        pause_ns = calls.next_in_ns(now_ns, 0)
        assert pause_ns is not None
        pauses_s.append(pause_ns // S)
        assert calls.due(now_ns + pause_ns - 1) == []
        now_ns += pause_ns

    assert pauses_s == [1, 2, 4, 8, 16, 30, 30]
    assert call.made == 8
    assert len(calls) == 0
    assert calls.next_in_ns(now_ns, 0) is None
