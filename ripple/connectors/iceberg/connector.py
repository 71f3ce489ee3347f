"""The connector of Iceberg."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.tables.promise import EACH_CUT_ONCE
from ripple.connectors.target import WHOLE

CONNECTOR = Connector(
    scheme="iceberg",
    form="iceberg:CATALOG/NAMESPACE.TABLE",
    source=Use("ripple.connectors.iceberg.source:open_source", "one snapshot, file by file"),
    sink=Use("ripple.connectors.iceberg.sink:open_table", WHOLE, takes_events=True),
    continued_sink=Use(
        "ripple.connectors.iceberg.sink:continue_table",
        EACH_CUT_ONCE,
        has_epochs=True,
        looks="ripple.connectors.iceberg.sink:look",
        owners="ripple.connectors.iceberg.sink:look",
        commit_interval_ms=10_000,
        takes_events=True,
    ),
    check="ripple.connectors.iceberg.catalog:check",
    identity="ripple.connectors.iceberg.uri:identity",
)
