"""deploy/kubernetes before Kubernetes' own API server, under the restricted profile of pods."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy import manifests
from tests.deploy.cluster_api import ApiServer, Etcd, RefusedError
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.containers

NAMESPACE = ("Namespace", "ripple")
PODS = [named for named in manifests.objects() if named[0] in manifests.WORKLOADS]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One that has the namespace, and with it the profile."""
    folder = tmp_path_factory.mktemp("kubernetes")
    try:
        with Etcd(folder / "etcd") as etcd, ApiServer(folder / "api", etcd) as server:
            server.apply(manifests.objects()[NAMESPACE])
            yield server
    except MissingError as error:
        skip(error)


def pod_of(workload: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as a controller would make it; volumes of claims are folders here."""
    template = copy.deepcopy(workload["spec"]["template"])
    claims = workload["spec"].get("volumeClaimTemplates", [])
    volumes = template["spec"].setdefault("volumes", [])
    volumes += [{"name": one["metadata"]["name"], "emptyDir": {}} for one in claims]
    name = workload["metadata"]["name"]
    metadata = template["metadata"] | {"name": f"{name}-0", "namespace": "ripple"}
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def test_every_manifest_is_accepted_by_the_api_server(api: ApiServer) -> None:
    api.kubectl("apply", "--server-side", "-R", "-f", manifests.FOLDER)
    for (kind, name), given in manifests.objects().items():
        kept = json.loads(api.kubectl("get", kind, name, "-n", "ripple", "-o", "json"))
        labels = given["metadata"].get("labels", {})
        assert labels.items() <= kept["metadata"].get("labels", {}).items(), (kind, name)
    assert api.kubectl("diff", "--server-side", "-R", "-f", manifests.FOLDER) == ""


@pytest.mark.parametrize("named", PODS, ids=lambda named: named[1])
def test_its_pods_are_restricted_ones(api: ApiServer, named: tuple[str, str]) -> None:
    assert "created" in _said(api, pod_of(manifests.objects()[named]))


@pytest.mark.parametrize(
    ("loosened", "why"),
    [
        ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation != false"),
        ({"capabilities": {"add": ["NET_ADMIN"]}}, "unrestricted capabilities"),
        ({"runAsNonRoot": False}, "runAsNonRoot != true"),
    ],
)
def test_a_looser_pod_is_refused(api: ApiServer, loosened: dict[str, Any], why: str) -> None:
    pod = pod_of(manifests.objects()[PODS[0]])
    pod["metadata"]["name"] = "looser"
    pod["spec"]["containers"][0].setdefault("securityContext", {}).update(loosened)
    with pytest.raises(RefusedError, match=why):
        api.apply(pod)


def test_a_misspelt_field_is_refused(api: ApiServer) -> None:
    one = copy.deepcopy(manifests.objects()[PODS[0]])
    one["spec"]["replicaz"] = 3
    with pytest.raises(RefusedError, match="replicaz"):
        api.apply(one)


def _said(api: ApiServer, one: dict[str, Any]) -> str:
    return api.kubectl("create", "-f", "-", given=json.dumps(one))
