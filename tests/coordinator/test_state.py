"""Stories of a coordinator: workers come, fall silent, are cut off and come again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from coordinator.decisions import events as ev
from coordinator.decisions import instructions as ins
from coordinator.decisions.commands import (
    Drain,
    Freeze,
    Move,
    PinTo,
    Undrain,
    Unfreeze,
    is_done,
)
from coordinator.decisions.join_queue import JoinQueue
from coordinator.decisions.limits import MS, Limits
from coordinator.decisions.state import Coordinator
from coordinator.decisions.status import AlertStatus, status_of
from coordinator.decisions.views import HealthState, View
from ripple.control.assignment import (
    Alert,
    Assignment,
    AssignmentError,
    Candidate,
    MoveFailed,
    Phase,
    Report,
)
from ripple.control.rpc import membership_messages as msg
from tests.control.assignment.examples import CODE, candidate
from tests.coordinator.cluster import LIMITS, Cluster, Worker, without


def started(workers: int = 3, **settings: object) -> Cluster:
    one = Cluster(workers=workers + 1, **settings)  # type: ignore[arg-type]
    one.start(*range(workers))
    one.run(16)
    assert len(one.newest.members) == workers
    return one


def who(one: Cluster, number: int) -> tuple[str, int]:
    return one.workers[number].who


def is_member(one: Cluster, number: int) -> bool:
    worker = one.workers[number]
    return worker.incarnation is not None and one.newest.has(*worker.who)


def evicted_after(one: Cluster, number: int, seconds: float = 60) -> float | None:
    """Return after how many seconds a worker's present incarnation is no member any more."""
    incarnation = one.newest.by_id[f"w{number}"].incarnation
    for step in range(round(seconds * 4)):
        one.step()
        if not one.newest.has(f"w{number}", incarnation):
            return (step + 1) / 4
    return None


def test_candidates_within_the_collecting_time_join_in_one_version() -> None:
    one = Cluster(workers=4)
    one.start(0)
    one.run(2)
    one.start(1, 2)
    one.run(3)
    assert [(v.version, len(v.members)) for v in one.chain] == [(0, 0), (1, 3)]


def test_a_killed_worker_is_replaced_within_seconds_of_its_streams_end() -> None:
    one = started()
    one.kill(1)
    after = evicted_after(one, 1)
    assert after is not None
    assert 3 <= after <= 5.5


def test_a_silent_worker_is_evicted_after_eight_seconds() -> None:
    one = started()
    one.workers[1].paused_until = 10**9
    after = evicted_after(one, 1)
    assert after is not None
    assert 8 <= after <= 10.5


def test_dead_worker_heartbeat_cannot_resurrect() -> None:
    one = started()
    frozen = one.workers[1]
    before = frozen.who
    frozen.paused_until = one.step_number + 4 * 20
    assert evicted_after(one, 1) is not None
    one.run(6)
    late = msg.Heartbeat(before, Report(0.1, (0,)))
    for replica in one.replicas:
        told = replica.state.step(late, one.now_ns)
        assert [type(each) for each in told] == [ins.Evict]
    one.run(40)
    assert before in one.removed
    assert is_member(one, 1)  # as another incarnation
    assert one.workers[1].who != before
    one.check_settled()


def test_coordinator_only_partition() -> None:
    """Cut off from one coordinator, then from both: the first harms nobody."""
    one = started()
    one.cut.add(("w1", "c0"))
    assert evicted_after(one, 1, 30) is None
    one.cut.add(("w1", "c1"))
    assert evicted_after(one, 1, 30) is not None


def test_a_worker_heard_by_one_coordinator_lives_though_only_the_store_tells() -> None:
    one = started()
    one.cut |= {("c0", "c1"), ("w1", "c0")}
    assert evicted_after(one, 1, 60) is None
    assert one.stored_views.keys() == {"c0", "c1"}


def test_two_coordinators_propose_one_wins() -> None:
    one = started()
    one.start(3)
    before = one.newest.version
    proposals: list[tuple[str, int]] = []
    for _ in range(80):
        for replica in one.replicas:
            proposals += [(replica.name, v.version) for _, v in replica.proposals]
        one.step()
    assert {name for name, version in proposals if version == before + 1} <= {"c0", "c1"}
    assert [v.version for v in one.chain] == list(range(len(one.chain)))
    one.run(60)
    one.check_settled()


