"""The connector of synthetic trades."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="synthetic",
    form="synthetic:N",
    source=Use(
        "ripple.connectors.synthetic.source:open_source",
        "N trades by rule, the same each time",
        has_times=True,
    ),
    check="ripple.connectors.synthetic.source:check",
)
