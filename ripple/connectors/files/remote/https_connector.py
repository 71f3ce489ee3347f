"""The connector of files on web servers; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="https",
    form="https://HOST/PATH",
    source=Use(
        "ripple.connectors.files.folder.source:open_https",
        "one file, from beginning to end",
    ),
    continued_source=Use(
        "ripple.connectors.files.folder.inputs:open_https", "resumes at the cut", is_alone=True
    ),
    check="ripple.connectors.files.folder.source:check_https",
)
