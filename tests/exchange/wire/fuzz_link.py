"""Feeds a link what no peer should send: ``make fuzz``, or this file with --help.

Valid conversations are taken apart and spoiled: fields drawn anew, frames dropped, doubled and
swapped, bytes flipped under a checksum that is right again, lengths and flags that lie, bombs.
Whatever comes, a link answers with events: nothing but its own ProtocolErrors, no hang, no
memory beyond its limits, and the same events however the bytes were cut.

A failure prints its seed, round and input. ``--seed N --round N`` plays it once more, with the same
slices and meddling; ``--input HEX`` shows what a link makes of some bytes. Inputs worth keeping go
into tests/exchange/wire/corpus, one line of hexadecimal digits each, with what becomes of them in
test_link_fuzz.py.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ripple.core.codec.compression import Compression
from ripple.core.codec.crc import crc32c
from ripple.exchange.wire import edge_messages as e
from ripple.exchange.wire import messages as m
from ripple.exchange.wire.envelope import CRC_BYTES, HEADER_BYTES, Frame, encode
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.link import Link
from ripple.exchange.wire.link_events import Ended, Event, Received
from ripple.exchange.wire.link_limits import LinkLimits
from tests.exchange.wire import link_kit as kit

CORPUS = Path(__file__).parent / "corpus"
OUTPUTS = ("vwap", "mine", "quote", "nobody's", "")
ROUND_SECONDS_MAX = 10.0
LIMITS = LinkLimits(
    frame_bytes_max=4096,
    send_buffer_bytes_max=16384,
    control_bytes_max=2048,
    reason_chars_max=100,
    outputs_max=8,
)
CAN = frozenset({"changes", "edges", "traces", "lz4", "zstd"})
# What one link may come to hold, with the input itself and Python's own overhead.
MEMORY_BYTES_MAX = 4 << 20


def target(**options: Any) -> Link:
    options.setdefault("capabilities", CAN)
    return kit.link(
        "B",
        {"mine": kit.schema(1, "mine")},
        {"vwap": kit.schema(1), "quote": kit.schema(1, "quote")},
        limits=LIMITS,
        **options,
    )


# --- valid conversations ---------------------------------------------------------------------


def _cut(rng: random.Random) -> m.Cut:
    return m.cut_of({name: rng.randrange(4) for name in rng.sample("tuv", rng.randrange(3))})


def _body(rng: random.Random) -> bytes:
    return b"k=" + b"x" * rng.choice((0, 1, 50, 3000))


def _edge(rng: random.Random) -> str:
    # Mostly where a conversation is possible at all.
    return rng.choice(OUTPUTS) if rng.random() < 0.1 else rng.choice(("vwap", "quote"))


def _bundle(rng: random.Random) -> e.Bundle:
    sections = tuple(
        e.Section(rng.randrange(2), 0, 1, rng.randrange(3), _cut(rng), _cut(rng), 2**62, 1)
        for _ in range(rng.randrange(3))
    )
    return e.Bundle(_edge(rng), sections, _body(rng))


TRACE = "00-17380abc6f63f3cdaf093916e327df84-88b8fa2222fd7ba5-01"
MAKERS: tuple[Callable[[random.Random], m.Message], ...] = (
    _bundle,
    lambda r: e.Follow("mine", r.randrange(2), 0, r.randrange(4), None, _cut(r), 2**62),
    lambda r: e.Unfollow("mine", r.choice((0, 2**40)), 0),
    lambda r: e.Grant(r.choice((1, 2**62)), (e.GrantedRows("mine", 0, 0, 1, r.randrange(9)),)),
    lambda r: e.Release("mine", 0, r.randrange(2), -(2**63)),
    lambda r: e.Trace(_edge(r), 0, 0, 1, (TRACE,) * r.randrange(1, 3)),
    lambda r: m.Ping(r.randrange(3)),
    lambda r: m.Pong(r.randrange(3)),
    lambda r: m.Delta(r.choice(OUTPUTS), b"k", b"v", r.randrange(5), None),
    lambda r: m.Heartbeat("P", 0, r.random()),
    lambda r: m.CheckpointRequest("c", r.randrange(9)),
    lambda r: m.CheckpointAck("c", "P", 1, None),
    lambda r: m.SchemaNegotiation(r.random() < 0.5, ("because",)),
    lambda r: m.Goodbye(r.choice(list(m.Reason)), "x" * r.choice((0, 1000))),
)


def conversation(rng: random.Random) -> list[bytes]:
    """The frames of a peer, most of them allowed."""
    ours = ["changes", "edges", "traces"]
    can = rng.choice((ours, [*ours, "lz4"], [*ours, "zstd"], ["changes"], []))
    offer = {name: kit.schema(1, name) for name in ("vwap", "quote") if rng.random() < 0.9}
    said: list[m.Message] = [m.Handshake.announce("P", offer, can), m.SchemaNegotiation(True)]
    for _ in range(rng.randrange(1, 5)):
        said += [_bundle(rng) for _ in range(rng.randrange(4))] if can else []
        said += [rng.choice(MAKERS)(rng) for _ in range(rng.randrange(3))]
    packing = {"lz4": Compression.LZ4, "zstd": Compression.ZSTD}.get(can[-1] if can else "")
    frames = []
    for number, message in enumerate(said, 1):
        fingerprint = kit.fingerprint_of(message)
        compression = packing if packing and rng.random() < 0.5 else Compression.NONE
        with contextlib.suppress(LocalProtocolError):  # an output's name that is no fingerprint
            frames.append(
                encode(
                    m.to_frame(
                        message, sequence=number, fingerprint=fingerprint, compression=compression
                    )
                )
            )
    return frames


# --- spoiling them ---------------------------------------------------------------------------


def _sealed(frame: bytearray) -> bytes:
    """Give a frame the length and the checksum that fit what it has become."""
    struct.pack_into("<i", frame, HEADER_BYTES - 4, len(frame) - HEADER_BYTES - CRC_BYTES)
    struct.pack_into("<I", frame, len(frame) - CRC_BYTES, crc32c(bytes(frame[:-CRC_BYTES])))
    return bytes(frame)


def _flip_sealed(rng: random.Random, frames: list[bytes], at: int) -> None:
    frame = bytearray(frames[at])
    for _ in range(rng.randrange(1, 4)):
        frame[rng.randrange(4, len(frame) - CRC_BYTES)] = rng.choice((0, 1, 0x7F, 0x80, 0xFC, 0xFF))
    frames[at] = _sealed(frame)


def _cut_sealed(rng: random.Random, frames: list[bytes], at: int) -> None:
    frame = bytearray(frames[at])
    payload = len(frame) - HEADER_BYTES - CRC_BYTES
    del frame[HEADER_BYTES + rng.randrange(payload + 1) : len(frame) - CRC_BYTES]
    frames[at] = _sealed(frame)


def _grow_sealed(rng: random.Random, frames: list[bytes], at: int) -> None:
    frame = bytearray(frames[at])
    place = rng.randrange(HEADER_BYTES, len(frame) - CRC_BYTES + 1)
    frame[place:place] = rng.randbytes(rng.randrange(1, 9))
    frames[at] = _sealed(frame)


def _flip(rng: random.Random, frames: list[bytes], at: int) -> None:
    frame = bytearray(frames[at])
    frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    frames[at] = bytes(frame)


def _lie_about_length(rng: random.Random, frames: list[bytes], at: int) -> None:
    frame = bytearray(frames[at])
    struct.pack_into("<i", frame, HEADER_BYTES - 4, rng.choice((-1, 0, 1, 4096, 4097, 2**31 - 1)))
    frames[at] = bytes(frame)


def _bomb(rng: random.Random, frames: list[bytes], at: int) -> None:
    """Claim that a compressed payload holds more than it does."""
    payload = struct.pack("<BI", rng.randrange(4), rng.choice((0, 4096, 2**32 - 1)))
    packed = encode(Frame(24, payload + rng.randbytes(rng.randrange(60)), at + 1))
    frame = bytearray(packed)
    frame[6] = 1
    frames[at] = _sealed(frame)


def _drop(rng: random.Random, frames: list[bytes], at: int) -> None:
    del frames[at]


def _double(rng: random.Random, frames: list[bytes], at: int) -> None:
    frames.insert(at, frames[at])


def _swap(rng: random.Random, frames: list[bytes], at: int) -> None:
    other = rng.randrange(len(frames))
    frames[at], frames[other] = frames[other], frames[at]


def _nest(rng: random.Random, frames: list[bytes], at: int) -> None:
    """A handshake whose schema is a list of lists of lists."""
    hello = m.Handshake.announce("P", {"vwap": kit.schema(1)}, ["changes"]).to_bytes()
    field = hello.find(b"value") + len(b"value")
    deep = hello[:field] + b"\x07" * rng.choice((30, 300, 3000)) + hello[field:]
    frames[at] = encode(Frame(0, deep[:4096], at + 1))


SPOILING = (
    _flip_sealed,
    _flip_sealed,
    _cut_sealed,
    _grow_sealed,
    _flip,
    _lie_about_length,
    _bomb,
    _drop,
    _double,
    _swap,
    _nest,
)


def _renumbered(frames: list[bytes]) -> list[bytes]:
    """Number frames as if nothing was missing, so that the messages are looked at."""
    numbered = []
    for number, data in enumerate(frames, 1):
        frame = bytearray(data)
        struct.pack_into("<q", frame, 7, number)
        struct.pack_into("<I", frame, len(frame) - CRC_BYTES, crc32c(bytes(frame[:-CRC_BYTES])))
        numbered.append(bytes(frame))
    return numbered


def spoiled(rng: random.Random) -> bytes:
    frames = conversation(rng)
    kinds = rng.choice((0, 1, 1, 2, 4))
    for _ in range(kinds):
        if frames:
            rng.choice(SPOILING)(rng, frames, rng.randrange(len(frames)))
    if rng.random() < 0.3:
        frames = _renumbered(frames)
    if rng.random() < 0.1:
        frames.insert(rng.randrange(len(frames) + 1), rng.randbytes(rng.randrange(1, 100)))
    return b"".join(frames)


# --- the target ------------------------------------------------------------------------------


def _plain(event: Event) -> object:
    """An event in a form that compares by value: bodies are views of whatever they came in."""
    if isinstance(event, Received) and isinstance(event.message, e.Bundle):
        return event.message.edge, event.message.sections, bytes(event.message.body)
    if isinstance(event, Ended):
        return Ended, type(event.error)  # its text may quote as much as had arrived
    return event


def _slices(rng: random.Random, data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        count = rng.choice((1, 7, 60, 500, 5000))
        yield data[at : at + count]
        at += count


def _meddle(rng: random.Random, link: Link, now_ns: int) -> list[Event]:
    """Do something of our own, allowed or not."""
    acts: tuple[Callable[[], None], ...] = (
        link.handshake,
        lambda: link.carry(kit.bundle(_body(rng), rng.choice(OUTPUTS))),
        lambda: link.carry(e.Follow(_edge(rng), 0, 0, 1, None, None, 1)),
        lambda: link.carry(m.Delta(rng.choice(OUTPUTS), b"k", b"v", 1)),
        lambda: link.carry(m.Heartbeat("B", now_ns, 0.0)),
        lambda: link.close() if rng.random() < 0.1 else None,
        lambda: link.data_to_send() and None,
    )
    with contextlib.suppress(LocalProtocolError):
        rng.choice(acts)()
    return link.tick(now_ns) if rng.random() < 0.1 else []


def _checked(link: Link, events: list[Event]) -> None:
    for event in events:
        if isinstance(event, Ended):
            assert event is events[-1], "something happened after the end"
            assert link.ended
            assert event.error is None or isinstance(event.error, RemoteProtocolError)
    link.check_invariants()


def play(data: bytes, rng: random.Random) -> None:
    """Hold ``data`` against every promise; raises whatever is wrong."""
    whole, cut, busy = target(), target(), target()
    at_once = whole.receive(data, 0)
    _checked(whole, at_once)
    by_and_by: list[Event] = []
    for piece in _slices(rng, data):
        by_and_by += cut.receive(piece, 0)
    _checked(cut, by_and_by)
    assert list(map(_plain, at_once)) == list(map(_plain, by_and_by)), (
        "the slices made a difference"
    )
    now_ns = 0
    for piece in _slices(rng, data):
        now_ns += rng.choice((0, 0, 10**9, 6 * 10**9))
        _checked(busy, busy.receive(piece, now_ns))
        _checked(busy, _meddle(rng, busy, now_ns))
    _checked(busy, busy.receive_eof(now_ns))
    assert busy.ended


def play_within_memory(data: bytes, rng: random.Random) -> None:
    tracemalloc.start()
    try:
        play(data, rng)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEMORY_BYTES_MAX, f"{peak_bytes} bytes for {len(data)} of input"


def corpus() -> dict[str, bytes]:
    return {path.stem: bytes.fromhex(path.read_text()) for path in sorted(CORPUS.glob("*.hex"))}


class BrokenPromiseError(AssertionError):
    """An input for which a promise was broken; the message repeats it."""


def fuzz(seed: int, rounds: int, seconds_max: float) -> int:
    """Play spoiled conversations; return how many. Raises BrokenPromiseError."""
    started = time.monotonic()
    for number in range(rounds):
        if time.monotonic() - started > seconds_max:
            return number
        play_round(seed, number)
    return rounds


def play_round(seed: int, number: int) -> None:
    """Play one round, the same for the same numbers; raises BrokenPromiseError."""
    rng = random.Random(f"{seed}/{number}")
    data = spoiled(rng)
    hold(data, rng, f"--seed {seed} --round {number}", memory=number % 25 == 0)


def play_corpus() -> None:
    """Play what was worth keeping; raises BrokenPromiseError."""
    for name, data in corpus().items():
        hold(data, random.Random(0), f"--input with the corpus' {name}", memory=True)


def hold(data: bytes, rng: random.Random, repeat: str, *, memory: bool) -> None:
    """Play ``data``; raises BrokenPromiseError for whatever is wrong."""
    try:
        with _bounded_time():
            (play_within_memory if memory else play)(data, rng)
    except Exception as error:
        raise BrokenPromiseError(
            f"{type(error).__name__}: {error}\nrepeat with: {repeat}\ninput: {data.hex()}"
        ) from error


def show(data: bytes) -> None:
    """Print what a link makes of ``data``, then hold it against every promise."""
    for event in target().receive(data, 0):
        sys.stdout.write(f"{event}\n")
    play_within_memory(data, random.Random(0))


@contextlib.contextmanager
def _bounded_time() -> Iterator[None]:
    def hung(*_: object) -> None:
        raise TimeoutError(f"still busy after {ROUND_SECONDS_MAX} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, ROUND_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    parser = argparse.ArgumentParser(description="Feed a link what no peer should send.")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--rounds", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--round", type=int, help="play only this round of the seed")
    parser.add_argument("--input", type=bytes.fromhex, help="show this, in hexadecimal digits")
    options = parser.parse_args()
    if options.input is not None:
        show(options.input)
        return 0
    sys.stdout.write(f"seed {options.seed}\n")
    sys.stdout.flush()
    started = time.monotonic()
    try:
        if options.round is not None:
            play_round(options.seed, options.round)
            rounds = 1
        else:
            play_corpus()
            rounds = fuzz(options.seed, options.rounds, options.seconds)
    except BrokenPromiseError as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    seconds = time.monotonic() - started
    sys.stdout.write(f"{rounds} conversations in {seconds:.0f} s, nothing found\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
