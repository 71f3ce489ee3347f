"""Events of tasks and of a worker's membership as text, for logs and for people."""

from __future__ import annotations

import json

from ripple.core import cut as cuts
from ripple.core.arguments import plain
from ripple.core.events import (
    Applying,
    AssignmentUnread,
    Called,
    CommitWaits,
    CoordinatorFound,
    CoordinatorLost,
    DeadLettersLost,
    EntriesLost,
    Event,
    Evicted,
    FailedBefore,
    FromFuture,
    InputBack,
    InputIdle,
    InputsEmpty,
    InputWaits,
    Joined,
    JoinPostponed,
    JoinRefused,
    ManyQuarantined,
    NotesLost,
    NotesUnwritten,
    OutputTruncated,
    PartitionFailed,
    PeerConnected,
    PeerLost,
    Promise,
    Quarantined,
    RecordsRefused,
    RecoveryStalled,
    Remark,
    Restored,
    Silences,
    Stabilized,
    Stabilizing,
    StoreFailed,
    StoreHandedOver,
    Uncomputable,
    UnskippableRecord,
    VeryLate,
)

INPUTS_SHOWN = 5


def line_of(event: Event) -> str | None:
    """Return the text of an event in one line, None if it is only counted."""
    text = _text_of(event)
    return None if text is None else plain(text)


def _text_of(event: Event) -> str | None:
    match event:
        case Stabilized() | Silences() | Called():  # first, since one comes with each batch
            return None
        case Promise(sink, text):
            return f"{sink}: {text}"
        case OutputTruncated(sink, length_bytes):
            return f"{sink}: cut off {length_bytes} bytes after the last commit"
        case Quarantined(name, offset, reason):
            return f"{name}, offset {offset}: {reason}; it becomes a dead letter"
        case UnskippableRecord(name, offset):
            return (
                f"{name}, offset {offset}: it ends each run that replays it, but an output "
                "contains it already, so it cannot be skipped: fix the pipeline"
            )
        case FailedBefore(doing, reason):
            return f"the previous run ended while it {_doing(doing)}: {reason}"
        case RecoveryStalled(cut, kills):
            return (
                f"{kills} runs were killed while they stabilized the views, the last one at "
                f"{_cut(cut)}: by a timeout that is too short, for lack of memory, or by an "
                "aggregate of your own? A smaller --batch makes smaller steps"
            )
        case ManyQuarantined(count, deaths):
            return (
                f"{count} records became dead letters because each ended the run {deaths} times: "
                "the records are hardly the cause; ripple dead-letter list shows them"
            )
        case Restored() | StoreFailed() | CommitWaits() | InputWaits() | InputBack() | InputIdle():
            return _of_state(event)
        case _:
            return _of_exceptions(event) or _of_hints(event) or _of_membership(event)


def _of_exceptions(event: Event) -> str | None:
    """Return the text of an event about records or rows that are missing in a result."""
    match event:
        case Uncomputable(fold, rows, final, key, step, reason):
            absent = f"rows of {fold!r} that cannot be computed, and are absent: {rows}"
            finally_ = f", {final} of them permanently" if final else ""
            first = f"; the first: key {key!r}, step {step!r}: {reason}" if step else ""
            return f"{absent}{finally_}{first}"
        case FromFuture(count):
            return (
                f"events far ahead of their watermark: {count}; they count and advance it, so "
                "that events of the present may be very late: is a clock wrong? After a pause of "
                "the input, such as a night, they are usual"
            )
        case VeryLate(count):
            return (
                f"very late events, which are not counted in results: {count}; a larger "
                "out_of_order= of the source, or lateness=, counts them"
            )
        case InputsEmpty(source, inputs, node, is_idle, is_divided):
            more = len(inputs) - INPUTS_SHOWN
            named = ", ".join(inputs[:INPUTS_SHOWN]) + (f" and {more} more" if more > 0 else "")
            has = "has" if len(inputs) == 1 else "have"
            where = ", in a cluster that divides no records anew" if is_divided else ""
            remedy = (
                "or after its idle= in a run that goes on (--follow)"
                if is_idle
                else f'if none may come, say .source({source!r}, ..., idle="30s"){where}'
            )
            return (
                f"{named} {has} no record so far: rows of {node!r} that wait for the watermark "
                f"come with the first one there{',' if is_idle else ';'} {remedy}"
            )
        case RecordsRefused(name, count, cause):
            return f"records of {name} that became dead letters: {count}; the last one: {cause}"
        case _:
            return None


