"""``python -m ripple.wire FILE``: print a capture of the wire, up to its first bad frame.

Exit codes: 0 all frames are good; 1 one is not, or the capture ends inside one; 2 the capture
cannot be read; 141 nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import IO, BinaryIO

from ripple.encoding.compression import Compression
from ripple.wire.envelope import DEFAULT_LIMITS, Decoder, Limits
from ripple.wire.errors import RemoteProtocolError
from ripple.wire.view import View

PIECE_BYTES = 1 << 16
EXIT_BAD_FRAME, EXIT_UNREADABLE, EXIT_CLOSED_PIPE, EXIT_INTERRUPTED = 1, 2, 141, 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m ripple.wire", description="print a capture")
    parser.add_argument("file", metavar="FILE", help="a capture; - reads standard input")
    parser.add_argument(
        "--payload-bytes-max",
        type=int,
        default=DEFAULT_LIMITS.payload_bytes_max,
        help="longest payload to believe (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options.file, Limits(payload_bytes_max=options.payload_bytes_max))
    except BrokenPipeError:
        # What is still buffered has nowhere to go; keep the interpreter from trying at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLOSED_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(name: str, limits: Limits) -> int:
    if name == "-":
        return show(sys.stdin.buffer, sys.stdout, limits)
    try:
        with open(name, "rb") as capture:
            return show(capture, sys.stdout, limits)
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"ripple.wire: {name}: {error.strerror}\n")
        return EXIT_UNREADABLE


def show(capture: BinaryIO, out: IO[str], limits: Limits) -> int:
    """Print every frame of ``capture`` to ``out``; complain about the first bad one."""
    decoder = Decoder(limits, agreed=(Compression.LZ4, Compression.ZSTD))
    view = View()
    begins = 0
    try:
        while piece := capture.read(PIECE_BYTES):
            decoder.receive(piece)
            for frame in decoder:
                for line in view.lines(frame):
                    out.write(line + "\n")
                begins = decoder.offset
        decoder.finish()
    except RemoteProtocolError as error:
        out.flush()
        sys.stderr.write(f"ripple.wire: bad frame at byte {begins}: {error}\n")
        return EXIT_BAD_FRAME
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
