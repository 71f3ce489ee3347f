"""The report of a replay: records read and rejected, rows, and digests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ripple.core.causes import Causes
from ripple.core.errors import InputError
from ripple.core.hashing import mix_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ripple.model.pipeline.plan import Plan

_ALL = 1 << 64


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a replay, in total and by partition.

    counters: of records, by the engine's names, in the stage that reads the input. letters:
    rejected records by cause. rows: of each output. digests: of each output, and ``digest`` of all,
    equal to those of one engine over everything. partitions: the reports, by stage and number; -1
    is the repartition stage. together_why: why one task read all inputs, None where it need not.
    unanswered: rows that wait at the end, since no answer to them is recorded. inputs: of
    DataFrames, by source, the number of rows, how many equal another one (``twice``), a digest of
    the records, their order, and tables with their versions; none of other inputs.
    """

    pipeline: str
    topology_hash: str
    cut: Mapping[str, int]
    counters: Mapping[str, int]
    letters: Mapping[str, int]
    rows: Mapping[str, int]
    digests: Mapping[str, str]
    digest: str
    uncomputable: Mapping[str, int]
    partitions: tuple[Mapping[str, Any], ...]
    together_why: str | None = None
    unanswered: int = 0
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        plan: Plan,
        reports: Iterable[Mapping[str, Any]],
        *,
        together_why: str | None = None,
        order: Mapping[str, str] | None = None,
        tables: Mapping[str, Sequence[str]] | None = None,
    ) -> Report:
        """Add up the reports of partitions.

        order, tables: of the rows of DataFrames, and the versioned tables that they read, by
        source.
        """
        found = sorted(reports, key=lambda one: (one["stage"], one["partition"]))
        first = [one for one in found if one["stage"] == min(each["stage"] for each in found)]
        rows: Counter[str] = Counter({output.name: 0 for output in plan.outputs})
        letters = Causes()
        uncomputable: Counter[str] = Counter()
        for one in found:
            rows.update(one["rows"])
            letters.take(one["letters"])
            uncomputable.update(one["uncomputable"])
        counters: Counter[str] = Counter()
        for one in first:
            counters.update(one["counters"])
        if len({one["stage"] for one in found}) > 1:
            # Records rejected by a later step of the first stage are counted there.
            counters["dead_lettered"] = letters.total()
        digests, digest = digests_of(plan, found)
        return cls(
            plan.name,
            plan.topology_hash,
            {name: offset for one in first for name, offset in one["cut"].items()},
            dict(counters),
            dict(sorted(letters.items())),
            dict(rows),
            digests,
            digest,
            dict(uncomputable),
            tuple(found),
            together_why,
            sum(one["unanswered"] for one in found),
            {} if order is None else _inputs(first, order, tables or {}),
        )

    def check_same_inputs(self, before: Report | None) -> None:
        """Raise InputError if DataFrames have other records than in a report before."""
        for name, one in self.inputs.items():
            other = one if before is None else before.inputs[name]
            if (one["rows"], one["digest"]) != (other["rows"], other["digest"]):
                raise InputError(
                    f"the DataFrame of {name} has changed between two readings: it had "
                    f"{other['rows']:,} records with the digest {other['digest']}, and has "
                    f"{one['rows']:,} with {one['digest']} now. Write it, as with "
                    "df.write.parquet('DIR'), or name the version of its table"
                )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON fields."""
        return {
            "pipeline": self.pipeline,
            "topology": self.topology_hash,
            "cut": dict(self.cut),
            "counters": dict(self.counters),
            "letters": dict(self.letters),
            "rows": dict(self.rows),
            "digests": dict(self.digests),
            "digest": self.digest,
            "uncomputable": dict(self.uncomputable),
            "unanswered": self.unanswered,
            **(
                {"inputs": {name: dict(one) for name, one in self.inputs.items()}}
                if self.inputs
                else {}
            ),
            "partitions": [dict(one) for one in self.partitions],
        }

    def text(self) -> str:
        """Return the report for people."""
        count = self.counters
        lines = [
            f"pipeline {self.pipeline}, topology {self.topology_hash}",
            f"read       {count.get('consumed', 0):,} records of {len(self.cut)} inputs",
            *([f"one task   read all: {self.together_why}"] if self.together_why else []),
            f"applied    {count.get('applied', 0):,}",
            f"late       {count.get('mildly_late', 0):,}, and {count.get('very_late', 0):,} too "
            "late for their windows",
            f"rejected   {sum(self.letters.values()):,}",
            *(f"           {number:,} x {cause}" for cause, number in self.letters.items()),
            *(f"rows       {number:,} of {output}" for output, number in self.rows.items()),
            *(
                f"absent     {number:,} of {fold}, which cannot be computed"
                for fold, number in self.uncomputable.items()
            ),
        ]
        for name, one in self.inputs.items():
            lines.append(
                f"order      {name}: {one['order']}; digest of its records {one['digest']}"
            )
            lines += [f"version    {name}: {table}" for table in one.get("tables", ())]
            if one["twice"]:
                lines.append(f"twice      {one['twice']:,} records of {name} equal another one")
        if self.unanswered:
            lines.append(f"waiting    {self.unanswered:,} rows, to which no answer is recorded")
        for one in self.partitions:
            if one["digests"]:
                found = ", ".join(f"{name} {digest}" for name, digest in one["digests"].items())
                lines.append(f"partition  stage {one['stage']}, {one['partition']}: {found}")
        lines += [f"digest     {name} {digest}" for name, digest in self.digests.items()]
        lines.append(f"digest     {self.digest}")
        return "\n".join(lines)


def _inputs(
    reports: Iterable[Mapping[str, Any]],
    order: Mapping[str, str],
    tables: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, Any]]:
    """Add up the counts of tasks by source; their inputs are SOURCE[/NUMBER]."""
    found = {}
    for name, text in order.items():
        own = [
            one
            for report in reports
            for given, one in report["inputs"].items()
            if given.partition("/")[0] == name
        ]
        digest = sum(int(one["digest"], 16) for one in own) % _ALL
        counts = {key: sum(one[key] for one in own) for key in ("rows", "twice")}
        versions = {"tables": list(tables[name])} if tables.get(name) else {}
        found[name] = {"order": text, **versions, **counts, "digest": f"{digest:016x}"}
    return found


def digests_of(plan: Plan, reports: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], str]:
    """Return the digest of each output over all partitions, and the one of all outputs."""
    totals = {output.name: 0 for output in plan.outputs}
    for one in reports:
        for output, digest in one["digests"].items():
            totals[output] = (totals[output] + int(digest, 16)) % _ALL
    whole = 0
    for output in plan.outputs:
        whole = mix_of(whole, totals[output.name])
    return {name: f"{total:016x}" for name, total in totals.items()}, f"{whole:016x}"
