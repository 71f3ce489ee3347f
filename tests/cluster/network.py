"""A network for the processes of a test, which can be cut: a namespace of the kernel for each.

Each has an address of its own, and a wire to a bridge in a further namespace. What is cut is lost
without a word, as in a network: nobody hears of a connection that has ended.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ripple.cli.cluster.starting.plan import HOST, Planned
from tests.cli.processes import ripple

SUBNET = "10.77.0"
# A token bucket into which no packet fits.
LOSE = ("root", "tbf", "rate", "1kbit", "burst", "1", "limit", "1")


def missing() -> str | None:
    """Return why there can be no such network here, None where there can."""
    for program in ("ip", "tc", "openssl"):
        if shutil.which(program) is None:
            return f"it needs {program}"
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "it needs Linux, and to be root"
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces: {tried.stderr.strip()}" if tried.returncode else None


class Network:
    """Wires to named hosts; those of another network on this machine have nothing to do with it."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """Make it. Raises CalledProcessError where it cannot be had."""
        self._hub = f"ripple-{os.getpid()}"
        self._numbers = {host: number for number, host in enumerate(hosts, 2)}
        try:
            _ip("netns", "add", self._hub)
            self._at_hub("link", "add", "name", "bridge", "type", "bridge")
            self._at_hub("link", "set", "bridge", "up")
            for host in hosts:
                self._add(host)
        except BaseException:
            self.close()
            raise

    def spread(self, planned: Sequence[Planned], folder: Path) -> list[Planned]:
        """Return processes as they start on hosts of their names; folder: for the files of TLS."""
        folder.mkdir()
        hosts = [flag for one in planned for flag in ("--host", self.address(one.name))]
        names = [flag for one in planned for flag in ("--name", one.name)]
        made = ripple("cert", "--dir", folder, *names, *hosts)
        assert made.code == 0, made.err
        homes = {
            f"{HOST}:{port}": f"{self.address(one.name)}:{port}"
            for one in planned
            for port in _after("--port=", one.command)
        }
        return [replace(one, command=self._command(one, homes, folder)) for one in planned]

    def address(self, host: str) -> str:
        """Return where a host is found."""
        return f"{SUBNET}.{self._numbers[host]}"

    def cut(self, host: str, *, hears: bool = False, speaks: bool = False) -> None:
        """Lose what is sent to a host and what it sends, but for what it still may."""
        self.heal(host)
        wire = f"wire{self._numbers[host]}"
        if not hears:
            _tc(self._hub, "add", "dev", wire, *LOSE)
        if not speaks:
            _tc(self._space(host), "add", "dev", "eth", *LOSE)

    def heal(self, host: str) -> None:
        """Lose nothing any more."""
        _tc(self._hub, "del", "dev", f"wire{self._numbers[host]}", "root", check=False)
        _tc(self._space(host), "del", "dev", "eth", "root", check=False)

    def close(self) -> None:
        """Remove all of it."""
        for space in (*map(self._space, self._numbers), self._hub):
            _ip("netns", "del", space, check=False)

    def _add(self, host: str) -> None:
        space, wire = self._space(host), f"wire{self._numbers[host]}"
        _ip("netns", "add", space)
        self._at_hub("link", "add", "name", wire, "type", "veth", "peer", "eth", "netns", space)
        self._at_hub("link", "set", wire, "master", "bridge", "up")
        _ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth")
        for name in ("lo", "eth"):
            _ip("-n", space, "link", "set", name, "up")

    def _command(self, one: Planned, homes: dict[str, str], folder: Path) -> tuple[str, ...]:
        found = ["ip", "netns", "exec", self._space(one.name)]
        for word in one.command:
            name, is_flag, value = word.partition("=")
            if name == "--host":
                value = self.address(one.name)
            elif name in ("--coordinator", "--peers"):
                value = ",".join(homes[address] for address in value.split(","))
            found.append(f"{name}{is_flag}{value}")
        files = {"certificate": f"{one.name}.crt", "key": f"{one.name}.key", "authority": "ca.crt"}
        tls = (f"--tls-{what}={folder / name}" for what, name in files.items())
        return (*found, *tls, "--pages-without-tls")

    def _space(self, host: str) -> str:
        return f"{self._hub}-{self._numbers[host]}"

    def _at_hub(self, *arguments: str) -> None:
        _ip("-n", self._hub, *arguments)


def _after(prefix: str, words: Sequence[str]) -> list[str]:
    return [word.removeprefix(prefix) for word in words if word.startswith(prefix)]


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=not check)


def _tc(space: str, *arguments: str, check: bool = True) -> None:
    subprocess.run(["tc", "-n", space, "qdisc", *arguments], check=check, capture_output=not check)
