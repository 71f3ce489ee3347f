"""Commands as real processes, from the root of the project."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli import fork_server
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
DEMO = [sys.executable, "-m", "ripple.cli.run.vwap_demo"]
RIPPLE = [sys.executable, "-m", "ripple.cli.main"]

BOOK_TRADES = """\
# symbol,price,size,timestamp_ns,venue
AAPL,150.00,100,1709000000000000000,XNAS
AAPL,150.25,200,1709000001000000000,XNAS

GOOG,175.50,50,1709000001500000000,XNYS
AAPL,150.10,150,1709000002000000000,XNAS
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[str]:
        return self.out.splitlines()

    @property
    def only_line(self) -> str:
        """What was said on standard error, which is one line."""
        (line,) = self.err.splitlines()
        return line


def run(
    command: list[str],
    *arguments: object,
    given: str | bytes = b"",
    through: tuple[str, ...] = (),
    folder: Path = ROOT,
) -> Ended:
    """Run a command; those of Ripple in a process that is forked, not started (fork_server).

    through: a command that starts another one with fewer rights. folder: where it runs.
    """
    texts = [str(argument) for argument in arguments]
    given = given.encode() if isinstance(given, str) else given
    if command in (DEMO, RIPPLE):
        code, out, err = fork_server.run(
            command[-1], texts, given, PATIENCE_S, through=through, folder=folder
        )
        return Ended(code, out.decode(), err.decode())
    ended = subprocess.run(
        [*through, *command, *texts],
        input=given,
        capture_output=True,
        cwd=folder,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def demo(*arguments: object, given: str | bytes = b"") -> Ended:
    return run(DEMO, *arguments, given=given)


def ripple(*arguments: object, given: str | bytes = b"") -> Ended:
    return run(RIPPLE, *arguments, given=given)


def shell(script: str) -> Ended:
    """Run a line of shell in which ``$demo`` and ``$ripple`` are the commands."""
    names = f"demo='{' '.join(DEMO)}'; ripple='{' '.join(RIPPLE)}'; "
    return run(["bash", "-c", names + script])


def start(command: list[str], *arguments: object, **streams: int) -> subprocess.Popen[bytes]:
    """Start a command that reads from a pipe; its streams are unbuffered."""
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        bufsize=0,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=streams.get("stderr", subprocess.PIPE),
    )
