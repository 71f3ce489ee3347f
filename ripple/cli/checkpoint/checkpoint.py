"""List, show, verify, compare and export checkpoints, which changes nothing; move their state."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.cli.checkpoint import move
from ripple.cli.checkpoint.tables import compare, is_of_join, write_table
from ripple.cli.lib.exits import say
from ripple.cli.lib.output_forms import add_format, many, write
from ripple.cli.lib.path_options import STORE, a_place, a_store, store_below
from ripple.cli.lib.statistics import watermark_of
from ripple.connectors.retries import read_journal, retries_path
from ripple.control.assignment import AssignmentChain
from ripple.core.errors import InputError, LimitError
from ripple.storage.checkpoint import (
    Checkpoint,
    CheckpointError,
    Checkpoints,
    decode_file,
    fold_named,
    named,
    partitions,
)
from ripple.storage.checkpoint.format import fold_name
from ripple.storage.fenced import DamagedError
from ripple.storage.store.opening import store_to_read
from ripple.storage.store.s3_settings import is_s3
from ripple.task import marker_log
from ripple.task.dead_letters.hint_store import problems_of
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.world import LiveDisk
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from ripple.core.cut import Cut
    from ripple.world import ObjectStore

EXAMPLES = (
    "ripple checkpoint list --worker worker-1 --dir /var/lib/ripple/state",
    "ripple checkpoint list --dir s3://bucket/prefix --format json",
    "ripple checkpoint show --dir state --partition 3",
    "ripple checkpoint verify --dir state",
    "ripple checkpoint diff --dir state --partition 3",
    "ripple checkpoint export --dir state --fold vwap --to vwap.parquet",
    move.EXAMPLE,
)
DIR_DEFAULT = "/var/lib/ripple/checkpoints"
FILE_BYTES_MAX = 1 << 32


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="the checkpoints of all partitions, or of one")
    show = actions.add_parser("show", help="the details of a checkpoint")
    verify = actions.add_parser("verify", help="read everything; exit code 1 on any damage")
    diff = actions.add_parser("diff", help="the changes between two checkpoints")
    export = actions.add_parser("export", help="write a fold's state as CSV or Parquet")
    move.configure(
        actions.add_parser("move", help="move state of several stages to or from a cluster")
    )
    for action in (listing, show, verify, diff, export):
        action.add_argument(
            "--dir",
            "--checkpoint-dir",  # as ripple run has it
            type=a_store,
            default=DIR_DEFAULT,
            metavar=STORE,
            help="checkpoint store (default: %(default)s)",
        )
        action.add_argument("--pipeline", help="required if the store has several")
        action.add_argument("--partition", type=int, help="required if the pipeline has several")
        action.add_argument(
            "--worker",
            metavar="ID",
            help="only its partitions, by the cluster's assignment in the same store",
        )
    for action in (listing, show, verify, diff):
        add_format(action)
    for action in (show, export):
        action.add_argument("--name", help="the checkpoint's name (default: the latest)")
    verify.add_argument(
        "files", type=a_place, nargs="*", metavar="FILE.arrow", help="only these, no manifest"
    )
    diff.add_argument("before", nargs="?", help="name (default: the one before the other)")
    diff.add_argument("after", nargs="?", help="name (default: the latest)")
    export.add_argument("--fold", help="required if the checkpoint has several")
    export.add_argument(
        "--to", type=a_place, required=True, metavar="FILE", help="a .csv or .parquet file"
    )


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    if options.action == "move":
        return move.run(options)
    if options.action == "verify" and options.files:
        return _print_verified(options.format, [_verify_file(file) for file in options.files])
    return asyncio.run(_act(options))


async def _act(options: argparse.Namespace) -> int:
    async with store_to_read(options.dir, "--checkpoint-dir") as store:
        return await _ACTIONS[options.action](store, options)


async def _list(store: ObjectStore, options: argparse.Namespace) -> int:
    found, code = [], 0
    for one in await _chosen(store, options):
        try:
            found.append((one, await one.list()))
        except (DamagedError, StoreError) as error:  # the others can still be listed
            say(f"{one.pipeline}/{one.partition}: {error}")
            code = 1

    def text() -> None:
        if options.worker is not None:
            print(f"Checkpoints for worker {options.worker} (dir={options.dir})")
        for checkpoints, listed in found:
            where = f"{checkpoints.pipeline}/{checkpoints.partition}"
            print(f"Checkpoints for {where} (dir={options.dir})")
            for position, one in enumerate(listed):
                label = "Latest:" if position == 0 else "       "
                print(f"  {label} {_summary(one)}")

    partitions = [
        {
            "pipeline": checkpoints.pipeline,
            "partition": checkpoints.partition,
            "checkpoints": [_values(one) for one in listed],
        }
        for checkpoints, listed in found
    ]
    value = {"dir": options.dir, "worker": options.worker, "partitions": partitions}
    write(options.format, value, text)
    return code


def _values(one: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint's details, as JSON values."""
    return {
        "name": one.name,
        "epoch": one.epoch,
        "written": _time(one),
        "base": one.base,
        "nodes": one.rows,
        "bytes": one.length_bytes,
        "cut": dict(one.cut),
        "watermarks_ns": dict(one.watermarks_ns),
        "topology": one.topology_hash,
        "counters": dict(one.counters),
        "digests": {name: f"{digest:016x}" for name, (digest, _) in one.digests.items()},
        "folds": [
            {
                "key": part.node_key,
                "rows": part.rows,
                "bytes": part.length_bytes,
                "object": part.object_name,
            }
            for part in one.parts
        ],
    }


