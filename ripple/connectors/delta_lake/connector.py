"""The connector of Delta Lake."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.target import WHOLE

ONCE = "each cut once, one commit of the table: readers see whole cuts, and each key's newest row"

CONNECTOR = Connector(
    scheme="delta",
    form="delta:FOLDER",
    sink=Use("ripple.connectors.delta_lake.sink:open_table", WHOLE, takes_events=True),
    continued_sink=Use(
        "ripple.connectors.delta_lake.sink:continue_table",
        ONCE,
        has_epochs=True,
        looks="ripple.connectors.delta_lake.sink:look",
        owners="ripple.connectors.delta_lake.sink:look",
        commit_interval_ms=10_000,
        takes_events=True,
    ),
    path_of=str,
    check="ripple.connectors.delta_lake.table:check",
)
