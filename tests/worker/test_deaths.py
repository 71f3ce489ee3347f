"""When process failures are reported, and when a worker gives its partitions away."""

from __future__ import annotations

from worker.supervisor.deaths import VAIN, Deaths

NS = 1_000_000_000


class Clock:
    now_s = 0.0

    def monotonic_ns(self) -> int:
        return round(self.now_s * NS)


def test_three_deaths_in_five_minutes_are_told_with_the_last_until_they_are_long_ago() -> None:
    clock = Clock()
    deaths = Deaths(clock)  # type: ignore[arg-type]
    for second in (0, 100):
        clock.now_s = second
        deaths.died(0, "by SIGABRT", is_unable=False)
    assert not deaths.report
    clock.now_s = 200
    deaths.died(1, "by SIGKILL", is_unable=False)
    assert deaths.report == (
        "its processes have ended 3 times in 5 minutes, the last one, 1, by SIGKILL: is there "
        "memory enough?"
    )
    assert not deaths.too_many
    clock.now_s = 301
    assert not deaths.report


def test_twenty_deaths_of_one_process_are_too_many_for_this_worker() -> None:
    clock = Clock()
    deaths = Deaths(clock)  # type: ignore[arg-type]
    for at in range(VAIN):
        assert not deaths.too_many
        clock.now_s += 20
        deaths.died(0, "by SIGKILL", is_unable=False)
        deaths.died(1, "by SIGKILL", is_unable=False) if at % 2 else None
    assert deaths.too_many == "process 0 has ended 20 times, by SIGKILL"


def test_process_that_cannot_work_is_reported_at_once_and_gives_up_after_ten_seconds() -> None:
    clock = Clock()
    deaths = Deaths(clock)  # type: ignore[arg-type]
    for second in (1, 2, 4, 8):
        clock.now_s = second
        deaths.died(2, "IndentationError: unexpected indent", is_unable=True)
        assert "IndentationError" in deaths.report
        assert not deaths.too_many
    clock.now_s = 12
    deaths.died(2, "IndentationError: unexpected indent", is_unable=True)
    assert deaths.too_many == "process 2 cannot work: IndentationError: unexpected indent"
    deaths.died(2, "by SIGKILL", is_unable=False)
    assert not deaths.too_many, "one has begun that could"
