"""Merges the metrics pages of several workers into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def merged(pages: Mapping[str, str]) -> str:
    """Return one page of pages by worker: samples without a worker label get one."""
    families: dict[str, tuple[dict[str, None], list[str]]] = {}
    for worker, page in pages.items():
        name = ""
        for line in page.splitlines():
            if line.startswith(("# HELP ", "# TYPE ")):
                name = line.split(" ", 3)[2]
            heads, samples = families.setdefault(name, ({}, []))
            if line.startswith("#"):
                heads[line] = None
            elif line:
                samples.append(_with_worker(line, worker))
    lines = (line for heads, samples in families.values() for line in (*heads, *samples))
    return "".join(f"{line}\n" for line in lines)


def _with_worker(sample: str, worker: str) -> str:
    name, brace, rest = sample.partition("{")
    label = f'worker="{worker}"'  # an id needs no escapes
    if not brace:
        name, _, value = sample.partition(" ")
        return f"{name}{{{label}}} {value}"
    if rest.startswith('worker="') or ',worker="' in rest:
        return sample
    return f"{name}{{{label},{rest}"
