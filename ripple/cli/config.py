"""Show the effective settings of a worker or coordinator, and name clusters.

Flags override the environment, which overrides the file, which overrides defaults. Secrets are
masked. After -- come the process's own flags.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.cli.lib import config_context
from ripple.cli.lib.output_forms import add_format, write, write_table
from ripple.cli.lib.path_options import a_place
from ripple.core.errors import InputError
from ripple.core.setting import SettingsError
from ripple.core.settings import CONFIG_VARIABLE, arguments, in_force
from ripple.core.settings_file import read_file

if TYPE_CHECKING:
    import argparse

PASSES_ON = True  # arguments after --
EXAMPLES = (
    "ripple config show worker",
    "ripple config show coordinator --config ripple.toml --format json",
    "RIPPLE_STORE=s3://bucket/prefix ripple config show worker -- --processes 4",
    "ripple config context set prod --coordinator c0:9200,c1:9200 --token-file prod.token",
    "ripple config context use prod",
    "ripple config context list",
    "ripple config context delete prod",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="settings and their origins", description=__doc__)
    show.add_argument("process", choices=("worker", "coordinator"), help="the process")
    show.add_argument(
        "--config", type=a_place, metavar="FILE", help=f"(default: {CONFIG_VARIABLE})"
    )
    show.add_argument("--all", action="store_true", help="defaults too")
    show.set_defaults(rest=[])
    add_format(show)
    config_context.configure(
        actions.add_parser(
            "context",
            help="named clusters, and the one in use",
            description="Name clusters: their coordinators, and the files of their credentials.",
        )
    )


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    if options.action == "context":
        return config_context.run(options)
    from ripple.control.secrets import hider  # noqa: PLC0415 - needed only here

    module = import_module(f"{options.process}.settings")
    environment = dict(os.environ)
    config = options.config or environment.get(CONFIG_VARIABLE)
    try:
        given = arguments(
            module.SETTINGS,
            module.flags_of(options.rest) if hasattr(module, "flags_of") else options.rest,
        )
        file = read_file(Path(config).read_bytes(), config) if config else {}
        found = in_force(
            module.SETTINGS, given, environment, file, section=module.SECTION, others=module.OTHERS
        )
    except SettingsError as error:
        raise InputError(str(error)) from error
    hidden = hider(environment)
    listed: list[dict[str, Any]] = []
    for setting in module.SETTINGS:
        one = found.get(setting.name)
        value = None if one is None else one.value
        if isinstance(value, str):
            value = hidden(value)
        origin = "missing" if one is None else one.origin
        listed.append({"name": setting.name, "value": value, "origin": origin})

    def text() -> None:
        rows = [one for one in listed if options.all or one["origin"] not in ("default",)]
        write_table(
            ("SETTING", "VALUE", "FROM"),
            ((one["name"], _shown(one["value"]), one["origin"]) for one in rows),
            gap=False,
        )
        if len(rows) < len(listed):
            print(f"{len(listed) - len(rows)} more have their defaults: --all shows them")

    write(options.format, {"process": options.process, "settings": listed}, text)
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None or value == "" else str(value)
