"""Feeds over websockets by TLS; what opens them is imported when one is wanted."""

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
