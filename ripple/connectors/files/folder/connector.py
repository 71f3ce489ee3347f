"""The connector of folders and patterns of files."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.files.csv.dialect import path_of
from ripple.connectors.files.folder.listing import folder_at, may_match

CONNECTOR = Connector(
    scheme="files",
    form="files:FOLDER",
    source=Use(
        "ripple.connectors.files.folder.source:open_source",
        "one file after the other, in the order of their names, as one input",
    ),
    continued_source=Use(
        "ripple.connectors.files.folder.inputs:open_inputs",
        "resumes at the cut, in the recorded order of files; with `--follow` takes new ones, too",
        is_alone=True,
    ),
    path_of=lambda text: folder_at(path_of(text)),
    may_read=lambda text, path: may_match(path_of(text), path),
    check="ripple.connectors.files.folder.source:check",
)
