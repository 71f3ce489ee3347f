"""What the registry knows of transforms."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.transforms.opening import behind

CONNECTOR = Connector(
    scheme="through",
    form="through:FILE.toml,PLACE",
    source=Use("ripple.connectors.transforms.opening:open_source", "what PLACE promises"),
    continued_source=Use("ripple.connectors.transforms.opening:open_inputs", "what PLACE promises"),
    path_of=behind,
    check="ripple.connectors.transforms.opening:check",
)
