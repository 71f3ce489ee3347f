"""Pages of several workers are one page of Prometheus' format."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ripple.cli.cluster.metric_pages import merged
from ripple.control.telemetry.exposition import exposition
from ripple.control.telemetry.metrics import OF_WORKERS
from ripple.control.telemetry.samples import Samples


def test_each_name_is_there_once_and_each_sample_says_whose_it_is() -> None:
    pages = {}
    for at, worker in enumerate(("w0", "w1")):
        found = Samples()
        found.set("ripple_worker_load", at)
        found.set("ripple_worker_state", 1, "Active")
        found.set("ripple_partition_keys", 7, worker, str(at))
        found.add("ripple_commits_total", 5, worker)
        found.observe("ripple_commit_seconds", 0.5, worker)
        pages[worker] = exposition(OF_WORKERS, found)
    page = merged(pages)
    types = [line for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) > 0
    families = {one.name: one.samples for one in text_string_to_metric_families(page)}
    loads = {one.labels["worker"]: one.value for one in families["ripple_worker_load"]}
    assert loads == {"w0": 0, "w1": 1}
    assert [one.labels["worker"] for one in families["ripple_worker_state"]] == ["w0", "w1"]
    every = [(one.name, *sorted(one.labels.items())) for ones in families.values() for one in ones]
    assert len(every) == len(set(every))
