"""The connector of Delta Lake."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.tables.promise import EACH_CUT_ONCE
from ripple.connectors.target import WHOLE

CONNECTOR = Connector(
    scheme="delta",
    form="delta:FOLDER",
    sink=Use("ripple.connectors.delta_lake.sink:open_table", WHOLE, takes_events=True),
    continued_sink=Use(
        "ripple.connectors.delta_lake.sink:continue_table",
        EACH_CUT_ONCE,
        has_epochs=True,
        looks="ripple.connectors.delta_lake.sink:look",
        owners="ripple.connectors.delta_lake.sink:look",
        commit_interval_ms=10_000,
        takes_events=True,
    ),
    path_of=str,
    check="ripple.connectors.delta_lake.table:check",
)
