"""Commands as copies of a process that has imported what they need: a start then costs little.

Most of what a short command costs is importing Arrow and NumPy. ``python -m tests.cli.fork_server``
does that once and forks for each command: a process of its own, with its own descriptors, signals
and exit code. What the start itself does is tried with real starts (``test_start_up``, ``shell``,
``start``). All commands of one server have the same seed of ``hash()``; a test for which that
matters sets PYTHONHASHSEED, and then the command is started anew.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread

from ripple.control.process import leave

ROOT = Path(__file__).parents[2]
MODULES = ("ripple.cli.main", "ripple.cli.run.vwap_demo")
BESIDE = (
    "asyncio", "pandas", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet",
    "ripple.cli.run.durable",
    "ripple.cli.log.log", "ripple.cli.run.plan", "ripple.cli.run.run", "ripple.connectors.log.sink",
    "ripple.connectors.files.parquet.files", "ripple.connectors.files.text.file",
)  # fmt: skip
# What only a start reads, but for the folders of modules, which a fork takes up as well.
AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC")
FOLDERS = "PYTHONPATH"


class Command:
    """A server that runs one command at a time."""

    def __init__(self, through: tuple[str, ...] = ()) -> None:
        """Start it ``through`` a command that starts another, as ``setpriv`` does."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._server = subprocess.Popen(  # it ends when the socket does
                [*through, sys.executable, "-m", "tests.cli.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._server.wait()

    def run(
        self, module: str, arguments: list[str], given: bytes, timeout_s: float, folder: Path
    ) -> tuple[int, bytes, bytes]:
        """Return the exit code and what was written, as ``subprocess.run`` does."""
        ends = [os.pipe() for _ in range(3)]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = ends
        asked = json.dumps([module, arguments, dict(os.environ), str(folder)]).encode()
        theirs = [theirs_in, theirs_out, theirs_err]
        socket.send_fds(self._socket, [asked], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        written: dict[int, bytes] = {}
        threads = [
            Thread(target=lambda fd=fd: written.update({fd: _read(fd)}))
            for fd in (ours_out, ours_err)
        ]
        threads.append(Thread(target=_write, args=(ours_in, given)))
        for thread in threads:
            thread.start()
        self._socket.settimeout(timeout_s)
        code = int(self._socket.recv(64))
        for thread in threads:
            thread.join()
        return code, written[ours_out], written[ours_err]


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as stream:
        return stream.read()


def _write(descriptor: int, given: bytes) -> None:
    try:
        with open(descriptor, "wb") as stream:
            stream.write(given)
    except BrokenPipeError:
        pass


@cache
def _command(
    process: int, at_start: tuple[tuple[str, str], ...], through: tuple[str, ...]
) -> Command:
    del process, at_start
    return Command(through)


def run(
    module: str,
    arguments: list[str],
    given: bytes,
    timeout_s: float,
    *,
    through: tuple[str, ...] = (),
    folder: Path = ROOT,
) -> tuple[int, bytes, bytes]:
    """Run ``python -m module`` in a fork of a server that was started so, with these variables."""
    held = tuple(
        sorted((k, v) for k, v in os.environ.items() if k.startswith(AT_START) and k != FOLDERS)
    )
    return _command(os.getpid(), held, through).run(module, arguments, given, timeout_s, folder)


def _serve(descriptor: int) -> tuple[str, list[str]]:
    """Fork for each command; return in the fork, what it is to run."""
    asking = socket.socket(fileno=descriptor)
    while True:
        asked, streams, _, _ = socket.recv_fds(asking, 1 << 20, 3)
        if not asked:
            sys.exit()
        child = os.fork()
        if not child:
            asking.close()
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
                os.close(stream)
            module, arguments, environment, folder = json.loads(asked)
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            folders = environment.get(FOLDERS, "").split(os.pathsep)
            sys.path[:1] = [folder, *filter(None, folders)]  # as ``-m`` has it
            return module, arguments
        for stream in streams:
            os.close(stream)
        status = os.waitpid(child, 0)[1]
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    for name in (*MODULES, *BESIDE):
        import_module(name)
    gc.freeze()  # so that no fork goes through what is there already
    command, own = _serve(int(sys.argv[1]))
    main = import_module(command)
    sys.argv = [str(main.__file__), *own]
    try:
        code = main.main()
    except SystemExit as end:  # argparse's, of --help
        if not isinstance(end.code, int):
            raise
        code = end.code
    leave(code)  # as the installed command does