def _summary(one: Checkpoint) -> str:
    return (
        f"epoch={one.epoch} nodes={one.rows} offsets={len(one.cut)} bytes={one.length_bytes} "
        f"written={_time(one)} name={one.name}{_base(one)}"
    )


def _base(one: Checkpoint) -> str:
    return "" if one.base is None else f" base={one.base}"


async def _show(store: ObjectStore, options: argparse.Namespace) -> int:
    one = named(await (await _only(store, options)).list(), options.name)
    where = {"pipeline": one.pipeline, "partition": one.partition}
    write(options.format, where | _values(one), lambda: _print(one, options))
    return 0


def _print(one: Checkpoint, options: argparse.Namespace) -> None:
    """Print a checkpoint's details."""
    print(f"Checkpoint {one.name} of {one.pipeline}/{one.partition}")
    print(f"  epoch      {one.epoch}")
    print(f"  written    {_time(one)}")
    print(f"  topology   {one.topology_hash}")
    if one.base is not None:
        print(f"  base       {one.base}: the files hold the changes since")
    for source, offset in one.cut.items():
        watermark_ns = one.watermarks_ns.get(source)  # a log of markers has none
        passed = "" if watermark_ns is None else _passed(watermark_ns)
        print(f"  input      {source}: next offset {offset}{passed}")
    for name, count in one.counters.items():
        print(f"  {name:<10} {count}" if len(name) <= 10 else f"  {name} {count}")
    for name, (digest, _) in one.digests.items():
        print(f"  digest     {name}: {digest:016x}")
    for part in one.parts:
        print(f"  fold       {part.node_key}: {part.rows} rows")
        print(f"             {options.dir}/{part.object_name} ({part.length_bytes} bytes)")


async def _verify(store: ObjectStore, options: argparse.Namespace) -> int:
    from ripple.task.asks import answer_log  # noqa: PLC0415 - slow to import, and the others need none

    found: list[dict[str, Any]] = []
    for checkpoints in await _chosen(store, options):
        pipeline, partition = checkpoints.pipeline, checkpoints.partition
        folder = None if is_s3(options.dir) else LiveDisk(options.dir, make=False)
        problems: list[str] = []
        for look in (
            partial(checkpoints.verify),
            partial(_log_problems, marker_log.problems_of, store, checkpoints),
            partial(_log_problems, partial(answer_log.problems_of, whole=True), store, checkpoints),
            partial(_letter_problems, store, folder, checkpoints),
        ):
            try:
                problems += map(str, await look())
            except StoreError as error:
                problems.append(str(error))
        count = None if problems else len(await checkpoints.list())
        where = {"pipeline": pipeline, "partition": partition}
        found.append(where | {"checkpoints": count, "problems": problems})
    return _print_verified(options.format, found)


async def _log_problems(
    problems_of: Callable[[ObjectStore, str, int, Iterable[Cut]], Awaitable[list[str]]],
    store: ObjectStore,
    checkpoints: Checkpoints,
) -> list[str]:
    """Return the problems of a partition's markers of idle inputs, or of its answers."""
    cuts = [one.cut for one in await _listed(checkpoints)]
    return await problems_of(store, checkpoints.pipeline, checkpoints.partition, cuts)


async def _letter_problems(
    store: ObjectStore, folder: LiveDisk | None, checkpoints: Checkpoints
) -> list[str]:
    """Return the problems of a partition's dead letters, notes and retry journal."""
    pipeline, partition = checkpoints.pipeline, checkpoints.partition
    newest = next(iter(await _listed(checkpoints)), None)
    notes = None
    if folder is not None:
        notes = NoteFile(folder, in_flight_path(pipeline, partition))
    problems = [*await problems_of(store, pipeline, partition, notes, checkpoint=newest)]
    if folder is None:
        return problems
    try:
        read_journal(folder, retries_path(pipeline, partition))
    except (InputError, OSError) as error:
        problems.append(str(error))
    return problems


async def _listed(checkpoints: Checkpoints) -> Sequence[Checkpoint]:
    """Return the checkpoints, none where they are damaged, which has been told."""
    try:
        return await checkpoints.list()
    except DamagedError:
        return ()


def _verify_file(file: str) -> dict[str, Any]:
    """Return a file's checkpoint, or its problems."""
    try:
        about, table = decode_file(_read(file), file)
    except (CheckpointError, DamagedError, LimitError) as error:
        return {"file": file, "problems": [str(error)]}
    except OSError as error:
        return {"file": file, "problems": [f"{file}: {error.strerror}"]}
    known = {"name": about["name"], "base": about.get("base"), "rows": table.num_rows}
    return {"file": file, "problems": []} | known


