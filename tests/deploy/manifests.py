"""deploy/kubernetes as it stands: its objects, and what each of our containers is started with.

What is in a folder there is applied only where it is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.deploy.compose import ROOT

FOLDER = ROOT / "deploy/kubernetes"
WORKLOADS = ("Deployment", "StatefulSet")


@dataclass(frozen=True)
class Container:
    """One container of a pod. files: by their path in it, those of ConfigMaps alone."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    mounted: tuple[str, ...]
    text: Mapping[str, Any]
    pod: Mapping[str, Any]


def objects(text: str | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    """Return objects by kind and name, those of the folder by default."""
    if text is None:
        text = "\n---\n".join(path.read_text() for path in sorted(FOLDER.rglob("*.yaml")))
    found = [one for one in yaml.load_all(text, yaml.CSafeLoader) if one is not None]
    named = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert len(named) == len(found), "an object is there twice"
    return named


def containers() -> Iterator[Container]:
    """Yield what runs Ripple."""
    all_of = objects()
    for (kind, name), one in all_of.items():
        if kind in WORKLOADS:
            (container,) = one["spec"]["template"]["spec"]["containers"]
            yield _container(f"{name}-0", container, one["spec"]["template"]["spec"], all_of)


def _container(
    pod_name: str,
    container: Mapping[str, Any],
    pod: Mapping[str, Any],
    all_of: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Container:
    environment: dict[str, str] = {}
    for one in container["env"]:
        asked = one.get("valueFrom", {})
        if "configMapKeyRef" in asked:
            ref = asked["configMapKeyRef"]
            value = all_of["ConfigMap", ref["name"]]["data"][ref["key"]]
        elif "fieldRef" in asked:
            assert asked["fieldRef"]["fieldPath"] == "metadata.name"
            value = pod_name
        else:
            value = re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], one["value"])
        environment[one["name"]] = value
    at = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    files = {
        f"{at[volume['name']]}/{item['path']}": all_of["ConfigMap", volume["configMap"]["name"]][
            "data"
        ][item["key"]]
        for volume in pod["volumes"]
        for item in volume.get("configMap", {}).get("items", [])
    }
    command = (*container["command"], *container.get("args", []))
    return Container(
        container["name"], command, environment, files, tuple(at.values()), container, pod
    )
