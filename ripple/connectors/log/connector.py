"""The connector of the embedded log."""

import os

from ripple.connectors.connector import Connector, Use
from ripple.storage.log_uri import FORM, path_of

APPENDED = "appended; rows of a failed run stay"
ONCE = "each cut once, in order; a reader sees a cut before it is durable"

CONNECTOR = Connector(
    scheme="log",
    form=FORM,
    source=Use(
        "ripple.connectors.log.opening:open_source",
        "all partitions or the named one, up to their ends at the start of the run",
        has_times=True,
    ),
    sink=Use(
        "ripple.connectors.log.opening:open_sink", APPENDED, has_epochs=True, takes_events=True
    ),
    continued_source=Use(
        "ripple.connectors.log.opening:open_inputs",
        "resumes at the cut; with `--follow` waits for more",
        has_parts=True,
        has_times=True,
    ),
    continued_sink=Use(
        "ripple.connectors.log.opening:continue_sink",
        ONCE,
        has_epochs=True,
        has_parts=True,
        reached="ripple.connectors.log.opening:reached",
        looks="ripple.connectors.log.opening:look",
        reads="ripple.connectors.log.opening:written",
        owners="ripple.connectors.log.opening:owners",
        takes_events=True,
    ),
    path_of=path_of,
    claims=lambda folder: os.path.exists(os.path.join(folder, "topic")),
    check="ripple.connectors.log.discovery:check",
    discover="ripple.connectors.log.discovery:discover",
)