def test_clock_jumps_no_mass_eviction() -> None:
    """A coordinator that was stopped for a minute believes its own silence last of all."""
    one = started()
    one.restart_replica(1)
    one.replicas[1].stalled_until = 10**9
    one.run(20)
    members = one.newest.members
    replica = one.replicas[0]
    replica.stalled_until = one.step_number + 4 * 60
    one.run(59)
    replica.queue.clear()  # what was sent to it is lost
    one.run(20)
    assert one.newest.members == members


def test_no_coordinator_restarts_evict_anybody() -> None:
    one = started()
    members = one.newest.members
    for number in range(6):
        one.restart_replica(number % 2)
        one.run(3)
    assert one.newest.members == members


def test_a_worker_that_is_started_again_at_once_does_not_wait() -> None:
    one = started()
    for _ in range(4):
        one.kill(1)
        one.start(1)
        begun = one.step_number
        while not is_member(one, 1):
            one.step()
            assert one.step_number - begun < 4 * 14  # until the silence of the one before is found
        one.run(12)


def test_a_flapping_worker_waits_longer_each_time() -> None:
    one = started()
    waits = []
    for _ in range(4):
        one.kill(1)
        one.run(12)
        assert not is_member(one, 1)
        one.start(1)
        begun = one.step_number
        while not is_member(one, 1):
            one.step()
            assert one.step_number - begun < 4 * 60
        waits.append((one.step_number - begun) / 4)
    # It was dead for eight of the seconds that it has to wait since it was evicted.
    assert waits[0] < 5
    assert waits == sorted(waits)
    assert 20 < waits[3] < 32


def test_a_worker_that_lived_long_has_a_clean_slate() -> None:
    one = started()
    for _ in range(3):
        one.kill(1)
        one.run(12)
        one.start(1)
        one.run(60)
    one.run(300)
    one.kill(1)
    one.run(12)
    one.start(1)
    one.run(6)
    assert is_member(one, 1)


def test_a_worker_started_again_while_its_former_life_is_a_member_joins_after_that_is_gone() -> (
    None
):
    one = started()
    before = who(one, 1)
    one.kill(1)
    one.start(1)
    one.run(6)
    assert is_member(one, 1)
    assert before in one.removed
    # It has kept its partitions, under a higher epoch, and nobody else's has moved.
    assert [v.cause for v in one.chain][-1].startswith("w1 is gone")


def test_of_two_workers_of_one_name_the_second_waits_and_takes_nothing() -> None:
    one = started()
    first, second = one.workers[1], Worker("w1", 1, nonces=100)
    one.workers.append(second)
    one.start(4)
    before = one.newest
    one.run(60)
    assert one.newest == before
    assert second.incarnation is None
    assert status(one).waiting == (("w1", f"incarnation {first.incarnation} is still a member"),)
    one.kill(1)
    one.run(8)
    assert one.newest.by_id["w1"].nonce == second.nonce
    assert second.incarnation == one.newest.by_id["w1"].incarnation


def test_postponed_candidate_does_not_end_the_collecting_time() -> None:
    waiting = JoinQueue(Limits())
    waiting.asks(candidate("w1", "second"), 0)
    for second in range(1, 12):
        waiting.asks(candidate("w1", "second"), second * 10**9)
    for worker in ("w2", "w3"):
        waiting.asks(candidate(worker), 11 * 10**9)
    assert waiting.due({"w1"}, 12 * 10**9) == ()
    assert [one.id for one in waiting.due({"w1"}, 14 * 10**9)] == ["w2", "w3"]


def test_a_process_that_exits_has_its_partitions_back_in_a_second_or_two() -> None:
    one = started(processes=2)
    before = one.newest
    one.exit_child(1)
    one.run(2)
    changed = [p for p, s in enumerate(one.newest.shares) if s.since != before.shares[p].since]
    assert changed
    assert all(one.newest.shares[p].owner == before.shares[p].owner for p in changed)
    assert one.newest.version == before.version + 1


