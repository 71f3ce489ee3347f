"""Choice of standbys, over random owners and standbys."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from coordinator.decisions.standbys import standbys
from ripple.control.assignment import Share, worker_of

MEMBERS = [f"w{worker}/{slot}" for worker in range(4) for slot in range(2)]
SOMEBODY = st.none() | st.sampled_from([*MEMBERS, "gone/0"])
SHARES = st.lists(
    st.tuples(SOMEBODY, SOMEBODY).map(
        lambda pair: Share(pair[0], 0 if pair[0] is None else 1, standby=pair[1])
    ),
    min_size=1,
    max_size=30,
)


@given(SHARES, st.sets(st.sampled_from(MEMBERS)))
def test_promises(shares: list[Share], members: set[str]) -> None:
    found = standbys(shares, members)
    count = Counter(one for one in found if one is not None)
    for share, one in zip(shares, found, strict=True):
        able = {m for m in members if share.owner and worker_of(m) != worker_of(share.owner)}
        able = able or (members - {share.owner} if share.owner else set())
        assert (one in able) if able else one is None
        if one is not None:
            assert count[one] <= min(count[other] for other in able) + 1
    again = [Share(s.owner, s.since, standby=one) for s, one in zip(shares, found, strict=True)]
    assert standbys(again, members) == found


def test_eligible_standby_stays() -> None:
    shares = [Share("w0/0", 1, standby="w1/0"), Share("w0/0", 1, standby="w2/0")]
    assert standbys(shares, MEMBERS) == ("w1/0", "w2/0")
