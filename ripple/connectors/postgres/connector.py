"""The connector of PostgreSQL."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.target import WHOLE

ONCE = "each cut once, in one transaction: readers see whole cuts, removed rows are deleted"

CONNECTOR = Connector(
    scheme="postgres",
    form="postgres:[//[USER@]HOST[:PORT]/DATABASE/]TABLE",
    source=Use(
        "ripple.connectors.postgres.source_opening:open_inputs",
        "changes, from the slot's position to the end at the start of the run; they stay there",
    ),
    continued_source=Use(
        "ripple.connectors.postgres.source_opening:open_inputs",
        "changes, resumed at the cut, or an error if the slot has dropped them; with `--follow` "
        "waits for more",
    ),
    sink=Use("ripple.connectors.postgres.sink_opening:open_table", WHOLE, takes_events=True),
    continued_sink=Use(
        "ripple.connectors.postgres.sink_opening:continue_table",
        ONCE,
        has_epochs=True,
        has_parts=True,
        takes_events=True,
        reached="ripple.connectors.postgres.sink_opening:reached",
        looks="ripple.connectors.postgres.sink_opening:look",
        owners="ripple.connectors.postgres.sink_opening:owners",
    ),
    settings="ripple.connectors.postgres.uri:Settings",
    check="ripple.connectors.postgres.source_opening:check",
    identity="ripple.connectors.postgres.uri:identity",
    discover="ripple.connectors.postgres.source_opening:discover",
)
