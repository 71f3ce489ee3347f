"""Names of steps and functions in other libraries, each with the way to write it here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Kind: TypeAlias = Literal["step", "function", "expression", "text", "time", "aggregate"]

_UNION = 'rp.union("NAME", one, other)'
_FOLD = '.partition("NAME", key="FIELD").fold("NAME", n=rp.count())'
_AGGREGATES = '.fold("NAME", n=rp.count(), total=rp.sum("FIELD"))'
_DERIVE = '.derive("NAME", field=rp.col("FIELD") * 2)'
_MAP = '.map("NAME", function, into=Record)'
_WINDOW = '.window("NAME", rp.Tumbling("60s")) before .fold(...)'
_JOIN = '.join("NAME", other, on="FIELD", how="left") of tables, or .join_asof and .join_interval'
_INTERVAL = '.join_interval("NAME", other, on="FIELD", within=("-5s", "0s"), emit="final")'
_DISTINCT = '.distinct("NAME", key="FIELD", within="1h")'
_PREVIOUS = (
    '.scan("NAME", key="FIELD", settled=True, previous=rp.lag("FIELD")), which adds the value of '
    "the row before"
)
_ROLLING = '.scan("NAME", key="FIELD", settled=True, deviation=rp.rolling_stddev("FIELD", 20))'
_THERE = '.filter("NAME", rp.col("FIELD").is_not_null())'
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
    **dict.fromkeys(("explode", "unnest"), '.flat_map("NAME", rp.col("LIST"))'),
    "flatmapvalues": '.flat_map("NAME", function, into=Record)',
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
    "str": '.derive("NAME", field=rp.col("FIELD").str.to_lowercase())',
    "dt": '.derive("NAME", field=rp.col("FIELD").dt.truncate("1h"))',
    "pipe": _MAP,
    **dict.fromkeys(("dropna", "dropnulls"), _THERE),
    **dict.fromkeys(("shift", "lag", "diff", "pctchange"), _PREVIOUS),
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
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint64"), "int: it has 64 bits"),
    **dict.fromkeys(("float32", "float64", "double"), "float: it has 64 bits"),
    **dict.fromkeys(("utf8", "string", "varchar"), "str"),
    "boolean": "bool",
    **{one: f'rp.col("FIELD").{one}()' for one in ("log", "log10", "log1p", "exp", "sqrt", "abs")},
    **dict.fromkeys(("shift", "diff"), _PREVIOUS),
    **dict.fromkeys(("rollingstd", "rollingvar"), _ROLLING),
    **dict.fromkeys(("readcsv", "scancsv", "readparquet", "scanparquet", "readjson"), _FILE),
}
# The same of methods of texts and times.
_LITERAL = '.str.contains("TEXT", literal=True)'
_PART = '.str.split("/").list.get(n)'
_COUNT = '.str.count_matches("TEXT", literal=True)'
_TIME_TEXT = '.dt.to_string("%Y-%m-%d")'
_ZONE = '.dt.in_zone("America/New_York").hour()'

_OF_TEXTS = {
    **dict.fromkeys(("lower", "lcase", "casefold", "tolower"), ".str.to_lowercase()"),
    **dict.fromkeys(("upper", "ucase", "toupper"), ".str.to_uppercase()"),
    **dict.fromkeys(("len", "length", "charlength", "lenbytes"), ".str.len_chars()"),
    **dict.fromkeys(("substr", "substring", "head", "left"), ".str.slice(0, 3)"),
    **dict.fromkeys(("tail", "right"), ".str.slice(-3)"),
    **dict.fromkeys(("splitpart", "splitindex", "splitexact", "splitn", "partition"), _PART),
    **dict.fromkeys(("regexpextract", "search", "findall"), '.str.extract("PATTERN", 1)'),
    **dict.fromkeys(("match", "matches", "rlike", "regexpmatches"), '.str.contains("PATTERN")'),
    **dict.fromkeys(("like", "find", "includes"), _LITERAL),
    **dict.fromkeys(("regexpreplace", "sub", "translate"), '.str.replace_all("PATTERN", "TEXT")'),
    **dict.fromkeys(("startswith", "hasprefix"), '.str.starts_with("TEXT")'),
    **dict.fromkeys(("endswith", "hassuffix"), '.str.ends_with("TEXT")'),
    **dict.fromkeys(("strip", "trim", "btrim"), ".str.strip_chars()"),
    **dict.fromkeys(("lstrip", "ltrim"), ".str.strip_chars_start()"),
    **dict.fromkeys(("rstrip", "rtrim"), ".str.strip_chars_end()"),
    **dict.fromkeys(("lpad", "rjust", "zfill"), '.str.pad_start(8, "0")'),
    **dict.fromkeys(("rpad", "ljust"), ".str.pad_end(8)"),
    **dict.fromkeys(("count", "countsubstring", "regexpcount"), _COUNT),
    **dict.fromkeys(
        ("jsonextract", "jsonvalue", "getjsonobject", "jsonquery", "jsondecode", "json"),
        '.str.json_path_match("$.user.id")',
    ),
    **dict.fromkeys(("cat", "concat", "join"), "a + b"),
    **dict.fromkeys(("tointeger", "toint"), ".cast(int)"),
    "todecimal": ".cast(rp.Decimal(18, 2))",
    **dict.fromkeys(("tonumber", "tonumeric", "cast", "astype"), ".cast(float)"),
    **dict.fromkeys(("strptime", "todatetime", "totime"), ".cast(datetime.datetime)"),
    **dict.fromkeys(("todate",), ".cast(datetime.date)"),
    "tofloat": ".cast(float)",
}
_OF_TIMES = {
    **dict.fromkeys(("strftime", "format", "dateformat"), _TIME_TEXT),
    **dict.fromkeys(("datetime", "time"), '.dt.truncate("1d"), or ' + _TIME_TEXT),
    **dict.fromkeys(("floor", "trunc", "datetrunc", "round"), '.dt.truncate("1h")'),
    **dict.fromkeys(("dayofweek", "isoweekday", "dow"), ".dt.weekday()"),
    **dict.fromkeys(("timestamp", "unixtimestamp", "extract"), '.dt.epoch("s")'),
    **{
        f"{part}s": f".dt.{part}()" for part in ("year", "month", "day", "hour", "minute", "second")
    },
    "dayofmonth": ".dt.day()",
    **dict.fromkeys(("tzconvert", "converttimezone", "astimezone"), _ZONE),
}
# The same of methods of expressions. What folds rows is a result of a fold.
_X = 'rp.col("FIELD")'
_RESULTS = {
    **{one: f'{one}("FIELD")' for one in ("sum", "mean", "min", "max", "first", "last", "median")},
    **dict.fromkeys(("avg", "average"), 'mean("FIELD")'),
    **dict.fromkeys(("std", "stddev"), 'stddev("FIELD")'),
    **dict.fromkeys(("var", "variance"), 'variance("FIELD")'),
    **dict.fromkeys(("count", "len", "size"), "count()"),
    **dict.fromkeys(("nunique", "approxnunique", "countdistinct"), 'count_distinct("FIELD")'),
    **dict.fromkeys(("quantile", "percentile"), 'percentile("FIELD", 0.95)'),
    **dict.fromkeys(("topk", "head", "sort", "sortby"), 'top_k("FIELD", 10)'),
    "argmax": 'arg_max(by="FIELD", fields="FIELD")',
    "argmin": 'arg_min(by="FIELD", fields="FIELD")',
}
_OVER = '.partition("NAME", key="FIELD").fold("NAME", result=rp.sum("FIELD"))'
_TOTAL = '.fold("NAME", total=rp.sum("FIELD")): it shows each change, so a running total'
_INFIX = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&", "or": "|",
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%",
}  # fmt: skip
_HERE_IN_EXPR = {
    **_OF_TIMES,
    **_OF_TEXTS,
    **{name: f'.fold("NAME", result=rp.{written})' for name, written in _RESULTS.items()},
    **{name: f"{_X} {operator} {_X}" for name, operator in _INFIX.items()},
    "over": _OVER,
    **dict.fromkeys(("shift", "lag", "diff", "pctchange"), _PREVIOUS),
    **dict.fromkeys(("cumsum", "cumulativesum"), _TOTAL),
    **dict.fromkeys(("rank", "denserank", "rownumber"), _TOP),
    **dict.fromkeys(("rollingsum", "rollingmean", "rolling"), _WINDOW),
    **dict.fromkeys(("rollingstd", "rollingvar"), _ROLLING),
    "alias": _DERIVE,
    **dict.fromkeys(("mapelements", "mapbatches", "apply", "map", "pipe"), _MAP),
    **dict.fromkeys(("isnotnull", "notnull", "notna", "isnotnone"), f"{_X}.is_not_null()"),
    **dict.fromkeys(("isna", "isnone", "isnull"), f"{_X}.is_null()"),
    "isnotnan": f"~{_X}.is_nan()",
    "isin": f"{_X}.is_in([1, 2])",
    "fillna": f"{_X}.fill_null(0)",
    "coalesce": f"rp.coalesce({_X}, 0)",
    "ln": f"{_X}.log()",
    **dict.fromkeys(("isbetween", "between"), f"{_X}.is_between(1, 2)"),
    "astype": f"{_X}.cast(float)",
    **dict.fromkeys(("power", "square"), f"{_X} ** 2"),
    **dict.fromkeys(("hashrows", "xxhash64", "md5", "sha256", "crc32"), f"{_X}.hash()"),
    **dict.fromkeys(("eqnullsafe", "isnotdistinctfrom"), f"{_X}.eq_missing({_X})"),
    "not": f"~{_X}",
    **dict.fromkeys(("ifnull", "nvl"), f"{_X}.fill_null(0)"),
    **dict.fromkeys(("signum", "sgn"), f"{_X}.sign()"),
    "ceiling": f"{_X}.ceil()",
    **dict.fromkeys(("trunc", "fix"), f"{_X}.truncate()"),
    **dict.fromkeys(("when", "otherwise"), f"rp.when({_X} > 1).then(1).otherwise(0)"),
}
# Of aggregates: their results are fields of later steps.
_HERE_IN_AGGREGATE = {
    "alias": '.fold("NAME", result=rp.sum("FIELD"))',
    "over": _OVER,
    "filter": '.filter("NAME", rp.col("FIELD") > 0) before .fold(...)',
    **dict.fromkeys(("round", "cast", "fillnull", "abs"), f"{_DERIVE} after .fold(...)"),
}
_HERE_BY_KIND: dict[Kind, dict[str, str]] = {
    "step": _HERE,
    "function": _HERE_IN_RP,
    "expression": _HERE_IN_EXPR,
    "text": _OF_TEXTS,
    "time": _OF_TIMES,
    "aggregate": _HERE_IN_AGGREGATE,
}


def hint(name: str, kind: Kind) -> str:
    """Return the way to write what has this name in another library, "" for an unknown one."""
    here = _HERE_BY_KIND[kind].get(name.replace("_", "").lower())
    return f": write {here}" if here else ""


def hint_in_rp(name: str) -> str:
    """Return the way to write a function or class of another library, "" for an unknown one."""
    return hint(name, "function")


def no_attribute(of: object, name: str, kind: Kind) -> AttributeError:
    """Return the error for a name that an object does not have, with the way to write it here."""
    text = f"{type(of).__name__!r} object has no attribute {name!r}{hint(name, kind)}"
    return AttributeError(text, name=name, obj=of)
