"""A cluster's status, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.lib.output_forms import coloured, write_table
from ripple.control.assignment import Level
from ripple.core.arguments import plain

if TYPE_CHECKING:
    from coordinator.decisions.status import Status
    from ripple.control.assignment import Backpressure


def print_status(address: str, status: Status, *, has_partitions: bool = False) -> None:
    """Print the tables; ``has_partitions``: with the owner of each partition."""
    active, workers, partitions, version = status.summary
    owned = partitions - status.unowned
    assigned = (
        f"{partitions} assigned" if not status.unowned else f"{owned} of {partitions} assigned"
    )
    others = f"hears {', '.join(status.replicas)}" if status.replicas else "hears no other"
    print("Ripple Cluster Status")
    print("-" * 52)
    print(f"Coordinator:  {address} (replica {status.replica}, {others})")
    print("Format:       text")
    print("Status:       [connected]")
    scale = status.scale
    wanted = "" if scale is None or scale.wanted == scale.now else f", {scale.wanted} are wanted"
    why = f": {scale.why}" if scale is not None and wanted else ""
    print(f"Workers:      {active}/{workers} active{wanted}{why}")
    print(f"Partitions:   {assigned}")
    # The version of the assignment: the epochs of partitions derive from it.
    print(
        f"Version:      {version}: {plain(status.cause)}" if version else "Version:      none yet"
    )
    if status.frozen is not None:
        print(f"Frozen:       {plain(status.frozen)}")
    write_table(
        ("WORKER", "STANDING", "SILENT", "LOAD", "QUEUES", "PARTITIONS", "SINCE", "ADDRESSES"),
        (
            (
                one.id,
                one.standing.value + (", leaving" if one.is_leaving else ""),
                f"{one.silent_ms / 1000:.1f} s",
                "-" if one.load is None else f"{one.load:.2f}",
                queues_of(one.backpressure),
                str(one.partitions),
                f"version {one.incarnation}",
                " ".join(f"{purpose}={where}" for purpose, where in one.addresses),
            )
            for one in status.members
        ),
    )
    write_table(
        ("MOVES", "FROM", "TO", "PHASE"),
        ((str(one.partition), one.source, one.target, one.phase.value) for one in status.moves),
    )
    write_table(("PINNED", "TO", "WHY"), ((str(p), to, why) for p, to, why in status.pins))
    write_table(("WAITS TO JOIN", "WHY"), status.waiting)
    write_table(
        ("ALERT", "SEVERITY", "WORKER", "FOR", "WHY"),
        (
            (
                *(one.alert.name, one.alert.severity, one.worker),
                *(f"{one.alert.seconds:.0f} s", one.alert.cause),
            )
            for one in status.alerts
        ),
    )
    if has_partitions:
        write_table(
            ("PARTITION", "STAGE", "NUMBER", "OWNER", "SINCE", "STANDBY"),
            (
                (
                    *(str(p), one.stage, str(one.number)),
                    *(one.owner or "-", f"version {one.since}", one.standby or "-"),
                )
                for p, one in enumerate(status.owners)
            ),
        )
    for problem in status.problems:
        print(coloured(f"! {plain(problem)}", "yellow"))


def queues_of(one: Backpressure | None) -> str:
    """Return the fill of the fullest queue, and the worker's response."""
    if one is None:
        return "-"
    fill = f"{one.queue} {one.fill:.0%}" if one.fill else "empty"
    return fill if one.level is Level.NORMAL else f"{one.level.name.lower()}: {fill}"
