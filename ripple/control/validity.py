"""Remaining validity of a process's certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.reread import Reread
from ripple.core.errors import RippleError
from ripple.world import live_tls

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import Clock
    from ripple.world.tls import Tls

SOON_S = 14 * 86_400
LOOK_S = 60.0


class Validity:
    """Validity of a certificate in a file, which may be replaced."""

    def __init__(self, tls: Tls, now_s: Callable[[], int]) -> None:
        """Read the file. Raises TlsError for an invalid one."""
        self._now_s = now_s
        self._path = tls.certificate
        self._ends_s = Reread(tls.certificate, _ends_s)

    @property
    def left_s(self) -> int:
        """Seconds until it expires, below 0 afterwards."""
        return self._ends_s() - self._now_s()

    @property
    def concern(self) -> str:
        """The operator's next step, "" for none yet."""
        left_s = self.left_s
        if left_s >= SOON_S:
            return ""
        when = "has run out" if left_s <= 0 else f"runs out in {left_s // 86_400} days"
        return f"the certificate in {self._path} {when}: replace it, nothing needs a restart"


def validity_of(tls: Tls | None, clock: Clock) -> Validity | None:
    """Return the validity of a process's certificate, None without one."""
    return None if tls is None else Validity(tls, lambda: clock.now_ns() // 1_000_000_000)


async def watch(
    validity: Validity | None,
    say: Callable[[str], None],
    clock: Clock,
    show: Callable[[str], None] = lambda _: None,
) -> None:
    """Log daily that a certificate expires soon. show: takes the present concern, "" for none."""
    said = ""
    while validity is not None:
        concern = validity.concern
        show(concern)
        if concern not in ("", said):
            say(concern)
        said = concern
        await clock.sleep(LOOK_S)


def _ends_s(path: str) -> int:
    try:
        return live_tls.ends_s(path)
    except (OSError, ValueError, IndexError) as error:
        raise RippleError(f"{path}: {error}") from error
