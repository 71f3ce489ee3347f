"""The connector of Kafka topics; the functions that open them are imported at first use."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="kafka",
    form="kafka:BROKERS/TOPIC",
    source=Use(
        "ripple.connectors.kafka.source_opening:open_inputs",
        "all partitions, from beginning to end as of the start of the run",
        has_keys=True,
    ),
    continued_source=Use(
        "ripple.connectors.kafka.source_opening:open_inputs",
        "resumes at the cut; with `--follow` waits for more",
        has_parts=True,
        has_keys=True,
    ),
    sink=Use(
        "ripple.connectors.kafka.sink_opening:open_sink",
        "appended, each record once; rows of a failed run stay",
        takes_events=True,
    ),
    continued_sink=Use(
        "ripple.connectors.kafka.sink_opening:open_group",
        "`read_committed` consumers see each cut once and in order, per partition",
        has_epochs=True,
        has_parts=True,
        reached="ripple.connectors.kafka.sink_opening:reached",
        owners="ripple.connectors.kafka.sink_opening:owners",
        is_group=True,
        takes_events=True,
        commit_interval_ms=250,  # it costs no sync, and readers wait for it
    ),
    check="ripple.connectors.kafka.source_opening:check",
    identity="ripple.connectors.kafka.source_opening:identity",
    lanes="ripple.connectors.kafka.lane_home:open_lanes",
    retries="ripple.connectors.kafka.retries:open_retries",
)
