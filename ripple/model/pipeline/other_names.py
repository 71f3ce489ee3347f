"""Names of steps in other libraries, each with the way to write it here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNION = 'rp.union("NAME", one, other)'
_FOLD = '.partition("NAME", key="FIELD").fold("NAME", n=rp.count())'
_AGGREGATES = '.fold("NAME", n=rp.count(), total=rp.sum("FIELD"))'
_DERIVE = '.derive("NAME", field=rp.col("FIELD") * 2)'
_MAP = '.map("NAME", function, into=Record)'
_WINDOW = '.window("NAME", rp.Tumbling("60s")) before .fold(...)'
_JOIN = '.join("NAME", other, on="FIELD", how="left") of tables, or .join_asof and .join_interval'
_INTERVAL = '.join_interval("NAME", other, on="FIELD", within=("-5s", "0s"), emit="final")'
_DISTINCT = '.distinct("NAME", key="FIELD", within="1h")'
_SINK = '.sink("NAME")'
_ASK = '.ask("NAME", async_function, into=Record)'
_TOP = '.fold("NAME", rows=rp.top_rows(10, by="FIELD", fields=["FIELD"]))'
_RUN = 'rp.run(pipeline, source=..., sink=...) after .sink("NAME")'

_SOURCE = 'rp.Pipeline("NAME").source("NAME", Record)'
_FILE = 'rp.run(pipeline, source="FILE", sink=...)'

# By name, without underscores and in lower case: names of Polars, pandas, Flink, Kafka Streams,
# Spark and Bytewax.
_HERE = {
    **dict.fromkeys(("union", "unionall", "concat", "merge", "append", "vstack"), _UNION),
    **dict.fromkeys(("groupby", "group", "groupbykey", "keyby", "repartition", "by"), _FOLD),
    **dict.fromkeys(("agg", "aggregate", "reduce", "count", "sum", "mean"), _AGGREGATES),
    **dict.fromkeys(("withcolumns", "withcolumn", "assign", "withfields", "extend"), _DERIVE),
    **dict.fromkeys(
        ("select", "mapvalues", "apply", "process", "drop", "rename", "cast", "mapelements"), _MAP
    ),
    **dict.fromkeys(("where", "query", "filternot"), '.filter("NAME", rp.col("FIELD") > 0)'),
    **dict.fromkeys(("explode", "flatmapvalues"), '.flat_map("NAME", function, into=Record)'),
    **dict.fromkeys(("groupbydynamic", "rolling", "windowedby", "resample", "windowall"), _WINDOW),
    **dict.fromkeys(("leftjoin", "outerjoin", "innerjoin", "cogroup", "connect"), _JOIN),
    **dict.fromkeys(("joinwhere", "intervaljoin"), _INTERVAL),
    "mergeasof": '.join_asof("NAME", other, on="FIELD", emit="final")',
    **dict.fromkeys(("unique", "dropduplicates", "deduplicate"), _DISTINCT),
    **dict.fromkeys(("to", "write", "output", "sinkto", "addsink", "writestream"), _SINK),
    **dict.fromkeys(("writecsv", "writeparquet", "sinkcsv", "sinkparquet", "tocsv", "tap"), _SINK),
    **dict.fromkeys(("collect", "execute", "run", "start", "show", "topandas"), _RUN),
    **dict.fromkeys(("totable", "ktable"), '.table("NAME", Record, key="FIELD")'),
    "withwatermark": '.source("NAME", Record, out_of_order="10s")',
    "assigntimestampsandwatermarks": '.source("NAME", Record, out_of_order="10s")',
    **dict.fromkeys(
        ("asyncmap", "mapasync", "unorderedwait"), '.ask("NAME", function, into=Record)'
    ),
    **dict.fromkeys(("head", "limit", "take", "topk", "nlargest", "orderby"), _TOP),
    **dict.fromkeys(("sort", "sortby", "sortvalues"), _TOP),
    **dict.fromkeys(("str", "dt", "pipe"), _MAP),
}
# The same of functions and classes.
_HERE_IN_RP = {
    **dict.fromkeys(("avg", "average"), 'rp.mean("FIELD")'),
    **dict.fromkeys(("std", "stddevsamp"), 'rp.stddev("FIELD")'),
    **dict.fromkeys(("var", "varsamp", "varpop"), 'rp.variance("FIELD")'),
    **dict.fromkeys(("nunique", "approxcountdistinct"), 'rp.count_distinct("FIELD")'),
    **dict.fromkeys(("quantile", "approxquantile"), 'rp.percentile("FIELD", 0.95)'),
    **dict.fromkeys(("len", "size"), "rp.count()"),
    **dict.fromkeys(("maxby", "argsmax"), 'rp.arg_max(by="FIELD", fields="FIELD")'),
    **dict.fromkeys(("minby", "argsmin"), 'rp.arg_min(by="FIELD", fields="FIELD")'),
    **dict.fromkeys(("concat", "unionall", "merge"), _UNION),
    **dict.fromkeys(("hopping", "hoppingwindow", "slidingwindow"), 'rp.Sliding("60s", "10s")'),
    **dict.fromkeys(("tumblingwindow", "tumble"), 'rp.Tumbling("60s")'),
    **dict.fromkeys(("sessionwindow", "sessions"), 'rp.Session("30s")'),
    **dict.fromkeys(("dataflow", "flow", "application", "stream", "dataframe"), _SOURCE),
    **dict.fromkeys(("readcsv", "scancsv", "readparquet", "scanparquet", "readjson"), _FILE),
}


def hint(name: str) -> str:
    """Return the way to write a step of another library, "" for an unknown one."""
    return _way(name, _HERE)


def hint_in_rp(name: str) -> str:
    """Return the way to write a function or class of another library, "" for an unknown one."""
    return _way(name, _HERE_IN_RP)


def _way(name: str, known: Mapping[str, str]) -> str:
    here = known.get(name.replace("_", "").lower())
    return f": write {here}" if here else ""
