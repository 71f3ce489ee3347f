import numpy as np
import numpy.typing as npt

from ripple.engine.graph.column import Column

Ints = npt.NDArray[np.int64]

def link_sides(joined: Column, left: Column, right: Column, right_fields: Ints) -> None: ...
def lay_beside(
    joined: Column,
    left: Column,
    right: Column,
    right_fields: Ints,
    rows: Ints,
    left_slots: Ints,
    right_slots: Ints,
    *,
    needs_left: bool,
    needs_right: bool,
) -> None: ...
