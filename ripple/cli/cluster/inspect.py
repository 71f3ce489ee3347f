"""Inspect a running cluster: graphs, schemas, metrics, partitions, edges."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.cli.cluster.metric_pages import merged
from ripple.cli.lib import client_options
from ripple.cli.lib.exits import EXIT_UNREACHABLE, say
from ripple.cli.lib.output_forms import (
    FORMS,
    VERSION,
    add_format,
    as_sexp,
    shown,
    write,
    write_table,
)
from ripple.control.assignment import worker_of
from ripple.core import cut as cuts
from ripple.core import sexp
from ripple.core.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping

    from coordinator.decisions.status import Status

EXAMPLES = (
    "ripple inspect graph --worker worker-1 --format dot | dot -Tpng -o graph.png",
    "ripple inspect schemas --verbose",
    "ripple inspect metrics | grep recompute",
    "ripple inspect partitions --format json",
    "ripple inspect edges",
)
GRAPH_FORMS = ("sexp", "json", "dot", "text")
_SHAPES = {"source": "ellipse", "senders": "ellipse", "fold": "diamond", "output": "box"}
_COUNTS = (
    *("rows_in", "rows_out", "very_late", "future", "refused"),
    *("recomputed", "cutoffs", "uncomputable", "keys", "bytes"),
)
_OF_SOURCES = ("very_late", "future", "refused")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands, and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="WHAT")
    for name, (purpose, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=purpose, description=f"Show {purpose}.")
        action.add_argument("--worker", metavar="ID", help="only of this worker (default: all)")
        client_options.add_coordinator(action)
        if name == "graph":
            add_format(action, GRAPH_FORMS, "sexp")
            action.add_argument("--partition", type=int, help="only of this partition")
        elif name != "metrics":
            add_format(action, FORMS)
        if name == "schemas":
            action.add_argument("--verbose", action="store_true", help="with all fields")


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    address, status = await client_options.status_of(options)
    members = client_options.chosen(status.members, options.worker)
    purpose, path = ("metrics", "/metrics") if options.action == "metrics" else ("health", "/graph")
    texts, silent = await client_options.pages(members, purpose, path)
    for worker, why in silent.items():
        say(f"{worker} does not answer: {why}")
    if not texts:
        raise ConnectionError(f"no worker of the cluster at {address} answers")
    show = _ACTIONS[options.action][1]
    if show is None:
        print(merged(texts) if len(texts) > 1 else next(iter(texts.values())), end="")
    else:
        found = {worker: json.loads(text) for worker, text in texts.items()}
        show(options, status, found)
    return EXIT_UNREACHABLE if silent else 0


_Show: TypeAlias = "Callable[[argparse.Namespace, Status, Mapping[str, dict[str, Any]]], None]"


def _graph(
    options: argparse.Namespace, status: Status, found: Mapping[str, dict[str, Any]]
) -> None:
    workers = [
        {"worker": worker, "pipeline": said["pipeline"], "partitions": _partitions(said, options)}
        for worker, said in found.items()
    ]
    if options.partition is not None and not any(one["partitions"] for one in workers):
        raise InputError(_nowhere(options.partition, options.worker, status))
    if options.format == "dot":
        print(as_dot(workers), end="")
    elif options.format == "sexp":
        value = {"format_version": VERSION, "workers": workers}
        print(sexp.dumps(as_sexp(value)))
    else:
        write(options.format, {"workers": workers}, lambda: _print_graph(workers))


def _nowhere(partition: int, worker: str | None, status: Status) -> str:
    """Return why a partition has no graph."""
    count = len(status.owners)
    if not 0 <= partition < count:
        return f"there is no partition {partition}: they are 0 to {count - 1}"
    owner = status.owners[partition].owner
    if owner is None:
        return f"partition {partition} has no owner"
    if worker is not None and worker_of(owner) != worker:
        return f"partition {partition} is owned by {owner}, not by {worker}"
    return f"{owner} owns partition {partition}, and has no graph of it yet"


def _partitions(said: Mapping[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    every: list[dict[str, Any]] = said["partitions"]
    return [one for one in every if options.partition in (None, one["partition"])]


def as_dot(workers: Iterable[Mapping[str, Any]]) -> str:
    """Return a Graphviz graph: a box for each partition, row counts on each node."""
    lines = ["digraph ripple {", "  rankdir=TB;", "  node [shape=box];"]
    for worker in workers:
        for part in worker["partitions"]:
            name = f"p{part['partition']}"
            title = f"{part['process']}: partition {part['partition']}"
            lines += [f"  subgraph cluster_{name} {{", f"    label={_quoted(title)};"]
            for number, node in enumerate(part["nodes"]):
                counts = "".join(
                    f"\\n{one} {node[one]}" for one in _COUNTS if node.get(one) is not None
                )
                label = _quoted(f"{node['kind']}: {node['name']}").removesuffix('"')
                shape = _SHAPES.get(node["kind"], "box")
                lines.append(f'    {name}_{number} [label={label}{counts}" shape={shape}];')
            lines += [f"    {name}_{of} -> {name}_{to};" for of, to in part["edges"]]
            lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _print_graph(workers: Iterable[Mapping[str, Any]]) -> None:
    for worker in workers:
        for part in worker["partitions"]:
            print(f"\n{part['process']}, partition {part['partition']}: cut {_cut(part)}")
            write_table(
                (
                    "NODE",
                    "KIND",
                    "IN",
                    "OUT",
                    *("LATE", "FUTURE", "REFUSED"),
                    *("RECOMPUTED", "CUTOFFS", "UNCOMPUTABLE"),
                    *("KEYS", "BYTES"),
                ),
                (
                    (node["name"], node["kind"], *(shown(node.get(one)) for one in _COUNTS))
                    for node in part["nodes"]
                ),
                gap=False,
            )


def _cut(part: Mapping[str, Any]) -> str:
    return cuts.text(part["cut"]) or "nothing"


def _schemas(options: argparse.Namespace, _: Status, found: Mapping[str, dict[str, Any]]) -> None:
    schemas: dict[tuple[str, str], dict[str, Any]] = {}
    for said in found.values():
        for one in said["schemas"]:
            schemas.setdefault((one["name"], one["fingerprint"]), one)
    listed = [schemas[at] for at in sorted(schemas)]

    def text() -> None:
        print("Registered Schemas")
        print("-" * 52)
        for one in listed:
            at, count = f"{one['name']}/v{one['version']}", len(one["fields"])
            print(f"  {at}  fp={one['fingerprint']}  fields={count}")
            if options.verbose:
                width = max(12, *(len(field["name"]) for field in one["fields"]))
                for field in one["fields"]:
                    need = "optional" if field["optional"] else "required"
                    print(f"    {field['name']:<{width}}  : {field['type']:<8}  ({need})")
                print()

    write(options.format, {"schemas": listed}, text)


def _of_partitions(
    options: argparse.Namespace, status: Status, found: Mapping[str, dict[str, Any]]
) -> None:
    graphs = {one["partition"]: one for said in found.values() for one in said["partitions"]}
    listed = []
    for number, one in enumerate(status.owners):
        if options.worker is not None and worker_of(one.owner or "/") != options.worker:
            continue
        graph = graphs.get(number, {})
        nodes = graph.get("nodes", [])
        listed.append(
            {
                "partition": number,
                "stage": one.stage,
                "number": one.number,
                "owner": one.owner,
                "since": one.since,
                "standby": one.standby,
                "cut": graph.get("cut"),
                "watermark_ns": graph.get("watermark_ns"),
                "rows_in": nodes[0]["rows_in"] if nodes else None,
                # Workers of the previous version do not report them.
                **{name: nodes[0].get(name) if nodes else None for name in _OF_SOURCES},
                "keys": sum(node["keys"] or 0 for node in nodes if node["kind"] == "fold"),
                "bytes": sum(node["bytes"] or 0 for node in nodes if node["kind"] == "fold"),
            }
        )

    def text() -> None:
        standby = any(one["standby"] for one in listed)
        write_table(
            (
                *("PARTITION", "STAGE", "NUMBER", "OWNER", "SINCE"),
                *(("STANDBY",) if standby else ()),
                *("LATE", "FUTURE", "REFUSED"),
                *("KEYS", "BYTES", "CUT"),
            ),
            (
                (
                    *(str(one["partition"]), str(one["stage"]), str(one["number"])),
                    *(shown(one["owner"]), f"version {one['since']}"),
                    *((shown(one["standby"]),) if standby else ()),
                    *(shown(one[name]) for name in (*_OF_SOURCES, "keys", "bytes")),
                    "-" if one["cut"] is None else cuts.text(one["cut"]) or "nothing",
                )
                for one in listed
            ),
            gap=False,
        )

    write(options.format, {"partitions": listed}, text)


def _edges(options: argparse.Namespace, _: Status, found: Mapping[str, dict[str, Any]]) -> None:
    said = next(iter(found.values()))

    def text() -> None:
        write_table(
            ("STAGE", "FROM", "TO", "KIND", "PARTITIONS", "WHY"),
            (
                tuple(
                    shown(edge[name]) for name in ("stage", "of", "to", "kind", "partitions", "why")
                )
                for edge in said["edges"]
            ),
            gap=False,
        )
        if not said["edges"]:
            print(f"{said['pipeline']} has one stage: no edges")

    write(options.format, {"pipeline": said["pipeline"], "edges": said["edges"]}, text)


_ACTIONS: dict[str, tuple[str, _Show | None]] = {
    "graph": ("the live graph of workers, with row counts of each node", _graph),
    "schemas": ("the schemas of the source and of the outputs", _schemas),
    "metrics": ("the metrics of workers, as Prometheus reads them", None),
    "partitions": ("owner, position and size of each partition", _of_partitions),
    "edges": ("the edges between stages, with their transport", _edges),
}
