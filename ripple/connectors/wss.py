"""Feeds over websockets by TLS; what opens them is imported when one is wanted."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="wss",
    form="wss://HOST[:PORT]/PATH",
    source=Use(
        "ripple.websocket.source:open_secure",
        "from when it connects until the server ends it, once; what is missing is said",
    ),
    settings="ripple.websocket.place:Settings",
    check="ripple.websocket.source:check_secure",
)
