from collections.abc import Iterator, Sequence

from ripple.world.broker import Headers, Read

PIECE_BYTES: int
BATCH_BYTES_MAX: int

def headers_of(data: bytes) -> Headers: ...
def next_offset(data: bytes, from_offset: int) -> int: ...
def decoded(
    data: bytes,
    from_offset: int,
    aborted: Sequence[tuple[int, int]],
    *,
    piece_bytes: int = ...,
    batch_bytes_max: int = ...,
    headers: bool = ...,
    refuses: bool = ...,
) -> Iterator[Read]: ...
