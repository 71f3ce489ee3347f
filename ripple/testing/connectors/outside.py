"""Leaks of a connector in its process, and the fate of a killed one."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import tracemalloc
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A correct connector does not wait for these; a busy machine is slow to close things.
PATIENCE_S = 60.0
CHILD_S = 300.0
POLL_S = 0.01
READ_AHEAD_S = 0.3
_DESCRIPTORS = "/proc/self/fd"


@contextmanager
def nothing_left(rule: str) -> Iterator[None]:
    """Raise AssertionError if there are more files or threads at the end than in the beginning."""
    files, threads = _files(), _threads()
    yield
    ends = time.monotonic() + PATIENCE_S
    while (left := {**_more(_files(), files), **_more(_threads(), threads)}) and (
        time.monotonic() < ends
    ):
        time.sleep(POLL_S)
    assert not left, f"{rule}: leaked: {', '.join(left.values())}"


class Ahead:
    """How many bytes more are held than when this was made, by Python and by Arrow."""

    def __enter__(self) -> Ahead:
        tracemalloc.start()
        self._before = pa.total_allocated_bytes()
        return self

    def held_bytes(self) -> int:
        """Return the bytes, after a while in which threads may have read ahead."""
        time.sleep(READ_AHEAD_S)
        python, _ = tracemalloc.get_traced_memory()
        return int(python + pa.total_allocated_bytes() - self._before)

    def __exit__(self, *_: object) -> None:
        tracemalloc.stop()


def standing_still(act: Callable[[], object]) -> None:
    """Run ``act`` while all else here stands still, as after a stop of the process.

    In a thread, as it may have a loop of its own. Its error passes through.
    """
    failed: list[BaseException] = []

    def acted() -> None:
        try:
            act()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=acted)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def killed(story: Callable[[], None]) -> None:
    """Run ``story`` in a copy of this process, and kill that: nothing is closed, nothing flushed.

    Raises AssertionError if the story raises, or does not end.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        child = os.fork()
    if child == 0:  # pragma: no cover - it never returns
        try:
            story()
        except BaseException:
            import traceback  # noqa: PLC0415 - of the failure alone

            traceback.print_exc()
            os._exit(1)
        os.kill(os.getpid(), signal.SIGKILL)
    status = _ended(child)
    assert status is not None, f"the process that was to be killed hangs for {CHILD_S:.0f} s"
    assert os.WIFSIGNALED(status), "the process that was to be killed has failed; it says why"


def _ended(child: int) -> int | None:
    """Return how a child has ended, None if it had to be killed: a fork may hang with threads."""
    ends = time.monotonic() + CHILD_S
    while time.monotonic() < ends:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(POLL_S)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _files() -> dict[object, str]:
    gc.collect()
    found: dict[object, str] = {}
    with suppress(OSError):  # no such folder on other systems
        for name in os.listdir(_DESCRIPTORS):
            with suppress(OSError):
                found[name] = f"the file {os.readlink(f'{_DESCRIPTORS}/{name}')}"
    return found


def _threads() -> dict[object, str]:
    return {one: f"the thread {one.name}" for one in threading.enumerate()}


def _more(now: dict[object, str], before: dict[object, str]) -> dict[object, str]:
    return {one: what for one, what in now.items() if before.get(one) != what}
