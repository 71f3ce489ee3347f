"""The connector of Liftbridge's subjects; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use

AGAIN = "rows since the last checkpoint may be repeated, in order; each is acknowledged"

CONNECTOR = Connector(
    scheme="liftbridge",
    form="liftbridge:[//HOST[:PORT]/]SUBJECT",
    sink=Use(
        "ripple.connectors.nats.opening:liftbridge_sink",
        "appended, and acknowledged once stored; rows of a failed run stay",
        takes_events=True,
    ),
    continued_sink=Use("ripple.connectors.nats.opening:liftbridge_sink", AGAIN, takes_events=True),
    settings="ripple.connectors.nats.uri:Settings",
    check="ripple.connectors.nats.opening:check_liftbridge",
)
