"""A real Prometheus with the configuration that is shipped, of services at other addresses."""

from __future__ import annotations

import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.deploy import tools
from tests.deploy.compose import ROOT
from tests.patience import PATIENCE_S
from tests.services.server import Server, free_port


class Prometheus(Server):
    """Prometheus. address: where a target is. Raises MissingError where it cannot be had."""

    def __init__(self, folder: Path, address: Callable[[str], str]) -> None:
        super().__init__(folder)
        self._program = tools.prometheus("prometheus")
        self._address = address
        self._port = free_port()

    def prepare(self) -> None:
        """Write the configuration."""
        shipped = ROOT / "deploy/prometheus"
        config = yaml.safe_load((shipped / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        for job in config["scrape_configs"]:
            for group in job["static_configs"]:
                group["targets"] = [self._address(target) for target in group["targets"]]
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        shutil.copy(shipped / "rules.yml", self.folder)

    def command(self) -> list[str]:
        """Return what to run."""
        listen = f"--web.listen-address=127.0.0.1:{self._port}"
        return [str(self._program), "--config.file=prometheus.yml", listen]

    def answers(self) -> bool:
        """Ask whether it is ready."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=2):
            return True

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an expression, now."""
        asked = urllib.parse.urlencode({"query": expression})
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{asked}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            found = json.loads(answer.read())
        assert found["status"] == "success", found
        return list(found["data"]["result"])
