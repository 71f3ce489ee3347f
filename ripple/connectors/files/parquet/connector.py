"""The connector of Parquet."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.target import STAYS, WHOLE

ONCE = "each cut once, in order: a file of the folder appears, or is replaced, with whole cuts"

CONNECTOR = Connector(
    scheme="parquet",
    form="parquet:FILE",
    source=Use(
        "ripple.connectors.files.parquet.files:open_source",
        "from beginning to end",
        (".parquet",),
    ),
    sink=Use(
        "ripple.connectors.files.parquet.files:open_sink",
        WHOLE,
        (".parquet",),
        on_stream=STAYS,
        takes_events=True,
    ),
    continued_sink=Use(
        "ripple.connectors.files.parquet.opening:continue_parts",
        ONCE,
        (".parquet",),
        reached="ripple.connectors.files.parquet.opening:reached_parts",
        looks="ripple.connectors.files.parquet.opening:look_at_parts",
        commit_interval_ms=5000,
        takes_events=True,
    ),
    path_of=str,
    check="ripple.connectors.files.parquet.discovery:check",
    discover="ripple.connectors.files.parquet.discovery:discover",
)
