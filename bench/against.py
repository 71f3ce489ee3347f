"""This tree beside another commit: both built, each workload run by both in turns.

Each tree's Ripple runs the workloads of this tree, in a process of its own, so that the work is the
same; what an older commit cannot do is left out, and told.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.gate import FULL, QUICK, Compared, Trial, needs_trial, report

ROOT = Path(__file__).parent.parent
TURN = Path(__file__).with_name("turn.py")
ROUNDS = 3  # of two turns each


class GateError(Exception):
    """The comparison cannot be made."""


def against(
    commit: str, names: Sequence[str], limit: float, *, planted: float = 1.0, quick: bool
) -> int:
    """Compare this tree with ``commit``; print a table. Returns 0, or 1 if the gate stays shut.

    planted: so many times the events for this tree, a slowdown that the gate has to find.
    """
    with checked_out(commit) as tree:
        print(f"building {_short(commit)} in {tree}, and this tree", flush=True)
        _build(tree)
        _build(ROOT)
        found = []
        for name in names:
            found.append(compare(name, tree, limit, planted, quick=quick))
            print(f"  {name} {found[-1].word}".rstrip(), flush=True)
    print(f"\nleast processor time of a run in all trials; the limit is {limit:g} x")
    print("spread: the ratio without the fastest process of either\n")
    print(report(found, {"before": _short(commit), "now": "this tree"}))
    failed = [one.name for one in found if one.has_failed]
    if failed:
        print(f"\nslower than the gate lets pass: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Give the files of a commit in a folder that goes afterwards."""
    _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", what=f"no commit {commit!r}")
    with tempfile.TemporaryDirectory(prefix="ripple-against-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(tree), commit, what="cannot check it out")
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree), what="cannot remove the worktree")


def compare(
    name: str, tree: Path, limit: float, planted: float = 1.0, *, quick: bool = False
) -> Compared:
    """Compare this tree with the built one in ``tree``, in as many trials as it needs."""
    found = Compared(name, limit)
    while needs_trial(found, QUICK if quick else FULL):
        with Turns(tree, name) as theirs, Turns(ROOT, name, planted) as ours:
            if ours.refusal:
                raise GateError(f"{name} does not run: {ours.refusal}")
            if theirs.refusal:
                return Compared(name, limit, why=theirs.refusal)
            found = found.and_trial(_trial(theirs, ours))
    return found


def _trial(theirs: Turns, ours: Turns) -> Trial:
    """Take turns in the order A B B A, so that a drift of the machine's speed hits both alike."""
    before, now = [], []
    for _ in range(ROUNDS):
        before.append(theirs.run())
        now += [ours.run(), ours.run()]
        before.append(theirs.run())
    return Trial(min(before), min(now))


class Turns:
    """A process that runs one workload with one tree's Ripple whenever it is its turn."""

    def __init__(self, tree: Path, name: str, planted: float = 1.0) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [sys.executable, TURN, tree, name, str(planted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        # Why it cannot; empty if it can. The first run, which fills caches, is over then.
        self.refusal = str(self._answer())

    def run(self) -> float:
        """Return the least processor seconds of the runs of one more turn."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str | float:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise GateError(f"a workload ended with exit code {self._process.wait()}")
        answer: str | float = json.loads(line)
        return answer

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def _build(tree: Path) -> None:
    """Compile the modules of a tree where they lie; what is up to date stays."""
    with tempfile.TemporaryDirectory(prefix="ripple-build-") as build:
        done = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--build-temp", build],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise GateError(f"{tree} cannot be built: {done.stderr.strip()[-2000:]}")


def _short(commit: str) -> str:
    return _git("rev-parse", "--short", f"{commit}^{{commit}}", what=f"no commit {commit!r}")


def _git(*arguments: str, what: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GateError(f"{what} {done.stderr.strip()}".strip())
    return done.stdout.strip()
