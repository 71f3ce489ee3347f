"""The shipped files pass the checks of the programs that read them, or of their schemas."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy import manifests, tools
from tests.deploy.compose import FILE, ROOT
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.deploy

CHART = ROOT / "deploy/helm/ripple"
TEMPLATE = ["template", "ripple", CHART, "--kube-version", tools.KUBERNETES]
OTHER_VALUES = [
    "--set=worker.processes=3",
    "--set=worker.autoscaling.enabled=true",
    "--set=worker.cache.storageClass=fast",
    "--set=pipeline.configMap=mine",
    "--set=pipeline.path=/pipelines/mine.py",
    "--set=store.credentials=",
    "--set=kafka.credentials=",
    "--set=createNamespace=false",
    "--set=gateway.enabled=true",
    "--set=gateway.replicas=1",
    "--set=roles=ripple-roles",
    "--set=dashboard.enabled=true",
    "--set=network.clients.team=desk",
]


def had(get: Callable[[], Path]) -> Path:
    try:
        return get()
    except MissingError as error:
        skip(error)


def test_each_rule_fires_where_it_should_and_nowhere_else() -> None:
    promtool = had(lambda: tools.prometheus("promtool"))
    tools.run([promtool, "check", "config", ROOT / "deploy/prometheus/prometheus.yml"])
    tools.run([promtool, "test", "rules", ROOT / "tests/deploy/rules_test.yml"])


@pytest.fixture(scope="module")
def helm() -> Path:
    return had(tools.helm)


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    found = had(lambda: tools.of_python(tools.HADOLINT))
    tools.run([found / "bin/hadolint", "--no-color", ROOT / "Dockerfile"], packages=found)


def test_the_compose_file_is_one() -> None:
    found = had(lambda: tools.of_python(tools.CHECK_JSONSCHEMA))
    check = [sys.executable, "-m", "check_jsonschema"]
    tools.run([*check, "--builtin-schema", "vendor.compose-spec", FILE], packages=found)


def test_each_object_is_one_of_kubernetes_without_unknown_fields() -> None:
    said = _validated([*manifests.FOLDER.rglob("*.yaml")])
    assert said.count("passed") == len(manifests.objects()) == 16


def test_the_chart_makes_the_plain_manifests(helm: Path) -> None:
    all_of = tools.run([helm, *TEMPLATE, "--set=gateway.enabled=true"])
    assert manifests.objects(all_of) == manifests.objects()
    by_default = manifests.objects(tools.run([helm, *TEMPLATE]))
    assert by_default == {
        named: one
        for named, one in manifests.objects().items()
        if one["metadata"]["labels"].get("component") != "gateway"
    }


def test_other_values_make_objects_of_kubernetes_too(helm: Path, tmp_path: Path) -> None:
    made = tools.run([helm, *TEMPLATE, *OTHER_VALUES])
    (tmp_path / "made.yaml").write_text(made)
    assert _validated([tmp_path / "made.yaml"]).count("passed") == 16
    for expected in ("containerPort: 10101", "storageClassName: fast", "name: mine", "team: desk"):
        assert expected in made
    assert "replicas" not in manifests.objects(made)["StatefulSet", "ripple-worker"]["spec"]
    to_each = manifests.objects(made)["NetworkPolicy", "ripple-worker-of-gateways"]
    ports = [one["port"] for one in to_each["spec"]["ingress"][0]["ports"]]
    assert ports == ["rpc", "rpc-1", "rpc-2"]


def test_the_chart_refuses_values_that_it_does_not_know(helm: Path) -> None:
    tools.run([helm, "lint", "--strict", CHART])
    for wrong, said in {
        "worker.replica=3": "additional properties 'replica' not allowed",
        "worker.stopSeconds=10": "minimum",
        "store.url=/tmp": "does not match pattern",
        "gateway.enable=true": "additional properties 'enable' not allowed",
        "gateway.replicas=0": "minimum",
    }.items():
        with pytest.raises(AssertionError, match=said):
            tools.run([helm, *TEMPLATE, f"--set={wrong}"])


def _validated(files: list[Path]) -> str:
    found = had(lambda: tools.of_python(tools.KUBERNETES_VALIDATE))
    check = [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", tools.KUBERNETES]
    return tools.run([*check, *files], packages=found)
