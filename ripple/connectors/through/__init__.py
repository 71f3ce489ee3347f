"""Records of another place, with transforms between them and whoever reads; see docs/connectors.md.

transforms  of columns, one class each; no I/O
chain       several in order: what they need of a source, and what they make of a batch
places      the file that says which, and what stands behind it
"""

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