def _of_membership(event: Event) -> str | None:
    """Return the text of an event about a worker's membership."""
    match event:
        case StoreHandedOver():
            return "the next owner has its checkpoints from here on, and takes over soon"
        case PartitionFailed(partition, epoch, error):
            why = str(error) or type(error).__name__
            return f"partition {partition} has failed in epoch {epoch}, and is tried again: {why}"
        case CoordinatorFound(coordinator):
            return f"coordinator {coordinator} answers"
        case CoordinatorLost(coordinator, reason):
            return f"coordinator {coordinator} does not answer: {reason}"
        case AssignmentUnread(reason):
            return f"the assignment cannot be read; its last known version stays valid: {reason}"
        case JoinRefused(coordinator, reason):
            return f"coordinator {coordinator} refuses: {reason}"
        case JoinPostponed(coordinator, wait_ms, reason):
            return f"coordinator {coordinator} postpones joining by {wait_ms / 1000:g} s: {reason}"
        case Joined(worker, incarnation):
            return f"{worker} has joined, as incarnation {incarnation}"
        case Evicted(worker, incarnation, version, cause):
            return (
                f"{worker}, incarnation {incarnation}, is no longer a member in version {version} "
                f"({cause}): it owns nothing, and asks to join again"
            )
        case _:
            return _of_peers(event)


def _of_peers(event: Event) -> str | None:
    """Return the text of an event about a connection between engine processes."""
    match event:
        case PeerConnected(process):
            return f"connected to {process}"
        case PeerLost(process, reason):
            return f"no connection to {process}: {reason}"
        case _:
            return None


def _of_hints(event: Event) -> str | None:
    """Return the text of an event about a loss or a failed write that affects no result."""
    match event:
        case Remark(text):
            return text
        case DeadLettersLost(damage):
            return (
                f"dead letters cannot be read and are skipped ({'; '.join(damage)}): if their "
                "records are read again they are written again, the others are lost"
            )
        case EntriesLost(damage):
            return (
                f"entries of the manifest cannot be read and are skipped ({'; '.join(damage)}): "
                "their checkpoints are lost"
            )
        case NotesLost(why):
            return f"deaths are counted anew, since the notes about them are lost: {why}"
        case NotesUnwritten(place, error):
            return (
                f"{place} cannot be written; until it can, no death is attributed to a record: "
                f"{error.strerror or error}"
            )
        case _:
            return None


def _doing(doing: Applying | Stabilizing) -> str:
    if isinstance(doing, Stabilizing):
        return f"stabilized the views at {_cut(doing.cut)}"
    return f"applied records {doing.first_offset} to {doing.next_offset} of {doing.input}"


def _of_state(
    event: Restored | StoreFailed | CommitWaits | InputWaits | InputBack | InputIdle,
) -> str:
    if isinstance(event, StoreFailed):
        since = "none" if event.last is None else cuts.brief(event.last)
        return (
            f"a checkpoint was not stored (the last stored one: {since}; none could be for "
            f"{event.seconds:.1f} s, and {_events(event.debt)} would be replayed): {event.error}"
        )
    if isinstance(event, CommitWaits):
        who = f"{event.rows} rows have" if event.rows else "the output has"
        return f"{who} waited {event.seconds:.1f} s for a commit: {event.error}"
    if isinstance(event, InputWaits):
        return f"the input is unavailable for {event.seconds:.1f} s: {event.error}"
    if isinstance(event, InputBack):
        return f"the input is available again after {event.seconds:.1f} s, and reading continues"
    if isinstance(event, InputIdle):
        return f"{event.input} is silent, and holds nothing back: a marker is recorded"
    start = cuts.brief(event.start)
    parts = [f"skipped: {one.why}" for one in event.skipped]
    if event.checkpoint is not None:
        parts.append(f"restored checkpoint {event.checkpoint} at {start}")
    elif event.cut == event.start:
        return "; ".join([*parts, f"begins at {start}"])
    parts.append(
        f"replayed {_events(event.events)} from {start or 'nothing'} to {cuts.brief(event.cut)} in "
        f"{event.seconds:.3f} s, digest {event.digest}"
    )
    return "; ".join(parts)


def _events(count: int) -> str:
    return f"{count} event{'' if count == 1 else 's'}"


def _cut(cut: object) -> str:
    return json.dumps(cut)
