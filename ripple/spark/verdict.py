"""The combined result of all checks, as text, JSON, or a page of HTML."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MEANINGS = {
    "crashes": "crashes at random points, restored from the last stored state: same digests",
    "oracle": "every row and counter against exact types that share no code with the engine",
    "outputs": "live outputs, their tables and changes, against a fresh evaluation at the same cut",
    "tables": "a table of another program against a fresh evaluation of the whole input",
    "checkpoints": "checkpoints against a fresh evaluation at the same cut",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings of all jobs, by check and subject.

    made: how they were made: the time, versions, the pipeline's file, the seed of crashes.
    """

    pipeline: str
    topology_hash: str
    source: str
    findings: tuple[Mapping[str, Any], ...]
    made: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pipeline: str,
        topology_hash: str,
        source: str,
        found: Iterable[Mapping[str, Any]],
        made: Mapping[str, str] | None = None,
    ) -> Verdict:
        """Sort findings."""
        order = list(MEANINGS)
        listed = sorted(found, key=lambda one: (order.index(one["check"]), one["of"]))
        return cls(pipeline, topology_hash, source, tuple(listed), dict(made or {}))

    @property
    def holds(self) -> bool:
        """Whether each check made comparisons, and there are no differences."""
        return bool(self.findings) and not self.idle and not self.differences

    @property
    def idle(self) -> list[str]:
        """The checks without any comparison, and without a note of the reason."""
        return [
            check
            for check in MEANINGS
            if (own := [one for one in self.findings if one["check"] == check])
            and not any((one["cases"] and one["rows"]) or one["note"] for one in own)
        ]

    @property
    def differences(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The differences, each with its check."""
        return [
            (f"{one['check']} of {one['of']}", each)
            for one in self.findings
            for each in one["differences"]
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON fields."""
        return {
            "pipeline": self.pipeline,
            "topology": self.topology_hash,
            "source": self.source,
            "holds": self.holds,
            "made": dict(self.made),
            "findings": [dict(one) for one in self.findings],
        }

    def _sums(self) -> list[tuple[str, int, int, int]]:
        """Return (check, comparisons, differences, records) for each check."""
        found = []
        for check in MEANINGS:
            own = [one for one in self.findings if one["check"] == check]
            if own:
                cases = sum(one["cases"] for one in own)
                differing = sum(max(len(one["differences"]), one["differing"]) for one in own)
                found.append((check, cases, differing, sum(one["rows"] for one in own)))
        return found

    def text(self) -> str:
        """Return it for people."""
        lines = [f"pipeline {self.pipeline}, topology {self.topology_hash}, from {self.source}"]
        if self.made:
            lines.append(_made_text(self.made))
        for check, cases, differing, rows in self._sums():
            what = f"{differing} differ" if differing else "all equal"
            lines.append(f"{check:<12} {cases:>9,} compared over {rows:,} records: {what}")
        lines += [
            f"             {one['of']}: {one['note']}" for one in self.findings if one["note"]
        ]
        for where, each in self.differences:
            lines += ["", f"{where}: {each['what']}"]
            lines += [f"  {line}" for line in _lines(each)]
        idle = f" (no comparisons by: {', '.join(self.idle)})" if self.idle else ""
        lines += ["", "holds" if self.holds else f"does not hold{idle}"]
        return "\n".join(lines)

    def html(self) -> str:
        """Return it as a self-contained page."""
        rows = "".join(
            f"<tr><td>{check}<td>{escape(MEANINGS[check])}<td class=n>{cases:,}<td class=n>{rows:,}"
            f"<td class={'bad' if differing else 'good'}>{differing or 'all equal'}</tr>"
            for check, cases, differing, rows in self._sums()
        )
        details = "".join(_detail(where, each) for where, each in self.differences)
        verdict = "holds" if self.holds else "does not hold"
        return _PAGE.format(
            title=escape(f"{self.pipeline}: {verdict}"),
            verdict=f"<span class={'good' if self.holds else 'bad'}>{verdict}</span>",
            about=escape(f"topology {self.topology_hash}, from {self.source}"),
            made=escape(_made_text(self.made)),
            rows=rows,
            plots=self._plots(),
            details=details,
        )

    def _plots(self) -> str:
        """Return plots of the crashes along each input, and of the comparisons of each job."""
        crashes = [one for one in self.findings if one["at"]]
        if not crashes:
            return ""
        height = 22 * len(crashes)
        marks = []
        for at, one in enumerate(crashes):
            y = 22 * at + 11
            color = "#b00" if one["differences"] else "#2a7"
            marks.append(f'<text x="0" y="{y + 4}">{escape(one["of"])}</text>')
            marks.append(f'<line x1="240" x2="840" y1="{y}" y2="{y}" stroke="#ccc"/>')
            marks += [
                f'<circle cx="{240 + 600 * x:.1f}" cy="{y}" r="3" fill="{color}"/>'
                for x in one["at"]
            ]
        return (
            "<h2>Crash points, from the beginning of the input to its end</h2>"
            f'<svg viewBox="0 0 850 {height}" width="850" height="{height}">{"".join(marks)}</svg>'
        )


def _made_text(made: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in made.items())


def _row(row: Mapping[str, Any] | None) -> str:
    return "no row" if row is None else json.dumps(dict(row), ensure_ascii=False)


def _lines(each: Mapping[str, Any]) -> list[str]:
    """Return the output and key of a difference, if any, with its events."""
    lines = []
    if each["output"]:
        key = f", key {each['key']}" if each["key"] else ""
        lines.append(f"output    {each['output']}{key}")
        if key:
            lines += [f"expected  {_row(each['expected'])}", f"found     {_row(each['found'])}"]
            lines += [f"differs   {text}" for text in each["fields"]]
    return lines + [f"event     {_row(event)}" for event in each["events"]]


def _detail(where: str, each: Mapping[str, Any]) -> str:
    body = escape("\n".join(_lines(each)))
    return f"<h2 class=bad>{escape(where)}</h2><p>{escape(each['what'])}</p><pre>{body}</pre>"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 60em; margin: 2em auto; color: #222 }}
table {{ border-collapse: collapse }} td, th {{ padding: .3em .8em; border-bottom: 1px solid #ddd;
text-align: left }} .n {{ text-align: right }} .good {{ color: #175 }} .bad {{ color: #b00 }}
pre {{ background: #f6f6f6; padding: 1em; white-space: pre-wrap }}
svg text {{ font: 12px sans-serif }}
</style>
<h1>{title}</h1><p>{about}. It {verdict}.</p>
<p>{made}</p>
<table><tr><th>Check<th>What<th>Compared<th>Records<th>Differ</tr>{rows}</table>
{plots}{details}
</html>
"""
