"""What the registry knows of transforms."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.through.places import behind

CONNECTOR = Connector(
    scheme="through",
    form="through:FILE.toml,PLACE",
    source=Use("ripple.connectors.through.places:open_source", "what PLACE promises"),
    continued_source=Use("ripple.connectors.through.places:open_inputs", "what PLACE promises"),
    path_of=behind,
    check="ripple.connectors.through.places:check",
)
