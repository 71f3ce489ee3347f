"""The connector of plain NATS subjects; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="nats-subject",
    form="nats-subject:[//HOST[:PORT]/]SUBJECT",
    source=Use(
        "ripple.connectors.nats.opening:open_subject",
        "from subscription until the run is ended, once; earlier messages are lost, and known gaps "
        "are reported",
    ),
    settings="ripple.connectors.nats.uri:Settings",
    check="ripple.connectors.nats.opening:check_subject",
)
