"""Streams of NATS: which places they are; what opens them is imported when one is wanted."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="nats",
    form="nats:[//HOST[:PORT]/]STREAM",
    source=Use(
        "ripple.connectors.nats.opening:open_source",
        "from where it begins to its end as the run begins",
    ),
    continued_source=Use(
        "ripple.connectors.nats.opening:open_inputs",
        "from where the run before was; with `--follow` it waits for more",
    ),
    sink=Use(
        "ripple.connectors.nats.opening:continue_sink",
        "appended, each message once; what a failed run has appended stays, and it is gone on with",
    ),
    continued_sink=Use(
        "ripple.connectors.nats.opening:continue_sink",
        "each cut once, in order: a message is taken behind the one before it, or not at all",
        has_epochs=True,
    ),
    settings="ripple.connectors.nats.uri:Settings",
    check="ripple.connectors.nats.opening:check",
    identity="ripple.connectors.nats.opening:identity",
    discover="ripple.connectors.nats.opening:discover",
)
