"""A stream of bytes cut into blocks of whole lines, in one buffer that is used again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.raw_input import RawInput

_MARK_AND_END_BYTES = 8  # of a line, besides its length: byte order mark and line end


def line_blocks(
    raw: RawInput, block_bytes: int, line_length_bytes_max: int
) -> Iterator[memoryview | None]:
    """Yield blocks of whole lines; each is valid until the next one is asked for.

    Of a line that is too long only the beginning is kept, long enough to be rejected, so that
    memory is ``block_bytes + line_length_bytes_max`` for lines of any length. None means that no
    more input is available for now. When the input turns out to be damaged, the whole lines before
    the damage come first, then the InputError.
    """
    kept_max = line_length_bytes_max + _MARK_AND_END_BYTES
    buffer = bytearray(block_bytes + kept_max)
    view = memoryview(buffer)
    whole = 0  # bytes up to the last line end
    filled = 0  # bytes up to the end of the input so far
    dropping = False  # inside the rest of a line that is too long
    is_whole = True  # whether the yielded lines are known to be all
    while True:
        starved = not raw.is_ready(0)
        if whole and (starved or filled >= block_bytes):
            yield view[:whole]
            view[: filled - whole] = view[whole:filled]
            filled, whole = filled - whole, 0
            is_whole = False
        # Asked again, since the consumer may have been busy with the block.
        if not is_whole and not raw.is_ready(0):
            yield None
            is_whole = True
        try:
            count = raw.read_into(view[filled : block_bytes if filled < block_bytes else None])
        except InputError:
            yield view[:whole]
            raise
        if count == 0:
            break
        if dropping:
            line_end = buffer.find(b"\n", filled, filled + count)
            if line_end < 0:
                continue
            dropping = False
            rest = filled + count - line_end
            view[filled : filled + rest] = view[line_end : filled + count]
            count = rest
        whole = max(whole, buffer.rfind(b"\n", filled, filled + count) + 1)
        filled += count
        if filled - whole > kept_max:
            filled = whole + kept_max
            dropping = True
    if filled:
        yield view[:filled]