def test_a_version_nobody_can_read_is_followed_by_one_that_gives_all_anew() -> None:
    one = started()
    one.damaged.add(one.newest.version)
    one.run(10)
    assert "cannot be read" in one.newest.cause
    assert {share.since for share in one.newest.shares} == {one.newest.version}
    one.run(30)
    one.check_settled()


def test_drained_worker_is_empty_and_its_leaving_moves_nothing() -> None:
    one = started(limits=Limits(partitions=16))
    one.command(Drain("w1", "rolling restart"))
    one.run(60)
    assert one.newest.owned_by("w1") == ()
    shares = one.newest.shares
    one.leave(1)
    one.run(5)
    assert "w1" not in one.newest.by_id
    assert [s.owner for s in one.newest.shares] == [s.owner for s in shares]
    one.start(1)
    one.run(6)
    assert is_member(one, 1), "who left in good order does not flap"


def test_graceful_leaves_do_not_count_as_flapping() -> None:
    one = started()
    for _ in range(3):
        one.leave(1)
        one.run(4)
        assert not is_member(one, 1)
        one.start(1)
        one.run(6)
        assert is_member(one, 1)


def test_a_worker_that_leaves_is_replaced_at_once() -> None:
    one = started()
    one.leave(1)
    after = evicted_after(one, 1)
    assert after is not None
    assert after <= 2.5


def test_failed_move_leaves_its_owner_and_is_tried_again_later() -> None:
    one = started()
    one.workers[3].fails_moves = True
    one.start(3)
    one.run(30)
    assert one.newest.owned_by("w3") == ()
    assert any("has failed: its digest differs" in v.cause for v in one.chain)
    versions = one.newest.version
    one.run(25)
    assert one.newest.version - versions <= 2
    one.workers[3].fails_moves = False
    one.run(120)
    one.check_settled()


# Commands.


def test_commands_are_answered_once_the_chain_has_them() -> None:
    one = started()
    frozen = one.command(Freeze("a night"))
    one.run(2)
    assert one.answers[frozen].version == one.newest.version
    assert one.newest.frozen == "a night"
    one.kill(1)
    one.start(3)
    one.run(30)
    assert one.newest.version == one.answers[frozen].version, "frozen is frozen"
    why = "its connections have ended, and it has not come back for 29 s"
    assert status(one).problems == (f"w1 is dead: {why}",)
    again = one.command(Freeze("a night"), 1)
    melted = one.command(Unfreeze("morning"), 1)
    one.run(2)
    assert (one.answers[again].refusal, one.answers[melted].refusal) == (None, None)
    one.run(60)
    one.check_settled()


def test_freeze_before_the_first_worker_is_refused() -> None:
    """Else the cluster would have the stages of no pipeline, and refuse every worker for ever."""
    one = Cluster()
    request = one.command(Freeze("not yet"))
    one.run(2)
    assert "no worker has joined yet" in (one.answers[request].refusal or "")
    assert one.newest.version == 0


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (Freeze(" "), "a command needs a reason"),
        (Freeze("x" * 201), "a reason of at most 200 characters"),
        (PinTo(99, "w1", "x"), "there is no partition 99: they are 0 to 7"),
        (PinTo(1, "w9", "x"), "there is no worker w9: there are w0, w1, w2"),
        (Drain("w9", "x"), "there is no worker w9"),
        (Move(-1, "w1", "x"), "there is no partition -1"),
    ],
)
def test_commands_that_cannot_be_followed_are_refused(command: object, refusal: str) -> None:
    one = started()
    request = one.command(command)  # type: ignore[arg-type]
    one.run(1)
    assert refusal in (one.answers[request].refusal or "")


def test_a_command_to_one_that_knows_old_news_is_answered_from_what_is_read_now() -> None:
    one = started()
    one.replicas[0].has_store = False
    one.command(Freeze("by the other"), 1)
    one.run(2)
    request = one.command(Unfreeze("at once"), 0)
    one.run(1)
    assert request not in one.answers, "it has not been done, and nobody knows"
    one.replicas[0].has_store = True
    one.run(6)
    assert one.newest.frozen is None
    assert one.answers[request].version == one.newest.version


