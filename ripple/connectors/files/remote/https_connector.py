"""The connector of files on web servers; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="https",
    form="https://HOST/PATH",
    source=Use(
        "ripple.connectors.files.folder.source:open_https",
        "one file, from beginning to end",
    ),
    check="ripple.connectors.files.folder.source:check_https",
)