def _print_verified(form: str, found: list[dict[str, Any]]) -> int:
    """Print the findings by partition or file; return the exit code."""

    def text() -> None:
        for one in found:
            for problem in one["problems"]:
                print(problem)
            if not one["problems"]:
                print(_whole_file(one) if "file" in one else _whole_partition(one))

    is_whole = not any(one["problems"] for one in found)
    write(form, {"whole": is_whole, "verified": found}, text)
    return 0 if is_whole else 1


def _whole_partition(one: dict[str, Any]) -> str:
    return (
        f"{one['pipeline']}/{one['partition']}: {many(one['checkpoints'], 'checkpoint')}, all whole"
    )


def _whole_file(one: dict[str, Any]) -> str:
    what = "rows of" if one["base"] is None else f"changes of {one['base']} in"
    return f"{one['file']}: whole, {one['rows']} {what} checkpoint {one['name']}"


def _read(file: str) -> bytes:
    path = Path(os.path.abspath(file))
    if not path.is_file():
        path.stat()
        raise CheckpointError(f"{file!r} is not a file: name a folder of checkpoints with --dir")
    return LiveDisk(path.parent, make=False).read_bytes(path.name, length_max=FILE_BYTES_MAX)


async def _diff(store: ObjectStore, options: argparse.Namespace) -> int:
    checkpoints = await _only(store, options)
    present = await checkpoints.list()
    after = named(present, options.after)
    if options.before is None:
        older = present[present.index(after) + 1 :]
        if not older:
            raise CheckpointError(f"there is no checkpoint before {after.name} to compare it with")
        before = older[0]
    else:
        before = named(present, options.before)
    old, new = await checkpoints.read(before), await checkpoints.read(after)
    folds = {
        node_key: compare(old.tables.get(node_key), new.tables.get(node_key))
        for node_key in sorted({*old.tables, *new.tables})
    }
    inputs = [
        {"input": source, "from": before.cut.get(source, 0), "to": offset}
        for source, offset in after.cut.items()
    ]

    def text() -> None:
        print(f"From {before.name} to {after.name}")
        for one in inputs:
            print(f"  input {one['input']}: {one['from']} to {one['to']}")
        for node_key, difference in folds.items():
            print(f"  fold {node_key}: {difference}")

    value = {
        "from": before.name,
        "to": after.name,
        "inputs": inputs,
        "folds": [{"key": key} | asdict(difference) for key, difference in folds.items()],
    }
    write(options.format, value, text)
    return 0


async def _export(store: ObjectStore, options: argparse.Namespace) -> int:
    checkpoints = await _only(store, options)
    one = named(await checkpoints.list(), options.name)
    tables = (await checkpoints.read(one)).tables
    node_key = fold_named(tables, options.fold, "--fold")
    table, fold = tables[node_key], fold_name(node_key)
    if is_of_join(table):
        raise InputError(
            f"--fold {fold}: the rows of a join follow from those of its two sides, and are in no "
            "checkpoint: export the folds of the sides, or read the rows from its sink"
        )
    write_table(table, Path(options.to))
    print(f"{table.num_rows} rows of {fold} at {dict(one.cut)} written to {options.to}")
    return 0


_ACTIONS = {"list": _list, "show": _show, "verify": _verify, "diff": _diff, "export": _export}


async def _chosen(store: ObjectStore, options: argparse.Namespace) -> list[Checkpoints]:
    """Return the partitions that the options select, at least one."""
    owned = None if options.worker is None else await _owned(store, options.worker)
    found = [
        Checkpoints(store, pipeline, partition)
        for pipeline, partition in await partitions(store)
        if options.pipeline in (None, pipeline) and options.partition in (None, partition)
        if owned is None or partition in owned
    ]
    if not found:
        which = (options.pipeline, options.partition, options.worker)
        such = "" if which == (None, None, None) else "such "
        raise CheckpointError(
            f"there are no {such}checkpoints in {options.dir}{store_below(options.dir)}"
        )
    return found


async def _owned(store: ObjectStore, worker: str) -> frozenset[int]:
    """Return a worker's partitions, in the newest version of the assignment."""
    reading = await AssignmentChain(store).newest()
    if reading.entry is None:
        raise InputError("--worker: the store has no assignment of a cluster")
    now = reading.entry.content
    if worker not in now.by_id:
        raise InputError(f"no worker {worker}; the cluster has {', '.join(now.by_id) or 'none'}")
    return frozenset(now.owned_by(worker))


async def _only(store: ObjectStore, options: argparse.Namespace) -> Checkpoints:
    found = await _chosen(store, options)
    if len(found) > 1:
        names = ", ".join(f"{one.pipeline}/{one.partition}" for one in found)
        raise CheckpointError(f"choose with --pipeline and --partition: there are {names}")
    return found[0]


def _passed(watermark_ns: int) -> str:
    found = watermark_of(watermark_ns)
    return f", watermark {found[0][1]}" if found else ""


def _time(one: Checkpoint) -> str:
    moment = datetime.fromtimestamp(one.written_ns // 1_000_000_000, UTC)
    return moment.isoformat().replace("+00:00", "Z")
