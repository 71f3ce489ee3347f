"""The connector of feeds over websockets; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="ws",
    form="ws://HOST[:PORT]/PATH",
    source=Use(
        "ripple.connectors.websocket.source:open_plain",
        "from connection until the server closes it, once; known gaps are reported",
    ),
    settings="ripple.connectors.websocket.uri:Settings",
    check="ripple.connectors.websocket.source:check_plain",
)
