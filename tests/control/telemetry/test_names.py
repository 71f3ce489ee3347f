"""One list of metric names: in the docs, in rules and boards, and in measurements."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from ripple.control.telemetry.metrics import (
    BY_NAME,
    OF_COORDINATORS,
    OF_WATCHES,
    OF_WORKERS,
    Kind,
    markdown,
)

ROOT = Path(__file__).parents[3]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())
BOARD = json.loads((ROOT / "deploy/grafana/dashboards/ripple.json").read_text())
BOOK = """
ripple_graph_stabilization_ns ripple_graph_recompute_count ripple_graph_node_count
ripple_graph_dirty_count ripple_graph_stabilizations_total ripple_graph_cutoff_hits_total
ripple_transport_deltas_sent_total ripple_transport_deltas_received_total
ripple_transport_delta_bytes_total ripple_transport_rpc_latency_ns
ripple_transport_backpressure_level ripple_window_active_windows ripple_window_late_events_total
ripple_window_very_late_events_total ripple_window_retractions_total ripple_system_event_lag_ns
ripple_system_heap_words
"""


def test_the_docs_have_each_metric() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    assert markdown(OF_WORKERS) in page
    assert markdown(OF_COORDINATORS) in page
    assert markdown(OF_WATCHES) in page


def test_all_metrics_of_ripple_ocaml_are_there() -> None:
    assert set(BOOK.split()) < BY_NAME.keys()


def test_every_measured_metric_is_in_the_table() -> None:
    sources = [
        *(ROOT / "ripple/control/telemetry").glob("*.py"),
        *(ROOT / "worker").glob("*.py"),
        *(ROOT / "coordinator").glob("*.py"),
    ]
    found = {
        name for source in sources for name in re.findall(r'"(ripple_\w+)"', source.read_text())
    }
    assert len(found) > 30
    assert found <= BY_NAME.keys()


def test_rules_and_boards_ask_for_metrics_that_there_are() -> None:
    asked = [rule["expr"] for group in RULES["groups"] for rule in group["rules"]]
    asked += [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ())]
    assert len(asked) > 40
    for expression in asked:
        for name in re.findall(r"\bripple_\w+", expression):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            metric = BY_NAME.get(name) or BY_NAME[base]
            is_part = name != metric.name
            assert is_part == (metric.kind is Kind.HISTOGRAM), name


def test_each_alert_has_a_severity_words_a_test_and_something_to_do() -> None:
    tests = (ROOT / "tests/deploy/rules_test.yml").read_text()
    page = (ROOT / "docs/operations.md").read_text()
    for rule in (rule for group in RULES["groups"] for rule in group["rules"]):
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        assert f"alertname: {rule['alert']}\n" in tests
        assert f"| `{rule['alert']}` |" in page
