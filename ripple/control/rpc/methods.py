"""Names of the coordinator's methods."""

from __future__ import annotations

SERVICE = "ripple.rpc.Coordinator"
CONVERSE = f"{SERVICE}/Converse"
COMMAND = f"{SERVICE}/Command"
STATUS = f"{SERVICE}/Status"
VIEW = f"{SERVICE}/View"
PIPELINES = f"{SERVICE}/Pipelines"
