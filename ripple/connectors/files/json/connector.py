"""The connector of JSON lines."""

from ripple.connectors.connector import Connector
from ripple.connectors.files.text.uses import lines_continued, lines_read, lines_written

CONNECTOR = Connector(
    scheme="jsonl",
    form="jsonl:FILE",
    source=lines_read("ripple.connectors.files.json.source:open_source", ".jsonl", ".ndjson"),
    sink=lines_written(
        "ripple.connectors.files.text.opening:open_json", ".jsonl", ".ndjson", ".json"
    ),
    continued_sink=lines_continued(
        "ripple.connectors.files.text.opening:continue_json",
        "ripple.connectors.files.text.opening:look_json",
        ".jsonl",
        ".ndjson",
        ".json",
    ),
    path_of=str,
)
