"""Arrays of Python values, for types without an array of NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class ObjectArrays(ABC):
    """The arrays of a rule: users' functions get values as Python has them."""

    @abstractmethod
    def value(self, number: Any) -> Any:
        """Return the Python value of a stored one."""

    def array(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array of the values of stored ones."""
        return np.fromiter(map(self.value, numbers.tolist()), object, len(numbers))

    def numbers(self, array: npt.NDArray[Any]) -> None:
        """Return None: such an array has no numbers."""
        del array  # of dtype object it is a list
