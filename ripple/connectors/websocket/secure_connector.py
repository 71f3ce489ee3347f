"""The connector of feeds over websockets by TLS; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="wss",
    form="wss://HOST[:PORT]/PATH",
    source=Use(
        "ripple.connectors.websocket.source:open_secure",
        "from connection until the server closes it, once; known gaps are reported",
    ),
    settings="ripple.connectors.websocket.uri:Settings",
    check="ripple.connectors.websocket.source:check_secure",
)
