"""What the registry knows of JSON lines."""

from ripple.connectors.connector import Connector
from ripple.connectors.text.uses import lines_continued, lines_read, lines_written

CONNECTOR = Connector(
    scheme="jsonl",
    form="jsonl:FILE",
    source=lines_read("ripple.connectors.json.source:open_source", ".jsonl", ".ndjson"),
    sink=lines_written("ripple.connectors.text.places:open_json", ".jsonl", ".ndjson", ".json"),
    continued_sink=lines_continued(
        "ripple.connectors.text.places:continue_json",
        "ripple.connectors.text.places:look_json",
        ".jsonl",
        ".ndjson",
        ".json",
    ),
    path_of=str,
)