def test_a_command_that_cannot_be_done_is_given_up_and_does_not_come_later() -> None:
    one = started()
    for replica in one.replicas:
        replica.has_store = False
    request = one.command(Freeze("a night"))
    one.run(29)
    assert request not in one.answers
    one.run(2)
    assert "not done within 30000 ms (command_wait_ms)" in (one.answers[request].refusal or "")
    for replica in one.replicas:
        replica.has_store = True
    one.run(20)
    assert one.newest.frozen is None


def test_a_move_is_refused_while_frozen_or_where_its_partition_is_pinned() -> None:
    one = started()
    one.command(PinTo(0, "w1", "its cache"))
    one.run(10)
    pinned = one.command(Move(0, "w2", "x"))
    one.run(1)
    assert one.answers[pinned].refusal == "partition 0 is pinned to w1: its cache"
    one.command(Freeze("a night"))
    one.run(2)
    frozen = one.command(Move(1, "w2", "x"))
    one.run(1)
    assert one.answers[frozen].refusal == "the assignment is frozen (a night): unfreeze it first"


def test_commands_do_not_wait_for_the_interval_between_versions() -> None:
    one = started()
    for number in range(3):
        one.command(PinTo(number, "w1", "x"), number % 2)
        one.run(1)
    assert len(one.newest.pins) == 3
    one.command(Undrain("w1", "was never drained"))
    one.run(1)
    assert one.answers["r4"].refusal is None


# Who may join.


def alone(limits: Limits | None = None) -> Coordinator:
    one = Coordinator("c1", 0, limits or Limits(partitions=4))
    one.step(ev.ChainRead(None, 0), 0)
    return one


def joined(one: Coordinator, *workers: str | Candidate, until_s: int = 5) -> Assignment:
    """Let workers join, by hand."""
    for second in range(until_s):
        for worker in workers:
            asks = candidate(worker) if isinstance(worker, str) else worker
            one.step(msg.Register(replace(asks, inputs=())), second * 10**9)
        for told in one.step(ev.Ticked(), second * 10**9 + 1):
            if isinstance(told, ins.Propose):
                one.step(ev.ChainRead(told.assignment, 1), second * 10**9 + 2)
                one.step(ev.ProposalEnded(), second * 10**9 + 3)
                return told.assignment
    raise AssertionError("nobody has joined")


OTHER_CODE = (
    "it has other code than the cluster's workers: ripple plan FILE --checkpoint-dir STORE shows "
    "what changes, and what becomes of state"
)


def register(one: Coordinator, **changes: object) -> list[ins.Instruction]:
    asked = replace(candidate("w2"), **{"inputs": ()} | changes)  # type: ignore[arg-type]
    return one.step(msg.Register(asked), 6 * 10**9)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"protocol": 2}, "its protocol is 2, the cluster's is 1"),
        ({"pipeline": "top"}, "its pipeline is top, the cluster's is vwap"),
        ({"plan_hash": "p9"}, f"its plan hash is p9, the cluster's is plan-1; {OTHER_CODE}"),
        (
            {"topology_hash": "t9"},
            f"its topology hash is t9, the cluster's is topology-1; {OTHER_CODE}",
        ),
        (
            {"schemas": (("quotes", "77"), ("trades", "60"))},
            "its schema of quotes is 77, the cluster's is absent; its schema of trades is 60, the "
            "cluster's is 5f; its schema of vwap is absent, the cluster's is a0",
        ),
    ],
)
def test_a_worker_that_does_not_fit_is_refused_with_what_differs(
    change: dict[str, object], text: str
) -> None:
    one = alone()
    joined(one, "w1")
    (told,) = register(one, code=replace(CODE, **change))  # type: ignore[arg-type]
    assert isinstance(told, ins.Refuse)
    assert told.reason == f"w2 does not fit this cluster: {text}"
    assert one.waiting.candidates == ()


def asks_from(one: Coordinator, incarnation: int, seconds: range, *, beats: bool) -> list[str]:
    """Let another w1 ask to join; return what it is told."""
    told = []
    for second in seconds:
        now_ns = second * 10**9
        if beats:
            one.step(msg.Heartbeat(("w1", incarnation), Report(0.1, (0,))), now_ns)
        told += one.step(msg.Register(replace(candidate("w1", "second"), inputs=())), now_ns)
        one.step(ev.Ticked(), now_ns)
    return [each.reason for each in told if isinstance(each, ins.Refuse)]


