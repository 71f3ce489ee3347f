"""Topics of Kafka: which places they are; what opens them is imported when one is wanted."""

from ripple.connectors.connector import Connector, Use

CONNECTOR = Connector(
    scheme="kafka",
    form="kafka:BROKERS/TOPIC",
    source=Use(
        "ripple.kafka.reading_places:open_source",
        "all partitions, from where each begins to its end as the run begins",
        whole="ripple.kafka.reading_places:open_whole",
    ),
    continued_source=Use(
        "ripple.kafka.reading_places:open_inputs",
        "from where the run before was; with `--follow` it waits for more",
        has_parts=True,
    ),
    sink=Use(
        "ripple.kafka.writing_places:open_sink",
        "appends, each record once; what a run that failed has appended stays",
    ),
    continued_sink=Use(
        "ripple.kafka.writing_places:open_group",
        "who reads committed records sees each cut once and in order, per partition",
        has_epochs=True,
        has_parts=True,
        reached="ripple.kafka.writing_places:reached",
        owners="ripple.kafka.writing_places:owners",
        is_group=True,
        commit_interval_ms=250,  # it costs no sync, and readers wait for it
    ),
    check="ripple.kafka.reading_places:check",
    identity="ripple.kafka.reading_places:identity",
    lanes="ripple.kafka.lane_home:open_lanes",
    retries="ripple.kafka.retries:open_retries",
)
