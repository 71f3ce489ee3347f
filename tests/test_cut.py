from __future__ import annotations

from ripple import cut as cuts

FOLLOWED = {"1/trades/0": 7, "1/trades/1": 0, "10/trades/0": 0}


def test_a_follower_tells_of_each_sender_apart() -> None:
    assert cuts.of_sender(FOLLOWED, "1") == {"trades/0": 7, "trades/1": 0}
    assert cuts.of_sender(FOLLOWED, "10") == {"trades/0": 0}


def test_who_was_not_heard_of_has_shown_nothing_yet() -> None:
    """What is released then is what a follower that begins anew has to read."""
    assert cuts.of_sender(FOLLOWED, "0") is None
    assert cuts.of_sender({}, "1") is None
