"""Tables of PostgreSQL, as a sink; psycopg is imported when one is opened."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.target import WHOLE

ONCE = "each cut once, in one transaction: readers see whole cuts, and rows that are gone are gone"

CONNECTOR = Connector(
    scheme="postgres",
    form="postgres:[//[USER@]HOST[:PORT]/DATABASE/]TABLE",
    sink=Use("ripple.connectors.postgres.places:open_table", WHOLE),
    continued_sink=Use(
        "ripple.connectors.postgres.places:continue_table",
        ONCE,
        has_epochs=True,
        has_parts=True,
        reached="ripple.connectors.postgres.places:reached",
    ),
    settings="ripple.connectors.postgres.place:Settings",
    check="ripple.connectors.postgres.places:check",
)
