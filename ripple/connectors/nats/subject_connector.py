"""Plain subjects of NATS; what opens them is imported when one is wanted."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="nats-subject",
    form="nats-subject:[//HOST[:PORT]/]SUBJECT",
    source=Use(
        "ripple.connectors.nats.opening:open_subject",
        "from when it listens until it is ended, once; nobody keeps what is sent before, and that "
        "something is missing is said where it is known",
    ),
    settings="ripple.connectors.nats.uri:Settings",
    check="ripple.connectors.nats.opening:check_subject",
)
