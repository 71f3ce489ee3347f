"""What is shipped says nothing that our programs do not know: each of them is asked.

With tools that are fetched: ``test_tools``; with everything started: ``test_stack``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import coordinator.__main__
import ripple.client.flight.__main__
import worker.__main__
from coordinator.settings import SETTINGS as OF_COORDINATOR
from ripple.client.flight.settings import SETTINGS as OF_GATEWAY
from ripple.connectors.kafka.settings import SETTINGS as OF_KAFKA
from ripple.core.setting import Setting
from ripple.core.settings import CONFIG_VARIABLE
from tests.deploy import compose, manifests
from tests.deploy.compose import ROOT
from worker.settings import SETTINGS as OF_WORKER

PROGRAMS: dict[str, tuple[Callable[[Sequence[str]], int], tuple[Setting, ...]]] = {
    "ripple-worker": (worker.__main__.main, OF_WORKER),
    "ripple-coordinator": (coordinator.__main__.main, OF_COORDINATOR),
    "ripple-gateway": (ripple.client.flight.__main__.main, OF_GATEWAY),
}
SERVICES = compose.services()
PROCESSES = [one for one in SERVICES.values() if one.command and one.command[0] in PROGRAMS]
CONTAINERS = list(manifests.containers())
OBJECTS = manifests.objects()
STOP_MS, MOVE_AWAY_MS = 29_000, 25_000
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def test_each_service_starts_a_program_with_settings_that_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(PROCESSES) == 6
    for one in PROCESSES:
        printed = _checked(one.command, one.environment, monkeypatch, capsys)
        assert f'host = "{one.name}"' in printed


def test_each_container_starts_a_program_with_settings_that_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sorted(one.command[0] for one in CONTAINERS) == sorted(PROGRAMS)
    for one in CONTAINERS:
        environment = dict(one.environment)
        for inside, text in one.files.items():
            outside = tmp_path / f"{one.name}-{Path(inside).name}"
            outside.write_text(text)
            environment = {
                name: str(outside) if value == inside else value
                for name, value in environment.items()
            }
        printed = _checked(one.command, environment, monkeypatch, capsys)
        if one.name != "gateway":  # which has no setting in the file
            assert environment[CONFIG_VARIABLE].startswith(str(tmp_path))
            assert "heartbeat_interval_ms = 1000  # cluster.defaults" in printed


def test_a_variable_that_nobody_reads_is_found() -> None:
    with pytest.raises(AssertionError, match="RIPPLE_PROCESES"):
        _known("ripple-worker", {"RIPPLE_PROCESES": "1"})


def test_files_of_certificates_are_where_volumes_are() -> None:
    for name, environment, mounted in [
        *((one.name, one.environment, tuple(one.volumes)) for one in SERVICES.values()),
        *((one.name, one.environment, one.mounted) for one in CONTAINERS),
    ]:
        for variable, value in environment.items():
            if variable.startswith("RIPPLE_TLS_") or variable == "RIPPLE_CACHE":
                assert any(value.startswith(path) for path in mounted), (name, variable)


def test_a_worker_has_the_time_that_it_needs_to_move_its_partitions_away() -> None:
    assert _default(OF_WORKER, "stop_ms") == STOP_MS
    assert _default(OF_WORKER, "move_away_ms") == MOVE_AWAY_MS
    graces = [
        (one.environment, one.grace_s) for one in PROCESSES if one.command[0] == "ripple-worker"
    ]
    graces += [
        (one.environment, one.pod["terminationGracePeriodSeconds"])
        for one in CONTAINERS
        if one.name == "worker"
    ]
    assert len(graces) == 4
    for environment, grace_s in graces:
        assert MOVE_AWAY_MS < int(environment["RIPPLE_STOP_MS"]) < grace_s * 1000


def test_ports_and_probes_are_those_of_the_programs() -> None:
    for one in CONTAINERS:
        settings = PROGRAMS[one.command[0]][1]
        names = {"port": "grpc", "rpc_port": "rpc", "health_port": "health"}
        names |= {"port": "flight"} if one.name == "gateway" else {}
        ports = {port["name"]: port["containerPort"] for port in one.text["ports"]}
        expected = {
            names.get(setting.name, "metrics"): setting.default
            for setting in settings
            if setting.name.endswith("port") and setting.name != "dashboard_port"  # off
        }
        assert ports == expected
        for probe, path in {
            "startupProbe": "/health",
            "livenessProbe": "/health",
            "readinessProbe": "/ready",
        }.items():
            assert one.text[probe]["httpGet"] == {"path": path, "port": "health"}
    for kind, name in (("StatefulSet", "ripple-worker"), ("Deployment", "ripple-coordinator")):
        annotations = OBJECTS[kind, name]["spec"]["template"]["metadata"]["annotations"]
        port = _default(PROGRAMS[name][1], "metrics_port")
        assert annotations["prometheus.io/port"] == str(port)
        assert annotations["prometheus.io/path"] == "/metrics"


def test_services_budgets_and_policies_choose_pods_that_there_are() -> None:
    pods = [
        one["spec"]["template"]["metadata"]["labels"]
        for (kind, _), one in OBJECTS.items()
        if kind in manifests.WORKLOADS
    ]
    seen = 0
    for (kind, name), one in OBJECTS.items():
        spec = one.get("spec", {})
        chosen = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
            "Deployment": lambda spec: spec["selector"]["matchLabels"],
            "StatefulSet": lambda spec: spec["selector"]["matchLabels"],
        }.get(kind)
        if chosen is not None:
            seen += 1
            labels = chosen(spec)
            assert [labels.items() <= pod.items() for pod in pods].count(True) == 1, (kind, name)
    assert seen == 13
    assert OBJECTS["StatefulSet", "ripple-worker"]["spec"]["serviceName"] == "ripple-worker"
    assert OBJECTS["Service", "ripple-worker"]["spec"]["clusterIP"] == "None"


def test_containers_are_not_root_and_write_to_volumes_only() -> None:
    for one in CONTAINERS:
        assert one.text["securityContext"] == RESTRICTED
        assert one.pod["securityContext"]["runAsNonRoot"] is True
        assert one.pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert one.pod["automountServiceAccountToken"] is False
    for service in SERVICES.values():
        if service.is_ours:
            assert service.text["read_only"] is True
            assert service.text["cap_drop"] == ["ALL"]
            assert service.text["security_opt"] == ["no-new-privileges:true"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    (user,) = {one.pod["securityContext"]["runAsUser"] for one in CONTAINERS}
    assert f"USER {user}:{user}" in dockerfile.rpartition("FROM ")[2]


def test_pods_start_anew_with_another_configuration() -> None:
    """The plain manifests have the checksum that the chart makes of its values."""
    values = yaml.safe_load((ROOT / "deploy/helm/ripple/values.yaml").read_text())["cluster"]
    as_helm = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    of_pods = {
        name: one["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for (kind, name), one in manifests.objects().items()
        if kind in ("Deployment", "StatefulSet") and name != "ripple-gateway"
    }
    assert set(of_pods) == {"ripple-coordinator", "ripple-worker"}
    assert set(of_pods.values()) == {hashlib.sha256(as_helm).hexdigest()}


def test_images_of_others_are_pinned() -> None:
    for one in SERVICES.values():
        tag = one.image.partition(":")[2]
        assert one.is_ours or re.search(r"\d", tag), one.image


def test_scrape_targets_are_services() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = {
        target
        for job in config["scrape_configs"]
        for group in job["static_configs"]
        for target in group["targets"]
    }
    assert targets == {
        f"{one.name}:{_default(PROGRAMS[one.command[0]][1], 'metrics_port')}"
        for one in PROCESSES
        if one.name != "gateway"
    }


def test_the_image_gets_what_it_copies_and_installs_what_there_is() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    sent = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = [
        name
        for found in re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, re.MULTILINE)
        for name in found.split()
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert any(name == one or name.startswith(f"{one}/") for one in sent), name
    makefile = (ROOT / "Makefile").read_text()
    (extras,) = re.findall(r"^IMAGE_EXTRAS := (.+)$", makefile, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = subprocess.run(
        [sys.executable, "deploy/docker/needed.py", *extras.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert set(project["dependencies"]) < set(needed)
    for extra in extras.split():
        own = {one for one in project["optional-dependencies"][extra] if "ripple" not in one}
        assert own <= set(needed), extra
    assert not [one for one in needed if one.startswith("ripple")]
    assert "--require-hashes" in dockerfile
    locked = {
        canonicalize_name(name): version
        for name, version in re.findall(
            r"^(\S+)==(\S+)", (ROOT / "deploy/docker/requirements.lock").read_text(), re.MULTILINE
        )
    }
    for line in needed:
        one = Requirement(line)
        version = locked.get(canonicalize_name(one.name))
        assert version is not None and version in one.specifier, f"{line}: make lock"  # noqa: PT018
    for program in PROGRAMS:
        assert program in project["scripts"]


def _checked(
    command: Sequence[str],
    environment: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Ask a program whether it takes a command line and an environment; return what it prints."""
    with monkeypatch.context() as patched:
        for name in list(os.environ):
            if name.startswith("RIPPLE_"):
                patched.delenv(name)
        for name, value in environment.items():
            patched.setenv(name, value)
        code = PROGRAMS[command[0]][0]([*command[1:], "--check-config"])
    assert code == 0, (command, environment)
    _known(command[0], environment)
    printed = capsys.readouterr().out
    assert "is missing" not in printed
    return printed


def _known(program: str, environment: Mapping[str, str]) -> None:
    """Fail for a variable of ours that the program does not read."""
    settings = (*PROGRAMS[program][1], *(OF_KAFKA if program == "ripple-worker" else ()))
    known = {setting.variable for setting in settings} | {CONFIG_VARIABLE}
    known |= {alias.name for setting in settings for alias in setting.variables}
    for name in environment:
        assert not name.startswith("RIPPLE_") or name in known, name


def _default(settings: Sequence[Setting], name: str) -> Any:
    (found,) = (setting.default for setting in settings if setting.name == name)
    return found
