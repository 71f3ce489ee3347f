"""What shells complete: as the shells themselves see it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ripple.cli.complete import tree
from ripple.cli.main import SUBCOMMANDS
from tests.cli.processes import ripple


def completed(folder: Path, *words: str) -> list[str]:
    """Return what bash offers behind these words."""
    script = folder / "complete.bash"
    if not script.exists():
        script.write_text(ripple("complete", "bash").out)
    given = " ".join(f"'{word}'" for word in words)
    ended = subprocess.run(
        [
            "bash",
            "-c",
            f"source {script}; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _ripple; "
            'printf "%s\\n" "${COMPREPLY[@]}"',
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert not ended.stderr
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ripple", "insp"), ["inspect"]),
        (("ripple", "inspect", "gr"), ["graph"]),
        (("ripple", "debug", "tap", "--lim"), ["--limit"]),
        (("ripple", "query", "--format", "j"), ["json"]),
        (("ripple", "inspect", "graph", "--format", "d"), ["dot"]),
        (("ripple", "undr"), ["undrain"]),
        (("ripple", "config", "show", "coord"), ["coordinator"]),
        (("ripple-cli", "complete", "z"), ["zsh"]),
        (("ripple", "status", "--nothing"), []),
    ],
)
def test_bash_offers_what_may_follow(
    words: tuple[str, ...], offered: list[str], tmp_path: Path
) -> None:
    assert completed(tmp_path, *words) == offered


def test_every_command_is_known() -> None:
    known = tree()
    assert list(known.below) == list(SUBCOMMANDS)
    assert "--dry-run" in known.below["drain"].flags
    assert set(known.below["log"].below) > {"create", "append", "tail"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_shell_gets_its_own_script(shell: str) -> None:
    script = ripple("complete", shell).out
    assert "ripple-cli" in script
    assert "undrain" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
