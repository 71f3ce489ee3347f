"""Settings of a worker: flags, then variables, then the shared file."""

from __future__ import annotations

from typing import Any

import pytest

import coordinator.settings
import ripple.client.flight.settings
from ripple.core.setting import SettingsError
from ripple.core.settings import arguments, mistyped
from ripple.core.settings_file import read_file
from worker.backpressure import Thresholds
from worker.engine.identity import delta_addresses
from worker.settings import SETTINGS, Settings, flags_of, load, places_listed

GIVEN = ["p.py", "--store", "s", "--source", "log:d/t", "--sink", "log:d/o"]
BOOK = b"""((cluster
  ((name prod)
   (coordinator ((host coordinator.svc) (port 9200)))
   (checkpoint_store ((backend Disk) (path /var/ripple)))
   (defaults
    ((num_partitions 128) (max_keys_per_partition 2000) (checkpoint_interval_sec 10)
     (heartbeat_interval_sec 5) (failure_detection_timeout_sec 30)
     (backpressure ((warn_threshold 0.6) (slow_threshold 0.8) (pause_threshold 0.95))))))))"""
TLS = {
    "RIPPLE_TLS_CERTIFICATE": "c",
    "RIPPLE_TLS_KEY": "k",
    "RIPPLE_TLS_AUTHORITY": "a",
}


def loaded(given: list[str], environment: Any = None, file: bytes = b"") -> Settings:
    return load(arguments(SETTINGS, flags_of(given)), environment or {}, read_file(file, "f"))


def test_the_budget_of_keys_is_a_setting_and_lateness_is_none() -> None:
    given = [*GIVEN, "--coordinator", "127.0.0.1:1"]
    assert loaded(given).alerts.max_keys_per_partition == 2000
    of = "cluster.defaults"
    file = f"{of}.max_keys_per_partition = 0".encode()
    assert loaded(given, file=file).alerts.max_keys_per_partition == 0
    with pytest.raises(SettingsError, match="how late an event may be is code, lateness of"):
        loaded(given, file=f"{of}.allowed_lateness_sec = 60".encode())


@pytest.mark.parametrize("flag", [["--partition-id", "p0"], ["--partition-id=p0"]])
def test_partition_id_flag_is_explained(flag: list[str]) -> None:
    with pytest.raises(SettingsError, match="coordinators decide which worker owns"):
        flags_of([*GIVEN, *flag])


def test_pipeline_stands_first_and_outputs_may_be_several() -> None:
    settings = loaded(
        [
            "p.py:main",
            *GIVEN[1:5],
            "--sink",
            "a=log:d/a",
            "--sink=b=log:d/b",
            "--coordinator",
            "127.0.0.1:1,127.0.0.1:2",
            "--processes=3",
        ]
    )
    assert settings.pipeline == "p.py:main"
    assert settings.sinks == ("a=log:d/a", "b=log:d/b")
    assert settings.coordinators == ("127.0.0.1:1", "127.0.0.1:2")
    assert (settings.processes, settings.worker_id, settings.rpc_port) == (3, "w0", 9101)
    assert (settings.health_port, settings.metrics_port) == (9100, 9102)


def test_variables_of_the_book_are_read() -> None:
    variables = {"RIPPLE_WORKER_ID": "w7", "RIPPLE_COORDINATOR_HOST": "localhost"}
    assert loaded(GIVEN, variables).coordinators == ("localhost:9200",)
    variables["RIPPLE_COORDINATOR_PORT"] = "tcp://10.0.0.1:9300"  # as Kubernetes says it
    settings = loaded(GIVEN, variables)
    assert (settings.worker_id, settings.coordinators) == ("w7", ("localhost:9300",))
    assert "# RIPPLE_COORDINATOR_HOST" in settings.text
    given = [*GIVEN[:1], *GIVEN[3:]]
    variables["RIPPLE_CHECKPOINT_BUCKET"] = "ripple-checkpoints"
    assert loaded(given, variables).store == "s3://ripple-checkpoints"


def test_file_of_the_book_is_read_as_it_is() -> None:
    settings = loaded([*GIVEN[:1], *GIVEN[3:]], TLS, BOOK)
    assert settings.coordinators == ("coordinator.svc:9200",)
    assert settings.store == "/var/ripple"
    assert (settings.checkpoint_interval_ms, settings.heartbeat_interval_ms) == (10_000, 5_000)
    assert settings.thresholds == Thresholds()
    others = loaded([*GIVEN[:1], *GIVEN[3:]], TLS, BOOK.replace(b"0.95", b"0.9"))
    assert others.thresholds == Thresholds(pause_threshold=0.9)


