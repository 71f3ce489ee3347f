"""The connector of NATS streams; the functions that open them are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="nats",
    form="nats:[//HOST[:PORT]/]STREAM",
    source=Use(
        "ripple.connectors.nats.opening:open_inputs",
        "from beginning to end as of the start of the run",
    ),
    continued_source=Use(
        "ripple.connectors.nats.opening:open_inputs",
        "resumes at the cut; with `--follow` waits for more",
    ),
    sink=Use(
        "ripple.connectors.nats.opening:continue_sink",
        "appended, each message once; rows of a failed run stay, and the next run continues them",
        takes_events=True,
    ),
    continued_sink=Use(
        "ripple.connectors.nats.opening:continue_sink",
        "each cut once, in order: the server takes a message only after its predecessor",
        has_epochs=True,
        takes_events=True,
    ),
    settings="ripple.connectors.nats.uri:Settings",
    check="ripple.connectors.nats.opening:check",
    identity="ripple.connectors.nats.opening:identity",
    discover="ripple.connectors.nats.opening:discover",
)
