"""Sessions of exchanges, from the package ``exchange-calendars``: read when a plan is made."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.extras import needed

if TYPE_CHECKING:
    from datetime import date

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

NAMES_SUGGESTED = 3

_MORE_DAYS = 14


def exchange_sessions(name: object, first: date, last: date) -> tuple[Ints, str]:
    """Return open, close and the bounds of the break of each session, and their origin.

    The sessions are those that are open between the midnights of UTC of ``first`` and ``last``:
    in Sydney a session opens on the day before its date. The bounds of a break are the close
    where there is none. Raises PlanError.
    """
    from importlib.metadata import version  # noqa: PLC0415 - with the package alone

    try:
        with needed("calendars", "rp.TradingSessions with the name of an exchange"):
            from exchange_calendars import (  # noqa: PLC0415 - likewise
                calendar_utils,
            )
    except ModuleNotFoundError as error:
        raise PlanError(
            f"{error}; or give it the sessions: rp.TradingSessions(table=...)"
        ) from None
    if not isinstance(name, str):
        raise PlanError(f"name must be that of a calendar, such as 'XNYS', not {shown(name)}")
    release = version("exchange-calendars")
    known = calendar_utils.get_calendar_names()
    if name not in known:
        raise PlanError(_unknown(name, known, release))
    made = calendar_utils._default_calendar_factories[calendar_utils.resolve_alias(name)]
    _check_covered(name, made, first, last, release)
    try:
        schedule = _schedule(made, first, last)
    # NotImplementedError: of pandas, in the rules of some holidays for years such as 1800.
    except (ValueError, NotImplementedError) as error:
        raise PlanError(
            f"exchange-calendars {release} cannot tell the sessions of {name} from {first} to "
            f"{last}: take other days, or give a table ({_line(error)})"
        ) from error
    columns = [
        schedule[one].to_numpy("datetime64[ns]").astype(np.int64)
        for one in ("open", "close", "break_start", "break_end")
    ]
    opens, closes, *breaks = columns
    has_none = np.isnat(schedule["break_start"].to_numpy("datetime64[ns]"))
    breaks = [np.where(has_none, closes, one) for one in breaks]
    return np.stack([opens, closes, *breaks], axis=1), f"exchange-calendars {release}"


def _schedule(made: Any, first: date, last: date) -> Any:
    """Return the frame of the sessions that are open in the days.

    Of no days at all the package takes those around today, and of a single day none.
    """
    least, most = made.bound_min(), made.bound_max()
    start = first - timedelta(days=_MORE_DAYS)
    end = last + timedelta(days=_MORE_DAYS)
    start = start if least is None else max(start, least.date())
    end = end if most is None else min(end, most.date())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its own calls of pandas
        schedule = made(start=str(start), end=str(end)).schedule
    opens, closes = (schedule[one].to_numpy("datetime64[ns]") for one in ("open", "close"))
    return schedule[(closes > np.datetime64(first, "ns")) & (opens < np.datetime64(last, "ns"))]


def _check_covered(name: str, made: Any, first: date, last: date, release: str) -> None:
    """Raise PlanError for days that the package has no calendar of."""
    least, most = made.bound_min(), made.bound_max()
    for is_beyond, bound, word, argument in (
        (least is not None and str(least.date()) > str(first), least, "begins at", "start"),
        (most is not None and str(most.date()) < str(last), most, "ends at", "end"),
    ):
        if is_beyond:
            raise PlanError(
                f"the calendar of {name} in exchange-calendars {release} {word} {bound.date()}: "
                f"take {argument}='{bound.date()}', a newer release, or a table"
            )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _unknown(name: str, known: list[str], release: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only errors say it

    near = get_close_matches(name.upper(), known, NAMES_SUGGESTED, 0.5)
    others = ", ".join(near or ["XNYS", "XLON", "XTKS"])
    return (
        f"there is no calendar {shown(name)} in exchange-calendars {release}: write one such as "
        f"{others}, or give a table"
    )
