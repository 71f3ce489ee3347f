"""Subjects that Liftbridge stores; what opens them is imported when one is wanted."""

from ripple.connectors.connector import Connector, Use

AGAIN = "rows since the last checkpoint may come again, in their order; each was acknowledged"

CONNECTOR = Connector(
    scheme="liftbridge",
    form="liftbridge:[//HOST[:PORT]/]SUBJECT",
    sink=Use(
        "ripple.connectors.nats.opening:liftbridge_sink",
        "appended, and acknowledged by who stores it; what a failed run has appended stays",
    ),
    continued_sink=Use("ripple.connectors.nats.opening:liftbridge_sink", AGAIN),
    settings="ripple.connectors.nats.uri:Settings",
    check="ripple.connectors.nats.opening:check_liftbridge",
)
