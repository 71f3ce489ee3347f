"""The connector of the clock's ticks; the functions that open them are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="clock",
    form="clock:EVERY,SINCE",
    source=Use(
        "ripple.connectors.clock:open_inputs", "the ticks that have come so far", has_times=True
    ),
    continued_source=Use(
        "ripple.connectors.clock:open_inputs",
        "resumes at the cut; with `--follow` waits for more",
        is_endless=True,
        has_times=True,
    ),
    check="ripple.connectors.clock:check",
    identity="ripple.connectors.clock:identity",
)
