import numpy as np
import numpy.typing as npt

from ripple.model.schema.exported import Lent

ANY_LATENESS_NS: int
ANY_FUTURE_NS: int
NONE: int
END: int
EVENT_TIME_NS_MAX: int
ON_TIME: int
MILDLY_LATE: int
VERY_LATE: int
FUTURE: int
OUT_OF_RANGE: int
TOO_FAR: int

def judge(
    times_ns: npt.NDArray[np.int64] | Lent,
    watermark_ns: int,
    out_of_order_ns: int,
    lateness_ns: int,
    future_ns: int,
    future_ns_max: int,
) -> tuple[int, npt.NDArray[np.uint8] | None, int, int, int, int]: ...
def if_on_time(
    times_ns: Lent, watermark_ns: int, out_of_order_ns: int, near_ns: int
) -> int | None: ...
def last_crossing(
    times_ns: npt.NDArray[np.int64] | Lent,
    watermark_ns: int,
    out_of_order_ns: int,
    future_ns_max: int,
    others_ns: int,
    interval_ns: int,
) -> int: ...
