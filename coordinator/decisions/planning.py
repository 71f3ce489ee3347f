"""Planning: the next version of the assignment, from the present one and the reported facts.

    commands -> members -> failover -> end moves -> begin commanded -> assign -> switch -> begin
        -> standbys

A function of its arguments, so that two coordinators with the same facts propose the same; and of
the present alone: a proposal that lost is made again from the one that won.

Invariants: the returned version may follow (``ripple.control.assignment.rules``); every partition
has an owner if any member may have one; a leaving worker gets nothing; planned moves in progress
stay within their limits, and a failed one leaves the present owner, or falls to an eligible one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from coordinator.decisions.commands import Command, Move, is_done, movable, obeyed, refusal
from coordinator.decisions.compatibility import input_problems, misfit, stages_of
from coordinator.decisions.placement import place
from coordinator.decisions.ring import partition_point, ring_of
from coordinator.decisions.standbys import standbys
from ripple.control.assignment import (
    Assignment,
    Candidate,
    Member,
    Phase,
    Share,
    empty,
    worker_of,
)
from ripple.world.ports import Guards, all_guards

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.decisions.limits import Limits

CAUSES_MAX = 12
NAMES_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a coordinator apart from the chain, and its decisions that are due.

    gone: workers to be removed, and why. joining: candidates that may join. starts: how often
    members' processes were started. live: (partition, since) that its owner has reported to be
    live. warm: (partition, process) where a standby has caught up. failed: the same, where a move
    has failed, and why. blocked: where no move is to be tried now.
    """

    gone: Mapping[str, str] = field(default_factory=dict)
    joining: tuple[Candidate, ...] = ()
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: Mapping[str, int] = field(default_factory=dict)
    live: frozenset[tuple[int, int]] = frozenset()
    warm: frozenset[tuple[int, str]] = frozenset()
    failed: Mapping[tuple[int, str], str] = field(default_factory=dict)
    blocked: frozenset[tuple[int, str]] = frozenset()
    commands: tuple[Command, ...] = ()


def next_version(
    before: Assignment,
    newest_number: int,
    facts: Facts,
    limits: Limits,
    *,
    is_readable: bool = True,
    guards: Guards = all_guards,
) -> Assignment | None:
    """Return the version after ``newest_number``, None if nothing is to change.

    before: the newest known version. If that is not ``newest_number``, or others cannot read it any
    more, members may know different versions, and everything is assigned anew.
    """
    if before.version == 0:
        # The first version fixes the stages, which only a worker knows.
        if not facts.joining:
            return None
        first = min(facts.joining, key=lambda one: one.id)
        before = empty(stages_of(first.code, limits.partitions, dict(first.inputs)))
    draft = _Draft(before, newest_number + 1, limits, guards)
    if newest_number != before.version or not is_readable:
        draft.give_anew()
    draft.apply_commands(facts.commands)
    if draft.now.frozen is None:
        draft.change_members(facts)
        draft.fail_over()
        draft.end_moves(facts)
        draft.begin_commanded(facts.commands)
        draft.assign(facts)
        draft.assign_standbys()
    return draft.version()


