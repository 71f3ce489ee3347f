"""Changes between two processes over loopback: taken out of an engine, framed, sent, applied.

A partition's 20,000 groups change over and over; another process follows it and brings its
view up. Beside it, from the same run: the same bytes through asyncio's streams, and the same frames
through a gRPC stream, where nobody makes or reads them. A rate is that of the busier of both
processes, by its processor time: what two free processors would do. Latency is of wall time, of one
change in ten thousand a second, from when it was due until the follower's view has it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import ripple as rp
from bench.row import Row, at_least
from bench.timing import QUICK
from bench.trades import Trade, trades
from ripple.engine.machine.follower import Follower
from ripple.exchange.exchange import Route
from ripple.world.live import live_world
from worker.engine.exchange import ExchangePort

GROUPS = 20_000
ROUNDS = 20 if QUICK else 100
A_SECOND = 10_000
SECONDS = 1 if QUICK else 3
PIECE = 1 << 18
HOST = "127.0.0.1"


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    ours, frames = await _changes()
    raw = await _beside("raw", frames, _send_raw)
    grpc = await _beside("grpc", frames, _send_grpc)
    changes = ROUNDS * GROUPS
    rate = changes / max(ours.values()) / 1e6
    rows = [
        Row("end to end", rate, "M changes/s", "raw streams, same bytes", changes / raw / 1e6,
            at_least(1)),
        Row("end to end", rate, "M changes/s", "gRPC, same frames", changes / grpc / 1e6),
        Row("sender, its engine too", ours["sender"] / changes * 1e9, "ns/change",
            "receiver, its engine too", ours["receiver"] / changes * 1e9),
        Row("a frame", sum(map(len, frames)) / len(frames) / 1e3, "kB"),
        Row("a change", sum(map(len, frames)) / changes, "bytes"),
    ]  # fmt: skip
    for name, ns in (await _latency()).items():
        rows.append(Row(f"latency at 10 K/s, {name}", ns / 1e6, "ms"))
    return rows


def _plan() -> rp.Plan:
    return (
        rp.Pipeline("bench")
        .source("trades", Trade)
        .partition("by-both", key=("symbol", "venue"))
        .fold("vwap", vwap=rp.vwap("price", "size"), high=rp.max("price"))
        .partition("by-symbol", key="symbol", partitions=1)
        .fold("most", most=rp.max("vwap"), rows=rp.count())
        .sink("output")
        .plan()
    )


async def _key() -> bytes:
    return bytes(32)


class End:
    """One of the two processes."""

    def __init__(self, name: str, addresses: dict[str, str]) -> None:
        self.addresses = addresses
        self.wake = asyncio.Event()
        self.port = ExchangePort(
            live_world("/tmp/ripple-bench"), name, PLAN,
            lambda stage, _: Route("ab"[stage], addresses["ab"[stage]]), lambda _: 1,
            address=f"{HOST}:0", key=_key,
        )  # fmt: skip
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        await self.port.open()

    def run(self) -> None:
        self.tasks.append(asyncio.create_task(self.port.run()))
        self.port.refresh()

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


PLAN = _plan()


async def _changes() -> tuple[dict[str, float], list[bytes]]:
    """Send rounds of changes; return the processor time of both, and the frames."""
    child, end = await _pair("changes")
    frames: list[bytes] = []
    _record(end, frames)
    sending = end.port.exchange.send(0, 0, 1, end.wake.set)
    assert sending is not None
    engine = rp.Engine(PLAN, 0, staged=True)
    batches = [_batch(number) for number in range(4)]
    end.run()
    await _followed(sending, engine)
    frames.clear()
    used = time.process_time()
    for at in range(ROUNDS):
        batch = batches[at % len(batches)]
        engine.apply("trades", batch, engine.cut["trades"] + batch.num_rows)
        engine.stabilize()
        while True:
            sending.offer(engine)
            if engine.given_to(0) == engine.cut:
                break
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
    said = await _ended(child, engine.cut["trades"])
    spent = {"sender": time.process_time() - used, "receiver": said["cpu_s"]}
    await end.close()
    return spent, frames


def _batch(number: int) -> pa.RecordBatch:
    """Return a trade of each group."""
    rows = trades(GROUPS, 1)
    symbols = pa.array([f"S{at:05}" for at in range(GROUPS)])
    columns = [symbols if name == "symbol" else rows.column(name) for name in rows.schema.names]
    batch = pa.RecordBatch.from_arrays(columns, schema=rows.schema)
    price = pa.array(np.arange(GROUPS) % 97 + 1.0 + number)
    return batch.set_column(batch.schema.get_field_index("price"), "price", price)


def _record(end: End, frames: list[bytes]) -> None:
    exchange = end.port.exchange
    make = exchange.session

    def session(*given: Any, **named: Any) -> Any:
        made = make(*given, **named)
        take = made.data_to_send

        def data_to_send() -> bytes:
            data = take()
            if len(data) > 1000:
                frames.append(data)
            return data

        made.data_to_send = data_to_send
        return made

    exchange.session = session  # type: ignore[method-assign]


async def _followed(sending: Any, engine: Any) -> None:
    engine.stabilize()
    while not sending.is_wanted:
        await asyncio.sleep(0.001)
    sending.offer(engine)


async def _latency() -> dict[str, float]:
    """Return percentiles of the time until a change is in the follower's view, in ns."""
    child, end = await _pair("latency")
    sending = end.port.exchange.send(0, 0, 1, end.wake.set)
    assert sending is not None
    engine = rp.Engine(PLAN, 0, staged=True)
    rows = trades(A_SECOND * SECONDS, 2_000)
    end.run()
    await _followed(sending, engine)
    began_ns, done = time.monotonic_ns(), 0
    step_ns = 1_000_000_000 // A_SECOND
    while done < rows.num_rows:
        due = min(rows.num_rows, (time.monotonic_ns() - began_ns) // step_ns)
        if due > done:
            engine.apply("trades", rows.slice(done, due - done), due)
            engine.stabilize()
            sending.offer(engine)
            done = due
        await asyncio.sleep(0)
    said = await _ended(child, done)
    await end.close()
    cuts, at_ns = np.array(said["cuts"]), np.array(said["at_ns"])
    due_ns = began_ns + (np.arange(done) + 1) * step_ns
    taken = at_ns[np.searchsorted(cuts, np.arange(done) + 1)]
    waited = np.sort(taken - due_ns)
    return {"p50": waited[len(waited) // 2], "p99": waited[len(waited) * 99 // 100]}


# --- the other process ---


async def _pair(what: str) -> tuple[subprocess.Popen[str], End]:
    """Start the other process; return it, and our end."""
    addresses = {"a": "", "b": ""}
    end = End("a", addresses)
    await end.open()
    addresses["a"] = end.port.address
    child = _start(what, addresses["a"])
    addresses["b"] = await _line(child)
    return child, end


def _start(*given: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.exchange", *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return (await asyncio.to_thread(child.stdout.readline)).strip()


async def _ended(child: subprocess.Popen[str], upto: int) -> dict[str, Any]:
    """Say how far to go; return what the other process says when it is there."""
    assert child.stdin is not None
    child.stdin.write(f"{upto}\n")
    child.stdin.flush()
    said: dict[str, Any] = json.loads(await _line(child))
    child.wait()
    return said


async def _follow(address: str, *, is_timed: bool) -> None:
    """Follow until told how far to go."""
    addresses = {"a": address, "b": ""}
    end = End("b", addresses)
    await end.open()
    addresses["b"] = end.port.address
    print(end.port.address, flush=True)
    following = end.port.exchange.follow(1, 0, end.wake.set)
    follower = Follower(PLAN, 1, ["0"])
    end.run()
    following.start()
    asking = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    cuts, at_ns, used = [], [], 0.0
    while True:
        for arrival in following.take():
            used = used or time.process_time()
            follower.follow("0", arrival.epoch, arrival.changes)
            following.applied(arrival)
        follower.stabilize()
        here = follower.cut.get("0/trades", 0)
        if is_timed:
            cuts.append(here)
            at_ns.append(time.monotonic_ns())
        if asking.done() and here >= int(asking.result()):
            break
        end.wake.clear()
        try:
            async with asyncio.timeout(0.01):
                await end.wake.wait()
        except TimeoutError:
            pass
    said = {"cpu_s": time.process_time() - used, "cuts": cuts, "at_ns": at_ns}
    print(json.dumps(said), flush=True)
    await end.close()


# --- beside ---


async def _beside(
    how: str, frames: list[bytes], send: Callable[[str, list[bytes]], Awaitable[None]]
) -> float:
    """Return the processor time of the busier process that sends frames in another way."""
    child = _start(how, str(sum(map(len, frames))))
    address = await _line(child)
    used = time.process_time()
    await send(address, frames)
    said = json.loads(await _line(child))
    child.wait()
    return float(max(time.process_time() - used, said["cpu_s"]))


async def _send_raw(address: str, frames: list[bytes]) -> None:
    _, writer = await asyncio.open_connection(HOST, int(address))
    for frame in frames:
        writer.write(frame)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def _receive_raw(length: int) -> None:
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = length
        while left:
            left -= len(await reader.read(PIECE))
        writer.close()
        done.set()

    server = await asyncio.start_server(serve, HOST, 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    used = time.process_time()
    await done.wait()
    print(json.dumps({"cpu_s": time.process_time() - used}), flush=True)


async def _send_grpc(address: str, frames: list[bytes]) -> None:
    import grpc  # noqa: PLC0415 - only beside

    def each() -> Iterator[bytes]:
        for frame in frames:  # its limit on a message is 4 MiB
            for at in range(0, len(frame), 1 << 20):
                yield frame[at : at + (1 << 20)]

    async with grpc.aio.insecure_channel(f"{HOST}:{address}") as channel:
        await channel.stream_unary("/bench/take")(each())


async def _receive_grpc(_length: int) -> None:
    import grpc  # noqa: PLC0415 - only beside

    done = asyncio.Event()

    async def take(requests: Any, _context: Any) -> bytes:
        async for _ in requests:
            pass
        done.set()
        return b""

    handlers = {"take": grpc.stream_unary_rpc_method_handler(take)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench", handlers)])
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    print(port, flush=True)
    used = time.process_time()
    await done.wait()
    said = json.dumps({"cpu_s": time.process_time() - used})
    await server.stop(1)
    print(said, flush=True)


if __name__ == "__main__":
    WHAT, GIVEN = sys.argv[1:]
    match WHAT:
        case "raw":
            asyncio.run(_receive_raw(int(GIVEN)))
        case "grpc":
            asyncio.run(_receive_grpc(int(GIVEN)))
        case _:
            asyncio.run(_follow(GIVEN, is_timed=WHAT == "latency"))
