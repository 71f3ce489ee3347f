import numpy as np
import numpy.typing as npt

HAS_WIDE: bool

def murmur2_of(data: bytes) -> int: ...
def xxh64_of(data: bytes, seed: int = 0) -> int: ...
def xxh64_each(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint64]
) -> None: ...
def mix_of(h: int, value: int) -> int: ...
def mix_each(hashes: npt.NDArray[np.uint64], values: npt.NDArray[np.uint64]) -> None: ...
def mix_words(
    hashes: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    valid: npt.NDArray[np.uint8] | None,
    *,
    are_floats: bool,
) -> None: ...
def mix_each_at(
    hashes: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    places: npt.NDArray[np.int64],
    *,
    wide: bool,
) -> None: ...
def partition_of(key: bytes, partitions: int) -> int: ...
def partitions_of(
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.int32],
    partitions: int,
) -> None: ...
