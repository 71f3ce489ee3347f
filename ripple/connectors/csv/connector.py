"""What the registry knows of CSV."""

from ripple.connectors.connector import Connector
from ripple.connectors.text.uses import lines_continued, lines_read, lines_written

CONNECTOR = Connector(
    scheme="csv",
    form="csv:FILE",
    source=lines_read("ripple.connectors.csv.source:open_source", ".csv"),
    sink=lines_written("ripple.connectors.text.places:open_csv", ".csv"),
    continued_sink=lines_continued(
        "ripple.connectors.text.places:continue_csv",
        "ripple.connectors.text.places:look_csv",
        ".csv",
    ),
    path_of=str,
)
