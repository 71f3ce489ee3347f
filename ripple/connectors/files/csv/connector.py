"""The connector of CSV."""

from ripple.connectors.connector import Connector
from ripple.connectors.files.csv.dialect import path_of
from ripple.connectors.files.text.uses import lines_continued, lines_read, lines_written

CONNECTOR = Connector(
    scheme="csv",
    form="csv:FILE",
    source=lines_read("ripple.connectors.files.csv.source:open_source", ".csv", ".tsv"),
    sink=lines_written("ripple.connectors.files.text.opening:open_csv", ".csv"),
    continued_sink=lines_continued(
        "ripple.connectors.files.text.opening:continue_csv",
        "ripple.connectors.files.text.opening:look_csv",
        ".csv",
    ),
    path_of=path_of,
)
