"""Published figures of engines outside this benchmark."""

from __future__ import annotations

# Of feldera/feldera, benchmark/README.md: 100 M events by 16 workers of one machine; persons and
# auctions count as events, too.
FELDERA_WORKERS = 16
FELDERA_EVENTS_A_SECOND = {
    "q0": 6_973_987,
    "q1": 6_595_871,
    "q2": 6_748_549,
    "q5": 6_589_786,
    "q7": 3_136_763,
    "q12": 6_682_259,
    "q14": 6_858_711,
    "q15": 3_539_322,
    "q16": 810_701,
    "q17": 3_870_269,
    "q18": 1_358_216,
    "q19": 1_201_216,
    "q21": 6_634_820,
    "q22": 6_305_568,
}


def feldera(query: str) -> float | None:
    """Return millions of events a second and worker, None if there is no figure."""
    events = FELDERA_EVENTS_A_SECOND.get(query)
    return events / FELDERA_WORKERS / 1e6 if events else None
