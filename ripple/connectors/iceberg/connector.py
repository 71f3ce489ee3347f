"""The connector of Iceberg."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.target import WHOLE

ONCE = "each cut once, one commit of the table: readers see whole cuts, and each key's newest row"

CONNECTOR = Connector(
    scheme="iceberg",
    form="iceberg:CATALOG/NAMESPACE.TABLE",
    source=Use("ripple.connectors.iceberg.source:open_source", "one snapshot, file by file"),
    sink=Use("ripple.connectors.iceberg.sink:open_table", WHOLE, takes_events=True),
    continued_sink=Use(
        "ripple.connectors.iceberg.sink:continue_table",
        ONCE,
        has_epochs=True,
        looks="ripple.connectors.iceberg.sink:look",
        owners="ripple.connectors.iceberg.sink:look",
        commit_interval_ms=10_000,
        takes_events=True,
    ),
    check="ripple.connectors.iceberg.catalog:check",
    identity="ripple.connectors.iceberg.uri:identity",
)