class _Draft:
    """The next version while it is made: ``now`` with ``shares`` in place of its own."""

    def __init__(self, before: Assignment, version: int, limits: Limits, guards: Guards) -> None:
        self.before = before
        self.now = replace(before, version=version)
        self.shares = list(before.shares)
        self.causes: list[str] = []
        self._limits = limits
        self._guards = guards

    def version(self) -> Assignment | None:
        """Return the finished version, None if it equals the one before."""
        shown = self.causes[:CAUSES_MAX]
        if len(self.causes) > CAUSES_MAX:
            shown.append(f"and {len(self.causes) - CAUSES_MAX} more")
        after = replace(self.now, shares=tuple(self.shares))
        if after == replace(self.before, version=after.version):
            return None
        return replace(after, cause="; ".join(shown))

    def give_anew(self) -> None:
        """Assign everything anew: members are new incarnations, owners own since this version."""
        version = self.now.version
        if self.before.version:
            why = f"version {version - 1} cannot be read"
        else:
            why = f"no version before {version} can be read"
        self.causes.append(f"{why}: everything is assigned anew")
        if not self._guards("give_anew"):
            return
        self.now = self.now.with_members(
            replace(member, incarnation=version) for member in self.now.members
        )
        self.shares = [
            Share(share.owner, version if share.owner is not None else 0) for share in self.shares
        ]

    def apply_commands(self, commands: Iterable[Command]) -> None:
        """Apply commands that can be followed, except moves."""
        for command in commands:
            if refusal(command, self.now) is None and not is_done(command, self.now):
                after = obeyed(self.now, command)
                if after is not self.now:
                    self.now = after
                    self.causes.append(str(command))

    def change_members(self, facts: Facts) -> None:
        """Remove members that are gone, count restarted processes, and let candidates join."""
        members = {member.id: member for member in self.now.members}
        for worker in sorted(facts.gone.keys() & members.keys()):
            del members[worker]
            self.causes.append(f"{worker} is gone: {facts.gone[worker]}")
        for worker in sorted(facts.starts.keys() & members.keys()):
            starts = facts.starts[worker]
            if starts != members[worker].starts:
                members[worker] = replace(members[worker], starts=starts)
                self.causes.append(f"a process of {worker} was restarted")
        self._grow(facts.inputs)
        joined = []
        for candidate in sorted(facts.joining, key=lambda one: one.id):
            code = next(iter(members.values())).code if members else candidate.code
            if candidate.id not in members and misfit(candidate, code, self.now) is None:
                members[candidate.id] = self._member(candidate)
                joined.append(candidate.id)
                self._grow(dict(candidate.inputs))
        if joined:
            self.causes.append(_named(joined) + (" joins" if len(joined) == 1 else " join"))
        self.now = self.now.with_members(members.values())

    def _member(self, candidate: Candidate) -> Member:
        return Member(
            id=candidate.id,
            incarnation=self.now.version,
            nonce=candidate.nonce,
            addresses=candidate.addresses,
            starts=(0,) * candidate.processes,
            code=candidate.code,
        )

    def _grow(self, inputs: Mapping[str, int]) -> None:
        """Note inputs that are new, or have more partitions now, where those fit."""
        known = dict(self.now.inputs)
        for name, count in sorted(inputs.items()):
            if known.get(name) != count and not input_problems({name: count}, self.now):
                self.causes.append(f"{name} has {count} partitions")
                known[name] = count
        self.now = replace(self.now, inputs=tuple(sorted(known.items())))

    def fail_over(self) -> None:
        """Reassign the partitions of processes that are gone or restarted (failover).

        First choice is the process that follows it: the target of a move, or the standby; then the
        former owner.
        """
        lost = {
            process
            for process in self.before.processes
            if self.before.start_of(process) != self.now.start_of(process)
        }
        there = set(self.now.processes)
        for partition, share in enumerate(self.shares):
            following = share.next if share.next not in lost else None
            former = share.former if share.former not in lost else None
            if share.owner in lost:
                standby = share.standby if share.standby not in lost else None
                back = share.owner if share.owner in there else None
                self._give(partition, following or standby or former or back)
            elif (following, former) != (share.next, share.former):
                self.shares[partition] = replace(share, next=following, former=former)

    def _give(self, partition: int, owner: str | None) -> None:
        """Assign a partition to a process, which may be following it."""
        standby = self.shares[partition].standby
        since = 0 if owner is None else self.now.version
        self.shares[partition] = Share(owner, since, standby=standby if standby != owner else None)

    def end_moves(self, facts: Facts) -> None:
        """Complete finished moves, and end failed ones."""
        done = 0
        for partition, share in enumerate(self.shares):
            if share.phase is Phase.SWITCHING:
                if (partition, share.since) in facts.live:
                    self.shares[partition] = replace(share, former=None)
                    done += 1
                elif (partition, share.owner) in facts.failed:
                    self._fail(partition, facts.failed[partition, share.owner or ""])
                    self._give(partition, share.former)
            elif share.phase is Phase.WARMING and (partition, share.next) in facts.failed:
                self._fail(partition, facts.failed[partition, share.next or ""])
                self.shares[partition] = replace(share, next=None)
        if done:
            self.causes.append(f"{_counted(done, 'move')} complete")

    def _fail(self, partition: int, why: str) -> None:
        self.causes.append(f"the move of partition {partition} has failed: {why}")

    def begin_commanded(self, commands: Iterable[Command]) -> None:
        """Begin commanded moves, with one back where balance asks for it."""
        for command in commands:
            if not isinstance(command, Move) or refusal(command, self.now) is not None:
                continue
            now = replace(self.now, shares=tuple(self.shares))
            if is_done(command, now) or not movable(now, command):
                continue
            count = Counter(share.target for share in self.shares)
            processes = now.by_id[command.worker].processes
            to = min(processes, key=lambda process: (count[process], process))
            source = self.shares[command.partition].owner or ""
            back = None
            if count[source] <= count[to] and source in self._eligible():
                back = self._best_back(to, source, command.partition)
            moves = (
                {command.partition: to} if back is None else {command.partition: to, back: source}
            )
            if self._has_room(moves):
                for partition, process in moves.items():
                    self.shares[partition] = replace(self.shares[partition], next=process)
                self.causes.append(str(command))

    def _best_back(self, holder: str, receiver: str, but: int) -> int | None:
        """Return the movable partition of a process that its receiver prefers most, if any."""
        ring = ring_of(tuple(sorted({holder, receiver})), self._limits.virtual_nodes)
        pinned = {pin.partition for pin in self.now.pins}
        found = [
            (next(iter(ring.walk(partition))) != receiver, partition_point(partition), partition)
            for partition, share in enumerate(self.shares)
            if share.owner == holder and share.phase is Phase.OWNED
            if partition not in pinned and partition != but
        ]
        return min(found)[-1] if found else None

    def assign(self, facts: Facts) -> None:
        """Assign partitions without an owner; continue planned moves towards the best placement."""
        eligible = self._eligible()
        if not eligible:
            return
        effective = [share.target for share in self.shares]
        targets = place(
            effective,
            eligible,
            pinned=self._pinned(eligible),
            virtual_nodes=self._limits.virtual_nodes,
        )
        wanted, given, dropped = {}, 0, 0
        for partition, (share, target) in enumerate(zip(self.shares, targets, strict=True)):
            if share.owner is None:
                self._give(partition, target)
                given += 1
            elif target != share.target and share.phase is not Phase.SWITCHING:
                dropped += share.next is not None
                self.shares[partition] = replace(share, next=None)
                if target is not None and target != share.owner:
                    wanted[partition] = target
        if given:
            self.causes.append(f"{_counted(given, 'partition')} assigned to members")
        if dropped:
            self.causes.append(f"{dropped} moves are not needed any more")
        self._switch(facts)
        self._begin(wanted, facts)

    def _switch(self, facts: Facts) -> None:
        """Hand over to standbys that have caught up."""
        switched = 0
        for partition, share in enumerate(self.shares):
            if share.next is not None and (partition, share.next) in facts.warm:
                self._give(partition, share.next)
                self.shares[partition] = replace(self.shares[partition], former=share.owner)
                switched += 1
        if switched:
            self.causes.append(f"{_counted(switched, 'partition')} handed to the next owners")

    def _begin(self, wanted: dict[int, str], facts: Facts) -> None:
        """Begin moves, first away from leaving workers, as many as may be in progress."""
        eligible = set(self._eligible())
        begun = 0
        for partition in sorted(
            wanted, key=lambda p: (self.shares[p].owner in eligible, partition_point(p))
        ):
            target = wanted[partition]
            is_away = self.shares[partition].owner not in eligible
            has_room = self._may_go_to(target) if is_away else self._has_room({partition: target})
            if has_room and (partition, target) not in facts.blocked:
                self.shares[partition] = replace(self.shares[partition], next=target)
                begun += 1
        if begun:
            self.causes.append(f"{_counted(begun, 'move')} begun")

    def assign_standbys(self) -> None:
        """Assign the configured standbys."""
        members = self._eligible() if self._limits.standbys else ()
        found = standbys(self.shares, members, virtual_nodes=self._limits.virtual_nodes)
        changed = 0
        for partition, standby in enumerate(found):
            changed += standby is not None and standby != self.shares[partition].standby
            self.shares[partition] = replace(self.shares[partition], standby=standby)
        if changed:
            self.causes.append(f"{changed} partitions have new standbys")

    def _may_go_to(self, target: str) -> bool:
        """Return whether one more partition of a leaving worker may move to a process."""
        if not self._guards("move_limits"):
            return True
        under_way = sum(s.phase is not Phase.OWNED and s.target == target for s in self.shares)
        return under_way < self._limits.moves_away_per_target

    def _has_room(self, moves: Mapping[int, str]) -> bool:
        """Return whether these moves may be in progress together with the present ones."""
        if not self._guards("move_limits"):
            return True
        targets = [share.target for share in self.shares if share.phase is not Phase.OWNED]
        targets += moves.values()
        most = max(Counter(targets).values())
        return (
            len(targets) <= self._limits.moves_of(len(self.shares))
            and most <= self._limits.moves_per_target
        )

    def _eligible(self) -> tuple[str, ...]:
        """Return the processes that may get partitions."""
        return tuple(
            process
            for member in self.now.members
            if not member.is_leaving
            for process in member.processes
        )

    def _pinned(self, eligible: tuple[str, ...]) -> dict[int, str]:
        """Return the process of each pinned partition whose worker may get it."""
        count = Counter(share.target for share in self.shares)
        found = {}
        for pin in self.now.pins:
            here = [process for process in eligible if worker_of(process) == pin.worker]
            target = self.shares[pin.partition].target
            if here:
                chosen = target if target in here else min(here, key=lambda p: (count[p], p))
                found[pin.partition] = chosen or here[0]
                count[chosen] += chosen != target
        return found


def _named(names: list[str]) -> str:
    """Return names for people, not all of many."""
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
