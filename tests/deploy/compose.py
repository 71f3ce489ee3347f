"""docker-compose.yml as it stands: its services with variables filled in, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Service:
    """One service. volumes: what is mounted, by its path in the container. after: by condition."""

    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    volumes: Mapping[str, str]
    after: Mapping[str, str]
    profiles: tuple[str, ...]
    grace_s: float
    text: Mapping[str, Any]

    @property
    def is_ours(self) -> bool:
        """Whether it runs Ripple's image."""
        return self.image.partition(":")[0] == "ripple"

    @property
    def is_job(self) -> bool:
        """Whether it does something and ends."""
        return self.text.get("restart") == "no"


def services(variables: Mapping[str, str] | None = None) -> dict[str, Service]:
    """Return all services, by name."""
    text = _VARIABLE.sub(lambda found: _filled(found, variables or {}), FILE.read_text())
    found = yaml.load(text, yaml.CSafeLoader)["services"]
    return {name: _service(name, one) for name, one in found.items()}


def in_order(all_of: Mapping[str, Service], wanted: Iterable[str]) -> list[Service]:
    """Return services and what they depend on, each after what it depends on."""
    done: dict[str, Service] = {}

    def take(name: str) -> None:
        for before in all_of[name].after:
            take(before)
        done.setdefault(name, all_of[name])

    for name in wanted:
        take(name)
    return list(done.values())


def _filled(found: re.Match[str], variables: Mapping[str, str]) -> str:
    name, default = found.groups()
    assert name in variables or default is not None, f"{found[0]} has no default"
    return variables.get(name, default or "")


def _service(name: str, one: Mapping[str, Any]) -> Service:
    after = one.get("depends_on", {})
    if isinstance(after, list):
        after = {before: {"condition": "service_started"} for before in after}
    mounted = dict(volume.split(":")[1::-1] for volume in one.get("volumes", []))
    environment = one.get("environment", {})
    assert all(isinstance(value, str) for value in environment.values()), (name, environment)
    return Service(
        name=name,
        image=one["image"],
        command=(*one.get("entrypoint", ()), *one.get("command", ())),
        environment=environment,
        volumes=mounted,
        after={before: how["condition"] for before, how in after.items()},
        profiles=tuple(one.get("profiles", ())),
        grace_s=float(str(one.get("stop_grace_period", "10s")).removesuffix("s")),
        text=one,
    )
