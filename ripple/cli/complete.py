"""Print a completion script for a shell: it knows all commands, and starts no Python."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = (
    'eval "$(ripple complete bash)"',
    'eval "$(ripple complete zsh)"',
    "ripple complete fish | source",
)
PROGRAMS = ("ripple", "ripple-cli")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script; return the exit code."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](tree()), end="")
    return 0


@dataclass
class Command:
    """A command, its subcommands and flags. flags: with their choices; () for a free value."""

    words: tuple[str, ...]
    purpose: str = ""
    below: dict[str, Command] = field(default_factory=dict)
    flags: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()

    def walk(self) -> Iterator[Command]:
        """Yield this command and all below it."""
        yield self
        for one in self.below.values():
            yield from one.walk()


def tree() -> Command:
    """Return the tree of commands, from their parsers."""
    from ripple.cli.main import PROGRAM, SUBCOMMANDS, parser_of  # noqa: PLC0415 - it imports this

    top = Command((), flags={"--help": None, "--version": None})
    for name, purpose in SUBCOMMANDS.items():
        _, parser = parser_of(name)
        top.below[name] = _command((name,), parser, purpose)
    assert PROGRAM in PROGRAMS
    return top


def _command(words: tuple[str, ...], parser: argparse.ArgumentParser, purpose: str) -> Command:
    found = Command(words, purpose)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for name, below in action.choices.items():
                if name in helps:  # an alias has no help
                    found.below[name] = _command((*words, name), below, helps[name])
        elif action.option_strings:
            for flag in action.option_strings:
                if flag.startswith("--"):
                    needs = action.nargs != 0
                    found.flags[flag] = tuple(map(str, action.choices or ())) if needs else None
                    found.helps[flag] = (action.help or "").partition(" (")[0].partition("%")[0]
        elif action.choices:
            found.values += tuple(map(str, action.choices))
    return found


def _bash(top: Command) -> str:
    lines = [
        "_ripple() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" at="" word',
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '    case "$at/$word" in',
    ]
    for one in top.walk():
        if one.words:
            path = "/".join(one.words)
            above = "/".join(one.words[:-1])
            given = f"{above}/{one.words[-1]}" if above else f"/{one.words[-1]}"
            lines.append(f"      {shlex.quote(given)}) at={shlex.quote(path)};;")
    lines += ["    esac", "  done", '  case "$at $prev" in']
    for one in top.walk():
        for flag, choices in one.flags.items():
            if choices is None:
                continue
            at = shlex.quote(f"{'/'.join(one.words)} {flag}")
            what = f'-W "{" ".join(choices)}"' if choices else "-f"
            lines.append(f'    {at}) COMPREPLY=($(compgen {what} -- "$cur")); return;;')
    lines += ["  esac", '  case "$at" in']
    for one in top.walk():
        words = " ".join([*one.below, *one.values, *one.flags])
        at = shlex.quote("/".join(one.words))
        files = "" if one.below or one.values or not one.words else "-f"
        lines.append(
            f'    {at}) COMPREPLY=($(compgen -W "{words}" {files} -- "$cur"));;'.replace(
                "  --", " --"
            )
        )
    lines += ["  esac", "}", f"complete -o filenames -F _ripple {' '.join(PROGRAMS)}", ""]
    return "\n".join(lines)


def _zsh(top: Command) -> str:
    return "\n".join(
        [
            f"#compdef {' '.join(PROGRAMS)}",
            "autoload -U +X bashcompinit && bashcompinit",
            "autoload -U +X compinit && (( ${+_comps} )) || compinit",
            _bash(top),
        ]
    )


def _fish(top: Command) -> str:
    lines = []
    for program in PROGRAMS:
        lines.append(f"complete -c {program} -f")
        for one in top.walk():
            seen = [f"__fish_seen_subcommand_from {word}" for word in one.words]
            others = f"not __fish_seen_subcommand_from {' '.join(one.below)}" if one.below else ""
            at = "; and ".join(filter(None, [*seen, others]))
            under = f"-n {shlex.quote(at)} " if at else ""
            for name, below in one.below.items():
                lines.append(
                    f"complete -c {program} {under}-a {name} -d {shlex.quote(below.purpose)}"
                )
            lines += [f"complete -c {program} {under}-a {value}" for value in one.values]
            flagged = "; and ".join(seen)
            under = f"-n {shlex.quote(flagged)} " if flagged else ""
            for flag, choices in one.flags.items():
                what = ""
                if choices is not None:
                    what = f" -x -a {shlex.quote(' '.join(choices))}" if choices else " -r -F"
                about = shlex.quote(one.helps.get(flag, ""))
                lines.append(f"complete -c {program} {under}-l {flag[2:]}{what} -d {about}")
    return "\n".join([*lines, ""])
