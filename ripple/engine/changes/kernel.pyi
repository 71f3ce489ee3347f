import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ops = npt.NDArray[np.int8]
Slots = npt.NDArray[np.int64]

def note_changes(
    ops: Ops,
    valid: Bytes,
    valid_offset: int,
    cleared: Bytes,
    cleared_offset: int,
    required: bool,
    changed: Bytes,
) -> int: ...
def place_rows(
    ops: Ops, slots: Slots, changed: Bytes, present: Bytes, stamps: Slots, stamp: int
) -> int: ...
def scatter(
    ops: Ops,
    slots: Slots,
    values: Bytes,
    valid: Bytes,
    valid_offset: int,
    cleared: Bytes,
    cleared_offset: int,
    width: int,
    held: Bytes,
    held_valid: Bytes,
) -> None: ...
