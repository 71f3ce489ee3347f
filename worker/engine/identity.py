"""A worker's code and addresses, as it reports them when it joins."""

from __future__ import annotations

import hashlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ripple.connectors.identity import identity_of, shortened
from ripple.connectors.log.sink import schema_of_output
from ripple.control.assignment import Code
from ripple.control.assignment.stage_names import records_of
from ripple.control.process_settings import PORT_MAX, PROCESS_PORTS_APART
from ripple.core import sexp
from ripple.core.setting import SettingsError
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.fingerprint import fingerprint
from ripple.model.schema.notation import type_to_sexp
from ripple.world.addresses import joined
from worker.engine.stages import name_of, stage_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.new_division import NewDivision
    from ripple.model.pipeline.plan import Plan

PROTOCOL = 1


def code_of(
    plan: Plan,
    *,
    divides: bool = False,
    needs_one: bool = False,
    repartitioned: Mapping[str, NewDivision] = MappingProxyType({}),
    ends: tuple[tuple[str, str], ...] = (),
) -> Code:
    """Return the code and settings that all workers of a cluster must share.

    divides, needs_one, repartitioned: as for ``stage_counts``, with the fields. ends: see
    ``ends_of``.

    The plan hash covers the plan as ``ripple plan`` shows it, and the keys under which state is
    found.
    """
    text = "\n".join([plan.describe(), *plan.node_keys])
    schemas = [(source.name, fingerprint(source.schema)) for source in plan.sources]
    schemas += [
        (f"{plan.name}.{output.name}", fingerprint(schema_of_output(plan, output)))
        for output in plan.outputs
    ]
    return Code(
        pipeline=plan.name,
        plan_hash=hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
        topology_hash=plan.topology_hash,
        protocol=PROTOCOL,
        schemas=tuple(sorted(schemas)),
        stages=stage_counts(
            plan, divides=divides, needs_one=needs_one, repartitioned=repartitioned
        ),
        ends=tuple(
            sorted((*ends, *((records_of(name), by.code) for name, by in repartitioned.items())))
        ),
    )


def ends_of(
    sources: Mapping[str, str], sinks: Mapping[str, str], lanes: str, batch_rows: int
) -> tuple[tuple[str, str], ...]:
    """Return identifiers of sources, outputs and lanes, and settings that all workers share.

    sources, sinks: URIs by name; the only source is called ``source``. lanes: where repartition
    topics are, "" for nowhere. Raises InputError and ConnectorError.
    """
    found = {"batch_rows": str(batch_rows)}
    for name, at in sources.items():
        called = "source" if len(sources) == 1 else f"source {name}"
        found[called] = identity_of(at, "continued_source")
    found |= {f"output {name}": identity_of(at, "continued_sink") for name, at in sinks.items()}
    if lanes:
        found["lanes"] = shortened(lanes)
    return tuple(sorted(found.items()))


def about(plan: Plan) -> dict[str, Any]:
    """Return a plan's schemas and edges as JSON values, for queries by people."""
    schemas = [source.schema for source in plan.sources]
    schemas += [schema_of_output(plan, output) for output in plan.outputs]
    return {
        "pipeline": plan.name,
        "topology": plan.topology_hash,
        "schemas": [
            {
                "name": schema.name,
                "version": schema.version,
                "fingerprint": fingerprint(schema),
                "fields": [
                    {
                        "name": one.name,
                        "type": sexp.dumps(type_to_sexp(one.type)),
                        "optional": one.optional,
                    }
                    for one in schema.fields
                ],
            }
            for schema in schemas
        ],
        "edges": [
            {
                "stage": name_of(stage.number),
                "partitions": stage.partitions,
            }
            | stage.edge.as_values()
            for stage in stages_of(plan)
            if stage.edge is not None
        ],
    }


def delta_addresses(
    host: str, port: int, processes: int, others: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Return the data port of each process, by purpose.

    others: further ports of the worker, by setting. Raises SettingsError for a port that is out of
    range or used twice.
    """
    last = port + PROCESS_PORTS_APART * (processes - 1)
    if not 0 < port <= last <= PORT_MAX:
        raise SettingsError(
            f"rpc_port is {port}, and the last of {processes} processes would have {last}: each "
            f"has one {PROCESS_PORTS_APART} higher than the one before, from 1 to {PORT_MAX}, and "
            "others must know it before it listens there"
        )
    ports = {port + PROCESS_PORTS_APART * slot: slot for slot in range(processes)}
    for name, other in (others or {}).items():
        if other in ports:
            raise SettingsError(
                f"{name} is {other}, where process {ports[other]} has its data port: each has one "
                f"{PROCESS_PORTS_APART} higher than the one before, from rpc_port on, {port}"
            )
    return {f"deltas/{slot}": joined(host, own) for own, slot in ports.items()}
