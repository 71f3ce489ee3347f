"""How a command ends: one line on standard error, and an exit code that says why."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ripple.connectors.target import ClosedPipeError
from ripple.errors import RippleError

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it
EXIT_CLOSED_PIPE = 141  # 128 + SIGPIPE


def exit_code(program: str, work: Callable[[], int]) -> int:
    """Run ``work`` and return the process's exit code; expected failures become one line."""
    try:
        return work()
    except ClosedPipeError:
        # The reader went away: not an error worth a word. What Python would still flush goes
        # nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_CLOSED_PIPE
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except RippleError as error:
        print(f"{program}: {' '.join(str(error).split())}", file=sys.stderr)
        return EXIT_FAILURE
