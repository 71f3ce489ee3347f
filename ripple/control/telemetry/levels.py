"""Levels and components of events in the log."""

from __future__ import annotations

from enum import IntEnum

from ripple.core import events


class Level(IntEnum):
    """As ``logging`` has them."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


LEVELS = {level.name.lower(): level for level in Level}

_OF: dict[type, tuple[Level, str]] = {
    events.Stabilized: (Level.DEBUG, "graph"),
    events.Committed: (Level.DEBUG, "partition"),
    events.CommitWaits: (Level.ERROR, "partition"),
    events.InputWaits: (Level.ERROR, "partition"),
    events.InputBack: (Level.INFO, "partition"),
    events.InputIdle: (Level.INFO, "partition"),
    events.InputsEmpty: (Level.WARN, "partition"),
    events.Silences: (Level.DEBUG, "partition"),
    events.Called: (Level.DEBUG, "partition"),
    events.Stored: (Level.DEBUG, "checkpoint"),
    events.CoordinatorAnswered: (Level.DEBUG, "membership"),
    events.Restored: (Level.INFO, "checkpoint"),
    events.StoreFailed: (Level.ERROR, "checkpoint"),
    events.StoreHandedOver: (Level.INFO, "checkpoint"),
    events.CheckpointSkipped: (Level.WARN, "checkpoint"),
    events.Diverged: (Level.ERROR, "partition"),
    events.PartitionFailed: (Level.ERROR, "partition"),
    events.UnskippableRecord: (Level.ERROR, "partition"),
    events.ManyQuarantined: (Level.ERROR, "partition"),
    events.DeadLettersLost: (Level.WARN, "partition"),
    events.EntriesLost: (Level.WARN, "checkpoint"),
    events.NotesLost: (Level.WARN, "partition"),
    events.NotesUnwritten: (Level.WARN, "partition"),
    events.Quarantined: (Level.WARN, "partition"),
    events.Uncomputable: (Level.WARN, "graph"),
    events.FromFuture: (Level.WARN, "partition"),
    events.VeryLate: (Level.WARN, "partition"),
    events.RecordsRefused: (Level.WARN, "partition"),
    events.RecoveryStalled: (Level.WARN, "partition"),
    events.FailedBefore: (Level.WARN, "partition"),
    events.OutputTruncated: (Level.WARN, "partition"),
    events.PeerConnected: (Level.INFO, "transport"),
    events.PeerLost: (Level.WARN, "transport"),
    events.CoordinatorFound: (Level.INFO, "membership"),
    events.CoordinatorLost: (Level.WARN, "membership"),
    events.AssignmentUnread: (Level.WARN, "membership"),
    events.JoinRefused: (Level.WARN, "membership"),
    events.JoinPostponed: (Level.INFO, "membership"),
    events.Joined: (Level.INFO, "membership"),
    events.Evicted: (Level.WARN, "membership"),
}


def level_of(event: events.Event) -> tuple[Level, str]:
    """Return an event's level and component."""
    return _OF.get(type(event), (Level.INFO, "partition"))


def context_of(event: events.Event) -> tuple[str, dict[str, object]]:
    """Return the text of an event that is only logged at level debug, and its numbers."""
    match event:
        case events.Stabilized(engine, took_ns):
            graph = engine.graph
            recomputed, dirty = graph.last_recompute_count, len(graph.dirty_nodes())
            numbers = {"nodes": graph.node_count, "recomputed": recomputed, "dirty": dirty}
            return "stabilized", numbers | {"nanoseconds": took_ns}
        case events.Committed():
            return "committed", {"cut": dict(event.cut), "rows": event.rows}
        case events.Stored():
            about = {"checkpoint": event.checkpoint, "bytes": event.length_bytes}
            return "checkpoint written", about | {"cut": dict(event.cut)}
        case events.Silences():
            idle, recorded = dict(event.idle), dict(event.recorded)
            return "silences", {"idle": idle, "recorded": recorded}
        case events.Called():
            numbers = {"calls": sum(event.calls.values()), "log_bytes": event.log_bytes}
            return "called", numbers | {"failures": sum(event.failures.values())}
        case events.CoordinatorAnswered():
            return "heartbeat", {"coordinator": event.coordinator}
        case _:
            return "", {}
