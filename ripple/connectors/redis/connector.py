"""The connector of Redis streams; the functions that open them are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="redis",
    form="redis:[//HOST[:PORT]/]STREAM",
    source=Use(
        "ripple.connectors.redis.opening:open_inputs",
        "from beginning to end as of the start of the run",
    ),
    continued_source=Use(
        "ripple.connectors.redis.opening:open_inputs",
        "resumes at the cut, or an error if that was trimmed; with `--follow` waits for more",
    ),
    settings="ripple.connectors.redis.uri:Settings",
    check="ripple.connectors.redis.opening:check",
    identity="ripple.connectors.redis.opening:identity",
    discover="ripple.connectors.redis.opening:discover",
)
