"""The coordinator's settings: every limit, and the names of the book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from coordinator.decisions.limits import Limits
from coordinator.settings import SETTINGS, Settings, load
from ripple.core.errors import LimitError
from ripple.core.setting import SettingsError
from ripple.core.settings import arguments
from ripple.core.settings_file import read_file
from ripple.storage.store.s3_settings import S3Settings

# As the book has it.
BOOK = b"""((cluster
  ((name prod)
   (coordinator
    ((host ripple-coordinator.ripple.svc.cluster.local)
     (port 9200)))
   (checkpoint_store
    ((backend S3)
     (bucket ripple-checkpoints)
     (prefix prod)))
   (defaults
    ((num_partitions 128)
     (max_keys_per_partition 2000)
     (checkpoint_interval_sec 10)
     (heartbeat_interval_sec 5)
     (failure_detection_timeout_sec 30)
     (backpressure
      ((warn_threshold 0.6)
       (slow_threshold 0.8)
       (pause_threshold 0.95))))))))
"""


def loaded(
    *flags: str, file: bytes = b"", environment: Mapping[str, str] | None = None
) -> Settings:
    said = arguments(SETTINGS, flags)
    return load(said, environment or {}, read_file(file, "ripple.conf"))


def test_defaults_are_those_of_the_design() -> None:
    one = loaded("--store", "state")
    assert (one.port, one.health_port, one.metrics_port) == (9200, 9201, 9202)
    assert one.limits == Limits()
    assert (one.limits.partitions, one.limits.virtual_nodes) == (128, 128)
    assert (one.limits.dead_after_ms, one.limits.checkpoint_interval_ms) == (8_000, 120_000)


def test_lateness_is_no_setting() -> None:
    with pytest.raises(SettingsError, match="how late an event may be is code"):
        loaded("--store=s", file=b"cluster.defaults.allowed_lateness_sec = 60")


def test_every_limit_is_a_setting() -> None:
    names = {setting.name for setting in SETTINGS}
    assert {each.name for each in fields(Limits)} < names
    for each in fields(Limits):
        value = getattr(Limits(), each.name) + 1
        flag = f"--{each.name.replace('_', '-')}"
        assert getattr(loaded("--store=s", f"{flag}={value}").limits, each.name) == value


def test_the_file_of_the_book_is_read() -> None:
    one = loaded(file=BOOK)
    assert (one.store, one.cluster, one.port) == ("s3://ripple-checkpoints/prod", "prod", 9200)
    assert one.limits == Limits(
        heartbeat_interval_ms=5_000,
        checkpoint_interval_ms=10_000,
        dead_after_ms=30_000,
        suspected_after_ms=15_000,
        mass_silence_ms=60_000,
    )
    assert one.origins["suspected_after_ms"].origin == "default, from dead_after_ms"
    assert "cluster.defaults.failure_detection_timeout_sec" in one.origins["dead_after_ms"].origin


def test_the_variables_of_the_book_are_read() -> None:
    one = loaded(
        environment={
            "RIPPLE_CHECKPOINT_BUCKET": "ripple-checkpoints",
            "RIPPLE_COORDINATOR_PORT": "9300",
            "RIPPLE_COORDINATOR_HOST": "ripple-coordinator",
            "RIPPLE_KAFKA_BROKERS": "kafka:9092",
        }
    )
    assert (one.store, one.port, one.host) == ("s3://ripple-checkpoints", 9300, "127.0.0.1")
    whole = loaded(environment={"RIPPLE_CHECKPOINT_BUCKET": "s3://ripple-checkpoints/prod"})
    assert whole.store == "s3://ripple-checkpoints/prod"


def test_a_flag_is_stronger_than_a_variable_and_that_than_the_file() -> None:
    assert loaded("--port=1", file=BOOK, environment={"RIPPLE_PORT": "2"}).port == 1
    assert loaded(file=BOOK, environment={"RIPPLE_PORT": "2"}).port == 2


def test_toml_says_the_same() -> None:
    toml = b"""
        [cluster]
        name = "prod"
        checkpoint_store = { backend = "Disk", path = "/var/ripple" }
        [cluster.defaults]
        heartbeat_interval_sec = 0.5
        [coordinator]
        jitter_ms = 100
        [worker]
        anything = 1
    """
    one = loaded(file=toml)
    assert (one.store, one.cluster) == ("/var/ripple", "prod")
    assert (one.limits.heartbeat_interval_ms, one.limits.jitter_ms) == (500, 100)


def test_check_config_prints_a_file_that_says_the_same_and_where_each_came_from() -> None:
    one = loaded("--store=state", "--jitter-ms=7", environment={"RIPPLE_PORT": "9"})
    assert 'store = "state"  # --store\n' in one.text
    assert "jitter_ms = 7  # --jitter-ms\n" in one.text
    assert "port = 9  # RIPPLE_PORT\n" in one.text
    assert "dead_after_ms = 8000  # default\n" in one.text
    again = loaded(file=one.text.encode())
    assert again.limits == one.limits
    assert (again.store, again.port) == (one.store, one.port)


@pytest.mark.parametrize(
    ("flags", "file", "environment", "text"),
    [
        ([], b"", {}, "store is missing: give --store or RIPPLE_STORE"),
        (["--port=70000"], b"", {}, "port is 70000, not from 0 to 65535 (from --port)"),
        (["--port=9201"], b"", {}, "health_port and port are both 9201"),
        (["--moves-percent=101"], b"", {}, "moves_percent is 101, at most 100 (moves_percent is"),
        (["--virtual-nodes=4097"], b"", {}, "virtual_nodes is 4097, at most 4096 (virtual_nodes"),
        (["--partitions=0"], b"", {}, "partitions is 0, not an integer of at least 1 (partitions"),
        (
            ["--suspected-after-ms=9000"],
            b"",
            {},
            "suspected_after_ms is 9000, it must be less than dead_after_ms, 8000 "
            "(suspected_after_ms is from --suspected-after-ms; dead_after_ms is from default)",
        ),
        (
            [],
            b"",
            {"RIPPLE_COORDINATOR_PORT": "tcp://10.0.0.7:9200"},
            "Kubernetes sets this variable for a service called ripple-coordinator: give --port",
        ),
        ([], b"[cluster.defaults]\nheartbeat_interval_sec = 0.0001", {}, "at most three decimals"),
        ([], b"[cluster.defaults]\nheartbeat_interval_sec = -1", {}, "not a number of seconds"),
        ([], b"[cluster.defaults]\nheartbeat_interval_sec = 'soon'", {}, "could not convert"),
        ([], b"[cluster.defaults]\nheartbeat_interval_sec = true", {}, "not a number of seconds"),
        (
            [],
            b"[cluster.defaults]\nnum_partitions = 8\ntotal_partitions = 8",
            {},
            "partitions is given twice",
        ),
        (
            [],
            b"[cluster.defaults]\nnum_partitons = 8",
            {},
            "did you mean cluster.defaults.num_partitions?",
        ),
    ],
)
def test_invalid_setting_is_named(
    flags: list[str], file: bytes, environment: dict[str, str], text: str
) -> None:
    given = flags if text.startswith("store is missing") else ["--store=s", *flags]
    with pytest.raises(SettingsError) as caught:
        loaded(*given, file=file, environment=environment)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("store", "text"),
    [
        ('"x"', "not a table with a backend"),
        ('{ backend = "tape" }', "its backend is none of S3 and Disk"),
        ('{ backend = "S3" }', "it has no bucket"),
        ('{ backend = "S3", bucket = "b", path = "p" }', "it has path, which is unknown"),
    ],
)
def test_a_store_that_cannot_be_is_refused(store: str, text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        loaded(file=f"[cluster]\ncheckpoint_store = {store}".encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [("partitions", 8193), ("jitter_ms", 0), ("moves_min", True), ("dead_after_ms", 30_000)],
)
def test_limits_that_cannot_be_are_refused(name: str, value: int) -> None:
    with pytest.raises(LimitError, match=name):
        Limits(**{name: value})


TLS = ("--tls-certificate=c", "--tls-key=k", "--tls-authority=a")


def test_tls_is_needed_where_others_can_hear_and_may_be_off_where_they_cannot() -> None:
    assert loaded("--store=s").tls is None
    tls = loaded("--store=s", "--host=0.0.0.0", "--pages-without-tls", *TLS).tls
    assert tls is not None
    assert (tls.certificate, tls.key, tls.authority) == ("c", "k", "a")
    assert loaded("--store=s", *TLS).tls == tls
    assert loaded("--store=s", "--insecure", *TLS).tls is None
    with pytest.raises(SettingsError, match=r"host is 0\.0\.0\.0 \(from --host\)"):
        loaded("--store=s", "--host=0.0.0.0", "--insecure", *TLS)
    with pytest.raises(SettingsError, match="peers: node-2:9200 is not on this machine"):
        loaded("--store=s", "--peers=localhost:1,node-2:9200")
    assert loaded("--store=s", "--peers=localhost:1, node-2:9200,", *TLS).peers == (
        "localhost:1",
        "node-2:9200",
    )
    with pytest.raises(SettingsError, match="peers names one twice"):
        loaded("--store=s", "--peers=localhost:1,localhost:1")


def test_printed_config_is_a_file_with_the_same_settings() -> None:
    one = loaded("--store=s", "--insecure", "--peers=localhost:9300", "--partitions=8")
    again = loaded(file=one.text.encode())
    assert (again.peers, again.limits, again.tls) == (one.peers, one.limits, one.tls)
    assert again.origins["insecure"].value is True


def test_s3_settings_are_read_from_the_shared_file() -> None:
    file = b'[cluster]\ns3_endpoint = "http://minio:9000"\ns3_encryption = "aws:kms"\n'
    one = loaded("--store", "s3://b/p", "--s3-kms-key=k", file=file)
    assert one.s3 == S3Settings("http://minio:9000", "", "aws:kms", "k")
    assert loaded("--store", "s").s3 == S3Settings()
    with pytest.raises(SettingsError, match="s3_kms_key"):
        loaded("--store", "s", environment={"RIPPLE_S3_KMS_KEY": "k"})


def test_pages_are_shown_to_the_network_only_where_it_was_said() -> None:
    with pytest.raises(SettingsError, match="have no TLS: set pages_without_tls"):
        loaded("--store=s", "--host=0.0.0.0", *TLS)
    assert loaded("--store=s", "--host=0.0.0.0", "--pages-without-tls", *TLS).pages_without_tls


@pytest.mark.parametrize(
    "place", ["nonsense", "log:data/trades/3", "log:", "log:a/../b", "a=log:d/t,b=log:d/t/3"]
)
def test_retried_records_go_to_a_topic_or_nowhere(place: str) -> None:
    with pytest.raises(SettingsError, match=r"^retry_source \(from --retry-source\): "):
        loaded("--store=s", f"--retry-source={place}")
    assert loaded("--store=s", "--retry-source=log:data/trades").retry_source == "log:data/trades"


def test_a_dashboard_is_shown_to_the_network_only_with_roles(tmp_path: Path) -> None:
    shown = ("--store=s", "--dashboard", "--host=0.0.0.0", "--pages-without-tls", *TLS)
    with pytest.raises(SettingsError, match="give a file of roles"):
        loaded(*shown)
    roles = tmp_path / "roles.toml"
    roles.write_text(f'[reader.tokens]\nr = "{"r" * 32}"\n')
    roles.chmod(0o640)
    assert loaded(*shown, "--roles", str(roles)).roles is not None
    assert loaded("--store=s", "--dashboard").roles is None


def test_a_file_of_roles_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    roles = tmp_path / "roles.toml"
    with pytest.raises(SettingsError, match="No such file"):
        loaded("--store=s", "--roles", str(roles))
    roles.write_text("[guest]")
    roles.chmod(0o644)
    with pytest.raises(SettingsError, match="can be read or changed by others"):
        loaded("--store=s", "--roles", str(roles))
    roles.chmod(0o600)
    assert loaded("--store=s", "--roles", str(roles)).roles is not None
    roles.write_text("[visitor]")
    with pytest.raises(SettingsError, match="visitor, which is none of"):
        loaded("--store=s", "--roles", str(roles))
