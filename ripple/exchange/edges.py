"""The state edges and outputs of a plan, by their names on the wire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ripple.engine.edges.kinds import edge_into
from ripple.engine.machine.output_stream import shown_schema
from ripple.engine.operators.stream_rows import identified_schema
from ripple.model.pipeline.stages import Transport
from ripple.model.pipeline.topology import stage_of_output, stages_of
from ripple.model.schema.compat import (
    Compatible,
    Incompatibility,
    IncompatibilityKind,
    Incompatible,
)
from ripple.model.schema.logical.showing import shown_type
from ripple.model.schema.types import Field, Opaque, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.compat import Compatibility


_PREFIXES = {False: "shown/", True: "uncommitted/"}  # by whether it is sent before its commit
_EVENTS = "events/"


class Stream(NamedTuple):
    """The changes of one partition of a stage for one of another. edge: the edge's name.

    An output for external clients has one target, 0.
    """

    edge: str
    sender: int
    target: int

    def __str__(self) -> str:
        return f"{self.edge} {self.sender}>{self.target}"


@dataclass(frozen=True, slots=True)
class Edge:
    """A state edge, or an output.

    stage: the downstream stage; of an output, its own stage. senders: the stage whose partitions
    send over it. schema: of its rows; None if the receiver accepts any. offer: its schema in the
    handshake. output: its name, None for an edge. is_uncommitted: an output that is sent as it is
    computed, before its sink has committed it. is_events: an append-only output.
    """

    name: str
    stage: int
    senders: int
    schema: pa.Schema | None
    offer: Schema
    output: str | None = None
    is_uncommitted: bool = False
    is_events: bool = False


def cost_of(changes: EdgeChanges) -> int:
    """Return the rows of credit that changes take: at least 1, also for none."""
    return max(1, int(changes.rows.num_rows))


def edges_of(plan: Plan) -> dict[str, Edge]:
    """Return the state edges of a plan by name."""
    edges = {}
    for stage in stages_of(plan)[1:]:
        edge = edge_into(plan, stage.number)
        if edge is None or edge.transport is not Transport.EXCHANGE or stage.before is None:
            continue
        name, schema = edge_name(plan, stage.number), edge.schema
        offer = _offer(f"{name} of topology {plan.topology_hash}", schema)
        edges[name] = Edge(name, stage.number, stage.before, schema, offer)
    return edges


def shown_of(plan: Plan) -> dict[str, Edge]:
    """Return the outputs of a plan for external clients, by the name on the wire."""
    shown = {}
    for output in plan.outputs:
        stage = stage_of_output(plan, output.name)
        if output.is_stream:
            name, schema = events_name(output.name), identified_schema(output.fields)
            offer = _shown_offer(f"stage {stage}", schema)
            shown[name] = Edge(name, stage, stage, schema, offer, output.name, is_events=True)
            continue
        schema = shown_schema(plan, output)
        offer = _shown_offer(f"stage {stage}", schema)
        for ahead in _PREFIXES:
            name = shown_name(output.name, uncommitted=ahead)
            shown[name] = Edge(name, stage, stage, schema, offer, output.name, ahead)
    return shown


def shown_name(output: str, *, uncommitted: bool) -> str:
    """Return an output's name on the wire."""
    return _PREFIXES[uncommitted] + output


def events_name(output: str) -> str:
    """Return the name on the wire of an output of events."""
    return _EVENTS + output


def offered(offers: Iterable[tuple[str, Schema]]) -> dict[str, Edge]:
    """Return the outputs that a process offers to external clients."""
    found = {}
    for name, offer in offers:
        for ahead, prefix in _PREFIXES.items():
            if name.startswith(prefix):
                stage, output = int(offer.name.split()[1]), name.removeprefix(prefix)
                found[name] = Edge(name, stage, stage, None, offer, output, ahead)
        if name.startswith(_EVENTS):
            stage, output = int(offer.name.split()[1]), name.removeprefix(_EVENTS)
            found[name] = Edge(name, stage, stage, None, offer, output, is_events=True)
    return found


def _offer(name: str, schema: pa.Schema) -> Schema:
    return Schema(name, tuple(Field(f"{one.name}: {one.type}", Opaque()) for one in schema))


def _shown_offer(name: str, schema: pa.Schema) -> Schema:
    """Return an offer with the logical types of stored values."""
    kinds = (shown_type(one) for one in schema)
    fields = zip(_offer(name, schema).fields, kinds, strict=True)
    return Schema(
        name, tuple(replace(one, doc=None if of is None else str(of)) for one, of in fields)
    )


def edge_name(plan: Plan, stage: int) -> str:
    """Return the name of the edge that leads into a stage."""
    return f"{plan.name}/{stage}"


def fits(reader: Schema, writer: Schema) -> Compatibility:
    """Return whether both ends mean the same edge: another plan has other rows at the same cut."""
    if reader == writer:
        return Compatible()
    ours, theirs = ([field.name for field in one.fields] for one in (reader, writer))
    detail = f"{theirs} instead of {ours}"
    if ours == theirs:
        detail = f"it is {writer.name!r}, here it is {reader.name!r}"
    kind = IncompatibilityKind.NAME_CHANGED
    return Incompatible((Incompatibility((reader.name,), kind, detail),))
