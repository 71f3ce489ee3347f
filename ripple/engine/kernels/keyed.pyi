from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ripple.engine.kernels.states import States
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import KeySpace
from ripple.model.window.assign import Tumbling

class Keyed:
    def __init__(self, keys: KeySpace, names: Sequence[str]) -> None: ...
    def slots(self, rows: Any) -> npt.NDArray[np.int64]: ...
    def add(self, rows: Any, states: States, touched: SlotSet, ledger: Any) -> None: ...
    def add_to_windows(
        self,
        rows: Any,
        windows: Tumbling,
        space: KeySpace,
        states: States,
        touched: SlotSet,
        ledger: Any,
    ) -> npt.NDArray[np.int64]: ...