def test_a_worker_whose_id_another_has_that_is_well_is_told_so() -> None:
    one = alone()
    incarnation = joined(one, "w1").by_id["w1"].incarnation
    assert asks_from(one, incarnation, range(10, 14), beats=True) == []
    told = asks_from(one, incarnation, range(14, 16), beats=True)
    assert told == ["w1 is a member as incarnation 1, and is well: is an id given twice?"] * 2


def test_a_worker_that_has_come_back_waits_in_silence_for_its_former_self_to_go() -> None:
    one = alone()
    incarnation = joined(one, "w1").by_id["w1"].incarnation
    one.step(msg.Heartbeat(("w1", incarnation), Report(0.1, (0,))), 10 * 10**9)
    assert asks_from(one, incarnation, range(10, 30), beats=False) == []


def test_views_are_read_while_nobody_is_judged_yet() -> None:
    """So that one of a replica that has died before is known as old, and vouches for nobody."""
    one = alone()
    looked = [
        second
        for second in range(20)
        if any(isinstance(each, ins.ReadViews) for each in one.step(ev.Ticked(), second * 10**9))
    ]
    assert looked == [*range(8), *range(9, 20, 2)], "and later more seldom"


def told_alone(one: Coordinator, seconds: Iterable[int]) -> list[tuple[int, str]]:
    """Return the store requests of a coordinator without answers, with their times."""
    return [
        (second, type(told).__name__)
        for second in seconds
        for told in one.step(ev.Ticked(), second * 10**9)
    ]


def test_the_only_one_writes_no_view_until_it_finds_another() -> None:
    one = alone()
    writes = [at for at, what in told_alone(one, range(8)) if what == "WriteView"]
    assert writes == [0, 2, 4, 6], "one that began at the same moment finds it"
    assert told_alone(one, range(8, 60)) == [(at, "ReadViews") for at in range(9, 60, 2)]
    other = View("c2", 7, ())
    one.step(ev.ViewsRead((other,)), 60 * 10**9)
    assert told_alone(one, range(60, 64)) == [(60, "WriteView"), (62, "WriteView")]


def test_a_view_of_who_died_before_makes_it_write_none() -> None:
    one = alone()
    one.step(ev.ViewsRead((View("c2", 7, ()),)), 10**9)
    told_alone(one, range(9))
    assert "WriteView" not in [what for _, what in told_alone(one, range(9, 30))]
    one.step(ev.ViewsRead((View("c2", 8, ()),)), 30 * 10**9)
    assert (30, "WriteView") in told_alone(one, [30]), "it lives"


def test_an_input_that_partitions_do_not_divide_is_refused_with_numbers_that_fit() -> None:
    one = alone(Limits(partitions=8))
    (told,) = register(one, inputs=(("trades", 12),))
    assert isinstance(told, ins.Refuse)
    assert "trades has 12 partitions, which 8 does not divide" in told.reason
    assert "8, 16, 24" in told.reason
    assert "--partitions 6" in told.reason


def test_a_worker_that_needs_one_partition_gets_one() -> None:
    one = alone(Limits(partitions=8))
    needs = replace(CODE, stages=(("main", 1),))
    assert register(one, code=needs, inputs=(("trades", 12), ("quotes", 7))) == []


def test_an_input_that_grows_to_a_multiple_is_noted_and_any_other_is_a_problem() -> None:
    one = started(limits=Limits(partitions=4))
    beat = one.workers[0].beat(one.step_number)
    for replica in one.replicas:
        replica.state.step(
            msg.Heartbeat(beat.who, replace(beat.report, inputs=(("trades", 8),))), one.now_ns
        )
    one.step_number += 4
    one._serve(one.replicas[0])
    for _ in range(4):
        for replica in one.replicas:
            replica.state.step(
                msg.Heartbeat(beat.who, replace(beat.report, inputs=(("trades", 8),))), one.now_ns
            )
            one._serve(replica)
        one.step_number += 1
    assert one.newest.inputs == (("trades", 8),)
    one.replicas[0].state.step(
        msg.Heartbeat(beat.who, replace(beat.report, inputs=(("trades", 6),))), one.now_ns
    )
    assert any("trades has 6" in problem for problem in status(one).problems)


