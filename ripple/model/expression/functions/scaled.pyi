import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int32]
Whole = npt.NDArray[np.int64]

ROUNDINGS: tuple[str, ...]
WHOLE_FLOAT: int

def parse(
    valid: Bytes | None, offsets: Offsets, data: Bytes, precision: int, scale: int
) -> tuple[Whole, Bytes]: ...
def texts(values: Whole, scale: int, trimmed: bool = False) -> tuple[Offsets, Bytes]: ...
def divide(values: Whole, divisors: Whole, shift: int, rounding: int) -> tuple[Whole, Bytes]: ...
def rounded(values: Whole, digits: int, rounding: int) -> Whole: ...
def to_floats(values: Whole, scale: int) -> npt.NDArray[np.float64]: ...
def of_floats(
    values: npt.NDArray[np.float64], precision: int, scale: int
) -> tuple[Whole, Bytes]: ...
