"""bin_prot codecs of Ripple/OCaml's records: schemas, deltas, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ripple.engine.changes.rows import (
    Delta,
    FieldRemove,
    FieldSet,
    MapRemove,
    MapSet,
    Patch,
    Remove,
    Set,
)
from ripple.exchange.wire.codec import (
    BOOL,
    BYTES,
    INT,
    INT64,
    SEXP,
    STRING,
    Codec,
    later,
    option,
    pair,
    record,
    tuple_of,
    union,
)
from ripple.model.schema import types

_field_type = later("field_type")

FIELD: Codec[types.Field] = record(
    types.Field,
    {"name": STRING, "type": _field_type, "optional": BOOL, "doc": option(STRING)},
)

FIELD_TYPE: Codec[types.FieldType] = union(
    record(types.String, {}),
    record(types.Int, {}),
    record(types.Int64, {}),
    record(types.Float, {}),
    record(types.Bool, {}),
    record(types.Opaque, {}),
    record(types.Option, {"of": _field_type}),
    record(types.List, {"of": _field_type}),
    record(types.Record, {"fields": tuple_of(FIELD)}),
    record(
        types.Variant,
        {"cases": tuple_of(record(types.Case, {"name": STRING, "args": tuple_of(_field_type)}))},
    ),
    record(types.Ref, {"name": STRING}),
    record(types.Date, {}),
    record(types.DateTime, {}),
    record(types.Decimal, {"precision": INT, "scale": INT}, make=types.Decimal.of),
    record(types.Uuid, {}),
    record(types.Bytes, {}),
    record(types.WideDecimal, {"precision": INT, "scale": INT}),
    record(types.Dict, {"of": _field_type}),
)
_field_type.define(FIELD_TYPE)

SCHEMA: Codec[types.Schema] = record(
    types.Schema,
    {"name": STRING, "version": INT, "fields": tuple_of(FIELD), "doc": option(STRING)},
)

PATCH_OP: Codec[Any] = union(
    record(FieldSet, {"name": STRING, "value": SEXP}),
    record(FieldRemove, {"name": STRING}),
    record(MapSet, {"key": SEXP, "value": SEXP}),
    record(MapRemove, {"key": SEXP}),
)


def delta_of(value: Codec[Any]) -> Codec[Delta[Any]]:
    """Return the codec of deltas of ``value``; a Patch holds S-expressions."""
    return union(
        record(Set, {"value": value}),
        record(Patch, {"ops": tuple_of(PATCH_OP)}),
        record(Remove, {}),
    )


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One leaf of a graph of Ripple/OCaml."""

    node_id: int
    height: int
    value_bytes: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A worker's checkpoint of Ripple/OCaml, which ours can read."""

    checkpoint_id: str
    worker_id: str
    partition_id: str
    timestamp_ns: int
    epoch: int
    node_snapshots: tuple[NodeSnapshot, ...]
    input_offsets: tuple[tuple[str, int], ...]
    node_count: int


CHECKPOINT: Codec[Checkpoint] = record(
    Checkpoint,
    {
        "checkpoint_id": STRING,
        "worker_id": STRING,
        "partition_id": STRING,
        "timestamp_ns": INT64,
        "epoch": INT,
        "node_snapshots": tuple_of(
            record(NodeSnapshot, {"node_id": INT, "height": INT, "value_bytes": BYTES})
        ),
        "input_offsets": tuple_of(pair(STRING, INT64)),
        "node_count": INT,
    },
)
