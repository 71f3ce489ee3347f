"""Subjects that Liftbridge stores; what opens them is imported when one is wanted."""

from ripple.connectors.connector import Connector, Use

AGAIN = "rows since the last checkpoint may come again, in their order; each was acknowledged"

CONNECTOR = Connector(
    scheme="liftbridge",
    form="liftbridge:[//HOST[:PORT]/]SUBJECT",
    sink=Use(
        "ripple.nats.places:liftbridge_sink",
        "appended, and acknowledged by who stores it; what a failed run has appended stays",
    ),
    continued_sink=Use("ripple.nats.places:liftbridge_sink", AGAIN),
    settings="ripple.nats.place:Settings",
    check="ripple.nats.places:check_liftbridge",
)