def test_a_second_worker_of_the_same_name_is_refused() -> None:
    one = alone()
    one.step(msg.Register(candidate("w1", nonce="one")), 0)
    (told,) = one.step(msg.Register(candidate("w1", nonce="other")), 1)
    assert isinstance(told, ins.Refuse)
    assert "another worker called w1 waits to join" in told.reason


def test_candidates_that_go_away_do_not_join() -> None:
    one = alone()
    for nonce in ("a", "b"):
        one.step(msg.Register(replace(candidate(nonce, nonce=nonce), inputs=())), 0)
    one.step(ev.Withdrawn("a"), 1)
    assert joined(one, "c").by_id.keys() == {"c"}  # b does not ask any more


def test_too_many_candidates_are_refused_by_the_limits_name() -> None:
    one = alone(Limits(partitions=4, candidates_max=1))
    one.step(msg.Register(replace(candidate("w1"), inputs=())), 0)
    (told,) = register(one)
    assert isinstance(told, ins.Refuse)
    assert "candidates_max" in told.reason


# Checkpoints.


def test_checkpoints_are_triggered_every_ten_seconds_without_waiting() -> None:
    one = started(limits=replace(LIMITS, checkpoint_interval_ms=10_000))
    one.triggers.clear()
    one.run(100)
    assert set(one.triggers) == {"w0", "w1", "w2"}
    assert all(9 <= count <= 12 for count in one.triggers.values()), one.triggers


def test_triggers_are_per_worker_and_do_not_wait_for_answers() -> None:
    one = alone(Limits(partitions=4, checkpoint_interval_ms=10_000))
    joined(one, "w1", "w2")
    told = []
    for second in range(5, 45):
        for worker in ("w1", "w2"):
            one.step(msg.Heartbeat((worker, 1), Report(0.5, (0,))), second * 10**9)
        ticked = one.step(ev.Ticked(), second * 10**9)
        told += [
            (each.who[0], second) for each in ticked if isinstance(each, ins.TriggerCheckpoint)
        ]
    assert len(told) == 8
    moments = {worker: [s for w, s in told if w == worker] for worker in ("w1", "w2")}
    for seconds in moments.values():
        assert {later - sooner for sooner, later in pairwise(seconds)} == {10}
    assert moments["w1"] != moments["w2"], "not all at the same moment"


# What is known.


def status(one: Cluster, number: int = 0):  # type: ignore[no-untyped-def]
    return status_of(one.replicas[number].state, one.now_ns)


def test_status_tells_who_is_there_and_what_moves() -> None:
    one = started()
    now = status(one)
    assert now.summary == (3, 3, 8, one.newest.version)
    assert [(m.id, m.standing, m.load) for m in now.members] == [
        (f"w{number}", HealthState.ACTIVE, 0.5) for number in range(3)
    ]
    assert sum(m.partitions for m in now.members) == 8
    assert now.replicas == ("c1 boot 0",)
    assert now.problems == ()
    one.start(3)
    one.run(1.5)
    assert status(one).waiting == (("w3", "joins soon"),)
    while not any(share.phase is Phase.WARMING for share in one.newest.shares):
        one.step()
    one.run(1)
    move, *_ = status(one).moves
    assert (move.target, move.phase) == ("w3/0", Phase.WARMING)


def test_status_names_what_somebody_should_look_at() -> None:
    one = started()
    for number in (0, 1):
        one.workers[number].paused_until = 10**9
    one.run(6)
    found = status(one).problems
    assert found[0].startswith("many workers are silent at once: none is evicted before 30 s")
    assert found[1].startswith("w0 is suspected: silent for ")


def test_a_coordinator_that_knows_nothing_does_nothing() -> None:
    one = Coordinator("c1", 0)
    for event in (
        ev.Ticked(),
        msg.Register(candidate("w1")),
        msg.Heartbeat(("w1", 3), Report()),
        ev.StreamEnded(("w1", 3)),
    ):
        told = one.step(event, 20 * 10**9)
        assert all(isinstance(each, (ins.WriteView, ins.ReadViews)) for each in told)
    assert status_of(one, 0) is None
    (told,) = one.step(ev.Commanded("r", Freeze("x")), 0)
    assert isinstance(told, ins.Answer)
    assert told.refusal == "the store has not been read yet: try again"