def test_thresholds_are_flags_variables_and_places_like_all_others() -> None:
    given = [*GIVEN, "--coordinator", "localhost:1"]
    found = loaded(
        [*given, "--warn-threshold", "0.5"],
        {"RIPPLE_SLOW_THRESHOLD": "0.7"},
        b"[worker]\npause_threshold = 1",
    )
    assert found.thresholds == Thresholds(
        warn_threshold=0.5, slow_threshold=0.7, pause_threshold=1.0
    )
    assert "warn_threshold = 0.5  # --warn-threshold" in found.text
    assert "slow_threshold = 0.8  # default" in loaded(given).text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "coordinator is missing"),
        (["--coordinator", "10.0.0.1:9200"], "not on this machine"),
        (["--coordinator", "nowhere"], "is no address"),
        (["--coordinator", ","], "coordinator is empty"),
        (["--coordinator", "127.0.0.1:1,127.0.0.1:1"], "coordinator names one twice"),
        (["--coordinator", "127.0.0.1:0"], "has port 0"),
        (["--coordinator", "127.0.0.1:1", "--worker-id", "a/b"], "worker_id: 'a/b' is no worker's"),
        (["--coordinator", "127.0.0.1:1", "--alert-late-share", "7"], "is 7.0, not from 0 to 1"),
        (["--coordinator", "127.0.0.1:1", "--host", "0.0.0.0"], "host is 0.0.0.0"),
        (["--coordinator", "127.0.0.1:1", "--processes", "-1"], "processes is -1, less than 0"),
        (
            ["--coordinator", "127.0.0.1:1", "--batch-rows", "1048577"],
            "batch_rows is 1048577, more than 1048576 .from --batch-rows.",
        ),
        (
            ["--coordinator", "127.0.0.1:1", "--heartbeat-interval-ms", "60001"],
            "heartbeat_interval_ms is 60001, more than 60000",
        ),
        (["--coordinator", "127.0.0.1:1", "--tls-key", "k"], "TLS needs all three files"),
        (["--coordinator", "127.0.0.1:1", "--rpc-port", "9100"], "are both 9100"),
        (["--coordinator", "127.0.0.1:1", "--sink"], "--sink needs a value"),
        (
            ["--coordinator", "127.0.0.1:1", "--warn-threshold", "0.9"],
            "must rise, within 0 and 1 .from --warn-threshold, default, default",
        ),
        (
            ["--coordinator", "127.0.0.1:1", "--pause-threshold", "most"],
            "pause_threshold is 'most', not a number",
        ),
        (
            ["--coordinator", "127.0.0.1:1", "--pause-threshold", "nan"],
            "pause_threshold is 'nan', not a number",
        ),
    ],
)
def test_invalid_setting_is_named(given: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        loaded([*GIVEN, *given])


def test_data_ports_of_processes_are_not_those_of_their_neighbours() -> None:
    found = delta_addresses("h", 9101, 3)
    assert found == {"deltas/0": "h:9101", "deltas/1": "h:9601", "deltas/2": "h:10101"}
    for port, processes in ((0, 1), (9101, 114)):
        with pytest.raises(SettingsError, match=f"rpc_port is {port}"):
            delta_addresses("h", port, processes)
    problem = "health_port is 10101, where process 2 has its data port"
    with pytest.raises(SettingsError, match=problem):
        delta_addresses("h", 9101, 3, {"health_port": 10_101, "metrics_port": 0})
    assert delta_addresses("h", 9101, 3, {"health_port": 9100, "metrics_port": 0}) == found


def test_lanes_are_in_the_store_unless_that_is_in_s3() -> None:
    coordinator = ("--coordinator", "localhost:1")
    assert loaded([*GIVEN, *coordinator]).root == "s"
    assert loaded([*GIVEN, *coordinator, "--lanes", "l"]).root == "l"
    in_s3 = [*GIVEN[:1], "--store", "s3://b/p", *GIVEN[3:], *coordinator]
    assert loaded(in_s3).root == ""
    assert loaded([*in_s3, "--lanes", "l"]).root == "l"
    settings = loaded(in_s3, {"RIPPLE_S3_REGION": "eu-north-1"})
    assert settings.s3.region == "eu-north-1"


def test_a_place_with_several_brokers_is_one_sink() -> None:
    brokers = "10.0.0.1:9092,[::1]:9093,kafka-2.example:9092"
    sinks = (f"a=kafka:{brokers}/a", "b=kafka:b", "c=kafka:c", f"kafka:{brokers}/d?format=csv")
    assert places_listed(",".join((*sinks, "log:d/o"))) == (*sinks, "log:d/o")


COORDINATOR = ["--coordinator", "127.0.0.1:1"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--source", "a=log:d/t,b=foo:x"], "source: .*'foo:x'.* .from --source"),
        (["--source", "foo"], "source: resuming after a crash .* not 'foo': .* .from --source"),
        (
            ["--sink", "foo"],
            "sink: cannot write 'foo' so that a restart continues it: .*--sink",
        ),
        (["--sink", "o.csv"], "sink: cannot write to 'o.csv' in a cluster"),
        (["--sink", ","], "sink: no URI is given"),
        (["--sink", "log:d/o,log:d/p"], "sink: a URI without an output is given 2 times"),
        (["--sink", "a=log:d/o,a=log:d/p"], "sink: output 'a' is given 2 times"),
        (["--sink", "a=log:d/o,b=log:d/o"], "sink: URI 'log:d/o' is given 2 times"),
        (["--lanes", "kafka:"], "lanes: .* names no broker"),
        (["--lanes", "log:d"], "lanes: lanes is 'log:d'"),
        (["--cache", "s"], "cache is s, which is inside the store, or contains it: .*--cache"),
        (["--cache", "."], "cache is ., which is inside the store"),
        (["--cache", "s/c"], "cache is s/c, which is inside the store"),
    ],
)
def test_places_that_no_worker_can_use_are_named_before_anything_is_opened(
    given: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = dict(zip(GIVEN[1::2], GIVEN[2::2], strict=True))
    for flag in given[::2]:
        others.pop(flag, None)
    monkeypatch.delenv("RIPPLE_KAFKA_BROKERS", raising=False)
    kept = [text for pair in others.items() for text in pair]
    with pytest.raises(SettingsError, match=said):
        loaded(["p.py", *kept, *COORDINATOR, *given])


def test_places_of_several_outputs_are_taken() -> None:
    places = ["--source", "kafka:h:1/t", "--sink", "a=log:d/o", "--sink", "b=kafka:h:1,g:2/o"]
    found = loaded(["p.py", "--store", "s", *places, *COORDINATOR, "--lanes", "kafka:h:1"])
    assert found.sinks == ("a=log:d/o", "b=kafka:h:1,g:2/o")


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (["--source=kafka:h:1,g:2/t?key=a,b&format=csv"], ("kafka:h:1,g:2/t?key=a,b&format=csv",)),
        (["--source=log:d/t", "--source=log:d/u"], ("log:d/u",)),
        (["--source=trades=log:d/t"], ("trades=log:d/t",)),
        (
            ["--source", "trades=log:d/t", "--source=quotes=kafka:h:1,g:2/q?key=a,b"],
            ("trades=log:d/t", "quotes=kafka:h:1,g:2/q?key=a,b"),
        ),
        (["--source=a=log:d/t,b=log:d/u,c=log:d/v"], ("a=log:d/t", "b=log:d/u", "c=log:d/v")),
    ],
)
def test_several_sources_are_taken_by_name(given: list[str], sources: tuple[str, ...]) -> None:
    places = ["p.py", "--store", "s", "--sink", "log:d/o", *COORDINATOR]
    assert loaded([*places, *given]).sources == sources
    if len(given) == 1:
        _, _, text = given[0].partition("=")
        assert loaded(places, {"RIPPLE_SOURCE": text}).sources == sources
        file = f'[worker]\nsource = "{text}"\n'.encode()
        assert loaded(places, {}, file).sources == sources


def test_a_mistyped_variable_is_told_and_those_of_others_are_left_alone() -> None:
    def warned(*names: str) -> list[str]:
        return list(mistyped(SETTINGS, dict.fromkeys(names, "5")))

    assert warned("RIPPLE_KEEEP") == [
        "RIPPLE_KEEEP is set, but is no setting: did you mean RIPPLE_KEEP?"
    ]
    assert len(warned("RIPPLE_CHECKPOINT_INTERVAL", "RIPPLE_STOR", "RIPPLE_CONFG")) == 3
    programs = (SETTINGS, coordinator.settings.SETTINGS, ripple.client.flight.settings.SETTINGS)
    beside = [one.variable for settings in programs for one in settings]
    services = [
        f"RIPPLE_{service}_{what}"
        for service in ("COORDINATOR", "WORKER", "GATEWAY", "DASHBOARD")
        for what in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_RPC", "PORT", "PORT_9200_TCP")
    ]
    for settings in programs:
        assert not list(mistyped(settings, dict.fromkeys([*beside, *services], "5")))
