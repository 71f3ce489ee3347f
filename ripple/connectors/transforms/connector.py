"""The connector of transforms."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.transforms.opening import behind, within

CONNECTOR = Connector(
    scheme="through",
    form="through:FILE.toml,URI",
    source=Use("ripple.connectors.transforms.opening:open_source", "as the URI"),
    continued_source=Use("ripple.connectors.transforms.opening:open_inputs", "as the URI"),
    path_of=behind,
    within=within,
    check="ripple.connectors.transforms.opening:check",
    identity="ripple.connectors.transforms.opening:identity",
)