def test_a_member_from_a_later_version_makes_it_read_the_chain() -> None:
    one = alone()
    assert one.step(msg.Heartbeat(("w1", 9), Report()), 0) == [ins.ReadChain()]


def test_different_stages_are_refused_with_both_named() -> None:
    one = alone()
    joined(one, "w1")
    (told,) = register(one, code=replace(CODE, stages=(("main", 0), ("portfolio", 2))))
    assert isinstance(told, ins.Refuse)
    assert told.reason.endswith(
        "its stages are main of 4, portfolio of 2, the cluster's are main of 4"
    )


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        ((), "its stages are none"),
        ((("main", 0), ("main", 2)), "its stages are main of 4, main of 2: each has a name"),
        ((("main", -1),), "its stages are main of -1"),
        ((("main", 0), ("portfolio", 8192)), "8192 in all at most"),
    ],
)
def test_stages_that_cannot_be_are_refused_from_the_first_worker_too(
    stages: tuple[tuple[str, int], ...], text: str
) -> None:
    (told,) = register(alone(), code=replace(CODE, stages=stages))
    assert isinstance(told, ins.Refuse)
    assert text in told.reason


def test_partitions_asked_for_of_a_cluster_that_has_others_are_a_problem() -> None:
    one = alone()
    joined(one, "w1")
    other = Coordinator("c2", 0, Limits(partitions=8))
    other.step(ev.ChainRead(one.now, 1), 0)
    status = status_of(other, 1)
    assert status is not None
    assert status.problems == ("8 partitions are asked for, but a cluster keeps those it has: 4",)


def test_alerts_are_what_workers_say_and_who_is_silent() -> None:
    one = alone()
    joined(one, "w1", "w2")
    stale = Alert("CheckpointStale", "critical", "partition 3", 4.0)
    beat = msg.Heartbeat(("w2", 1), Report(0.5, (0,), alerts=(stale,)))
    one.step(beat, 40 * 10**9)
    found = status_of(one, 40 * 10**9)
    assert found is not None
    silent, other = found.alerts
    assert (silent.worker, silent.alert.name) == ("w1", "WorkerSilent")
    assert silent.alert.cause == "it was not heard for 35 s"
    assert other == AlertStatus("w2", stale)
    one.step(msg.Heartbeat(("w1", 1), Report(0.5, (0,))), 41 * 10**9)
    one.step(msg.Heartbeat(("w2", 1), Report(0.5, (0,))), 41 * 10**9)
    after = status_of(one, 41 * 10**9)
    assert after is not None
    assert after.alerts == ()


def test_failing_partitions_are_problems_of_many_the_first() -> None:
    one = alone(Limits(partitions=12))
    joined(one, "w1")
    failed = tuple(MoveFailed(number, "w1/0", "the disk is full") for number in range(12))
    one.step(msg.Heartbeat(("w1", 1), Report(0.1, (0,), failed=failed)), 6 * 10**9)
    found = status_of(one, 6 * 10**9)
    assert found is not None
    failing = [problem for problem in found.problems if "tried again" in problem]
    assert failing[0] == "partition 0 has failed at w1/0, and is tried again: the disk is full"
    assert len(failing) == 8
    assert "so have 4 more partitions" in found.problems


def test_a_worker_that_reads_or_writes_elsewhere_is_refused_by_name() -> None:
    ends = (("output out", "log:/a/v"), ("source", "log:/a/trades"))
    one = alone()
    one.store = "ripple 1f"
    ours = replace(candidate("w1"), code=replace(CODE, ends=ends), store="ripple 1f")
    joined(one, ours)
    for other, said in (
        ((("output out", "log:/b/v"), ends[1]), "its output out is log:/b/v, the cluster's is log"),
        ((ends[0],), "its source is absent, the cluster's is log:/a/trades"),
    ):
        stranger = replace(ours, id="w9", nonce="n9", code=replace(CODE, ends=other))
        (refused,) = one.step(msg.Register(stranger), 10 * 10**9)
        assert isinstance(refused, ins.Refuse)
        assert said in refused.reason
    elsewhere = replace(ours, id="w9", nonce="n9", store="other 2e")
    (refused,) = one.step(msg.Register(elsewhere), 11 * 10**9)
    assert isinstance(refused, ins.Refuse)
    assert "its store is that of other 2e, the coordinators' is that of" in refused.reason
    of_before = replace(ours, id="w8", nonce="n8", code=CODE, store="")
    assert not one.step(msg.Register(of_before), 12 * 10**9), "a version before did not say it"


