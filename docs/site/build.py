"""Lays out the pages of the site, and the reference that docstrings say: ``build.py FOLDER``.

Zensical makes HTML of the folder then: ``make site``. Pages stay what they are in the repository;
what they link to outside of ``docs`` becomes a page too.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

ROOT = Path(__file__).parents[2]
COMING_FROM = ("polars", "flink", "bytewax", "quix", "csp")
MORE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "bench/README.md": "bench.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    **{f"docs/coming-from/{peer}.md": f"coming-from-{peer}.md" for peer in COMING_FROM},
}
# The SDK: each page has a title and modules, of which it shows the public names.
REFERENCE = {
    "reference.md": ("API: ripple", ["ripple"]),
    "reference-testing.md": ("API: test kit", ["ripple.testing"]),
    "reference-connectors.md": (
        "API: connectors",
        [
            "ripple.connectors.contract",
            "ripple.connectors.inputs",
            "ripple.connectors.restartable_input",
            "ripple.connectors.buffered_input",
            "ripple.connectors.connector",
        ],
    ),
    "reference-aggregates.md": (
        "API: aggregates",
        ["ripple.model.aggregate.contract", "ripple.model.aggregate.parts"],
    ),
    "reference-client.md": ("API: client", ["ripple.client.outputs"]),
}
NAV = {
    "Start": "index tutorial",
    "Coming from": " ".join(f"coming-from-{peer}" for peer in COMING_FROM),
    "How to": "pipelines event-time ordered-state order-books joins python cookbook sources sinks "
    "connectors kafka kafka-reading clients spark spark-deploy testing changing dead-letters "
    "extending deployment",
    "Operations": "operations dashboard metrics cluster recovery checkpoints",
    "Reference": "commands reference reference-connectors reference-aggregates reference-client "
    "reference-testing schemas log delta wire glossary stability "
    "changelog",
    "Explanation": "architecture engine stages exchange repartition seals simulation bench "
    "nexmark market compared",
    "Contributing": "contributing security",
}
_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
_EXAMPLE = re.compile(r"((?:^>>> .*\n?|^\.\.\. .*\n?)+(?:^\S.*\n?)*)", re.MULTILINE)
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields):$", re.MULTILINE)


def main(folder: Path) -> None:
    """Write the site's source."""
    pages = folder / "docs"
    pages.mkdir(parents=True)
    for path in sorted((ROOT / "docs").glob("*.md")):
        (pages / path.name).write_text(moved(path.read_text(), path))
    if (ROOT / "docs/images").is_dir():
        shutil.copytree(ROOT / "docs/images", pages / "images")
    for path, name in MORE.items():
        (pages / name).write_text(moved((ROOT / path).read_text(), ROOT / path))
    for name, (title, modules) in REFERENCE.items():
        (pages / name).write_text(reference(title, map(importlib.import_module, modules)))
    (folder / "zensical.toml").write_text(settings({path.stem for path in pages.glob("*.md")}))


def moved(text: str, path: Path) -> str:
    """Return a page whose links lead to where the pages of the site are."""

    def link(found: re.Match[str]) -> str:
        target, part = found[1], found[2] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        there = (path.parent / target).resolve().relative_to(ROOT).as_posix()
        if there in MORE:
            return f"]({MORE[there]}{part})"
        if re.fullmatch(r"docs/[^/]*\.md", there):
            return f"]({Path(there).name}{part})"
        if there.startswith("docs/images/"):
            return f"]({there.removeprefix('docs/')})"
        assert (ROOT / there).exists(), f"{path} links to {target}, which is not there"
        return f"](#the-file-{there})"

    made = _LINK.sub(link, text)
    return re.sub(r"\[([^]]*)\]\(#the-file-([^)]*)\)", r"\1 (`\2`)", made)


def reference(title: str, modules: Iterable[ModuleType]) -> str:
    """Return a page of the public names of modules, with their docstrings."""
    lines = [f"# {title}", ""]
    for module in modules:
        lines += [f"`{module.__name__}`", "", *_text(module), ""]
        for name in sorted(public_names(module), key=lambda name: (name.lower(), name)):
            lines += _entry(getattr(module, name), name, f"{module.__name__}.{name}")
    return "\n".join(lines) + "\n"


def public_names(module: ModuleType) -> list[str]:
    """Return ``__all__``, or the classes and functions that the module defines."""
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return list(getattr(module, "__all__", defined))


def _entry(found: Any, name: str, full: str) -> list[str]:
    lines = [f"## {name}", ""]
    if not (inspect.isclass(found) or callable(found)):
        return [*lines, f"`{full}`: {type(found).__name__}", ""]
    lines += [*_signature(found, full), "", *_text(found), ""]
    if inspect.isclass(found):
        for member, one in vars(found).items():
            if not member.startswith("_"):
                lines += _member(found, member, one)
    return lines


def _member(owner: type, name: str, one: Any) -> list[str]:
    called = getattr(one, "__func__", one)  # of a class method
    if not (inspect.getdoc(one) and (callable(called) or isinstance(one, property))):
        return []
    lines = [f"### {owner.__name__}.{name}", ""]
    if not isinstance(one, property):
        lines += [*_signature(called, f"{owner.__name__}.{name}"), ""]
    return [*lines, *_text(one), ""]


class _Plain:
    """An annotation, shown as it was written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _signature(found: Any, full: str) -> list[str]:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # of compiled code that does not tell
        return ["```python", f"{full}(...)", "```"]
    named = [
        one.replace(annotation=_plain(one.annotation)) for one in signature.parameters.values()
    ]
    shown = signature.replace(
        parameters=named, return_annotation=_plain(signature.return_annotation)
    )
    said = re.sub(r"<(?:[^<>]|<[^<>]*>)* at 0x[0-9a-f]+>", "...", str(shown))
    return ["```python", f"{full}{said}", "```"]


def _plain(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


def _text(found: Any) -> list[str]:
    """Return a docstring as Markdown: what is indented in it as it stands there."""
    text = inspect.getdoc(found) or ""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    text = re.sub(
        r"((?:^>>> .*\n?|^\.\.\. .*\n?)+(?:^\S.*\n?)*)", r"```pycon\n\1\n```", text, flags=re.M
    )
    return _SECTION.sub(r"**\1**\n", text).splitlines()


def settings(pages: set[str]) -> str:
    """Return what Zensical is told. pages: all that there are, each of which has a place."""
    placed = [page for names in NAV.values() for page in names.split()]
    assert sorted(placed) == sorted(pages), f"no place for {pages ^ set(placed)}"
    nav = ",\n".join(
        f"  {{{json.dumps(title)} = {json.dumps([f'{page}.md' for page in names.split()])}}}"
        for title, names in NAV.items()
    )
    return (
        f'[project]\nsite_name = "Ripple"\nsite_description = {json.dumps(_about())}\n'
        f'docs_dir = "docs"\nsite_dir = "site"\nuse_directory_urls = false\nnav = [\n{nav}\n]\n\n'
        '[project.theme]\nfont = false\nlanguage = "en"\n'
        'features = ["content.code.copy", "navigation.sections", "toc.follow"]\n\n'
        '[[project.theme.palette]]\nscheme = "default"\n'
        'media = "(prefers-color-scheme: light)"\n\n'
        '[[project.theme.palette]]\nscheme = "slate"\nmedia = "(prefers-color-scheme: dark)"\n'
    )


def _about() -> str:
    return importlib.import_module("ripple").__doc__.splitlines()[0]  # type: ignore[union-attr]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
