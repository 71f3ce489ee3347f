from __future__ import annotations

import pytest

from ripple.core import cut as cuts
from ripple.core.errors import InputError

FOLLOWED = {"1/trades/0": 7, "1/trades/1": 0, "10/trades/0": 0}


def test_a_follower_tells_of_each_sender_apart() -> None:
    assert cuts.of_sender(FOLLOWED, "1") == {"trades/0": 7, "trades/1": 0}
    assert cuts.of_sender(FOLLOWED, "10") == {"trades/0": 0}


def test_unknown_sender_has_an_empty_cut() -> None:
    """What is released then is what a follower that begins anew has to read."""
    assert cuts.of_sender(FOLLOWED, "0") is None
    assert cuts.of_sender({}, "1") is None


@pytest.mark.parametrize(
    ("read", "there", "partitions"),
    [
        (["s"], ["s/0", "s/1"], 1),
        (["s/0", "s/1"], ["s/0", "s/1", "s/2", "s/3"], 2),
        (["s/1"], ["s/1", "s/3"], 2),  # of two partitions that share the topic, the second
        (["s/1", "s/3"], ["s/1", "s/3", "s/5", "s/7"], 4),
    ],
)
def test_a_topic_that_has_got_more_partitions_is_told_with_a_way_on(read, there, partitions):
    with pytest.raises(InputError, match=rf"\?partitions={partitions} after its name"):
        cuts.check_inputs(dict.fromkeys(read, 7), there, "o.csv")


@pytest.mark.parametrize(
    ("read", "there"),
    [(["s/0", "s/1"], ["s"]), (["s/1"], ["s/0", "s/1"]), (["a", "b"], ["a"]), (["t"], ["s"])],
)
def test_cut_with_other_inputs_is_no_topic_that_grew(read, there):
    with pytest.raises(InputError, match="read the same partitions, or begin with another"):
        cuts.check_inputs(dict.fromkeys(read, 7), there, "o.csv")


def test_a_line_names_the_first_of_many_inputs():
    assert cuts.brief({"s": 7}) == "7"
    assert cuts.brief({"s/0": 7, "s/1": 8}) == cuts.text({"s/0": 7, "s/1": 8})
    many = cuts.brief({f"{at}/0/s/1": at for at in range(1000)})
    assert many.endswith("7/0/s/1 7 and of 992 more inputs")