def test_a_worker_that_does_not_fit_is_an_alert_for_as_long_as_it_asks() -> None:
    one = alone()
    joined(one, "w1")
    stranger = replace(candidate("w9"), code=replace(CODE, plan_hash="other"))
    for second in (10, 15):
        one.step(msg.Register(stranger), second * 10**9)
    found = status_of(one, 16 * 10**9)
    assert found is not None
    (alert,) = found.alerts
    assert (alert.worker, alert.alert.name, alert.alert.seconds) == ("w9", "SchemaMismatch", 5)
    assert "its plan hash is other" in alert.alert.cause
    assert found.waiting == (("w9", alert.alert.cause),)
    one.step(ev.Ticked(), 24 * 10**9)
    after = status_of(one, 24 * 10**9)
    assert after is not None
    assert "SchemaMismatch" not in {each.alert.name for each in after.alerts}
    one.step(msg.Register(stranger), 25 * 10**9)
    one.step(msg.Register(candidate("w9")), 26 * 10**9)
    again = status_of(one, 26 * 10**9)
    assert again is not None
    assert again.waiting == (("w9", "joins soon"),)


def test_texts_of_a_candidate_have_limits() -> None:
    for changes in ({"nonce": "n" * 257}, {"addresses": (("a", "b"),) * 513}):
        with pytest.raises(AssignmentError, match="says too much of itself"):
            replace(candidate("w1"), **changes)  # type: ignore[arg-type]
    with pytest.raises(AssignmentError, match="0 processes"):
        candidate("w1", processes=0)


def test_jitter_is_within_its_limit_and_differs_between_replicas() -> None:
    limits = Limits()
    waits = []
    for name in ("c1", "c2", "c3"):
        one = Coordinator(name, 0, limits)
        one.newest_number = 7
        waits.append(one._due_ns(10**12) - 10**12)
    assert len(set(waits)) == 3
    assert all(0 <= wait < limits.jitter_ms * MS for wait in waits)


def test_guards_can_be_switched_off_by_name() -> None:
    assert without("a")("b")
    assert not without("a")("a")


def test_a_command_leaves_a_store_alone_that_takes_nothing() -> None:
    """It can be read: what is read tells that the version is not there, and it is tried again."""
    one = alone()
    now = joined(one, "w1")
    at_ns, proposed = 6 * 10**9, 0
    one.step(msg.Heartbeat(("w1", 1), Report(0.1, (0,))), at_ns)
    events: list[ev.Event] = [ev.Commanded("r", Freeze("x"))]
    for _ in range(400):  # ten seconds
        at_ns += 25 * MS
        told = [each for event in events for each in one.step(event, at_ns)]
        proposed += sum(isinstance(each, ins.Propose) for each in told)
        is_wanted = any(isinstance(each, (ins.Propose, ins.ReadChain)) for each in told)
        events = [ev.ChainRead(now, 1), ev.ProposalEnded()] if is_wanted else [ev.Ticked()]
    assert 8 <= proposed <= 11


def test_while_the_store_fails_it_is_left_alone_between_proposals() -> None:
    one = alone()
    proposed = 0
    for tick in range(4 * 20):
        now_ns = tick * 250 * MS
        one.step(msg.Register(replace(candidate("w1"), inputs=())), now_ns)
        for told in one.step(ev.Ticked(), now_ns):
            if isinstance(told, ins.Propose):
                proposed += 1
                assert ins.ReadChain() in one.step(ev.ProposalEnded(), now_ns)
    assert 14 <= proposed <= 17, "one a second, after three seconds of collecting"


def test_a_version_without_a_partition_has_not_moved_it() -> None:
    """As one that a command of a later version is compared with."""
    now = started().newest
    assert not is_done(Move(len(now.shares), "w1", "x"), now)
