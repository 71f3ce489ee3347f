"""URIs of tables, as users write them: ``postgres:TABLE`` or ``postgres://HOST/DATABASE/TABLE``.

The rest comes from the places of all PostgreSQL programs: PGHOST and the other variables, a
service file, the file of passwords. A password is never part of a URI, which others can read in
the list of processes.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.server_uri import ServerUri, settings_of
from ripple.connectors.settings import setting
from ripple.core.errors import InputError, OutputError
from ripple.world.addresses import is_loopback, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "postgres:"
FORM = "postgres:[//[USER@]HOST[:PORT]/DATABASE/]TABLE"
NAME_BYTES_MAX = 63

_SLOT = re.compile(rf"[a-z0-9_]{{1,{NAME_BYTES_MAX}}}")


@dataclass(frozen=True)
class Settings:
    """The settings of the environment that are read here; libpq reads its others itself."""

    host: str | None = setting(
        "the server, unless the URI names it", variable="PGHOST", default=None
    )
    port: int | None = setting("its port", variable="PGPORT", default=None)
    database: str | None = setting("its database", variable="PGDATABASE", default=None)
    user: str | None = setting("user name", variable="PGUSER", default=None)
    password: str | None = setting("of the user", variable="PGPASSWORD", default=None, secret=True)
    password_file: str | None = setting("of passwords", variable="PGPASSFILE", default=None)
    service: str | None = setting("of the file of services", variable="PGSERVICE", default=None)
    tls: str | None = setting("as sslmode says it", variable="PGSSLMODE", default=None)
    slot: str | None = setting(
        "of changes: ripple_TABLE by default", variable="POSTGRES_SLOT", default=None
    )
    publication: str | None = setting(
        "of changes: ripple_TABLE by default", variable="POSTGRES_PUBLICATION", default=None
    )


class PostgresUri(NamedTuple):
    """A table, its schema if one is named, and its database; "" for parts that are not named."""

    table: str
    schema: str = ""
    host: str = ""
    port: str = ""
    database: str = ""
    user: str = ""

    @classmethod
    def parse(cls, path: str) -> PostgresUri:
        """Parse the text after the scheme. Raises OutputError."""
        if not path.startswith("//"):
            return cls(**_named(path, path))
        if re.match(r"//[^@/:]*:[^@/]*@", path):
            raise OutputError(
                "cannot take a postgres: URI with a password in it, where others can read it: "
                "name it in PGPASSFILE, in a service file or in PGPASSWORD"
            )
        found = ServerUri.parse(path)
        database, _, table = ("", "", "") if found is None else found.name.partition("/")
        if found is None or not (database and table) or "/" in table:
            raise OutputError(f"cannot tell which table {PREFIX}{path} is: it must be {FORM}")
        user, host, port, _ = found
        where = {"host": host.strip("[]"), "port": port, "database": database, "user": user}
        return cls(**_named(table, path), **where)

    def __str__(self) -> str:
        """Return the place as it is written."""
        table = f"{self.schema}.{self.table}" if self.schema else self.table
        if not self.database:
            return f"{PREFIX}{table}"
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        return f"{PREFIX}//{user}{host}{port}/{self.database}/{table}"

    def settings(self, said: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a connection: a server elsewhere must show a certificate.

        That is so unless the user says otherwise, in PGSSLMODE or a service. said: the defaults of
        libpq, from its environment and a service.
        """
        settings = {
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "user": self.user,
        }
        given = {name: value for name, value in settings.items() if value}
        hosts = f"{self.host or said.get('host', '')},{said.get('hostaddr', '')}".split(",")
        is_set = "PGSSLMODE" in os.environ or said.get("sslmode", "prefer") != "prefer"
        if not all(map(_is_here, hosts)) and not is_set:
            given |= {"sslmode": "verify-full"}
            if not said.get("sslrootcert"):
                given |= {"sslrootcert": "system"}
        return given

    def slot_and_publication(self) -> tuple[str, str]:
        """Return the names of the slot and the publication of the table. Raises InputError."""
        own = f"ripple_{self.schema}_{self.table}" if self.schema else f"ripple_{self.table}"
        default = re.sub(r"[^a-z0-9_]", "_", own.lower())[:NAME_BYTES_MAX]
        slot = os.environ.get("POSTGRES_SLOT") or default
        if not _SLOT.fullmatch(slot):
            raise InputError(f"POSTGRES_SLOT: {slot!r} is no slot's name, of a-z, 0-9 and _ alone")
        return slot, os.environ.get("POSTGRES_PUBLICATION") or default


def identity(path: str) -> str:
    """Return a table's identity, for any user: the environment may name the server."""
    place = PostgresUri.parse(path)
    said = settings_of("postgres", Settings)
    where = place._replace(
        host=place.host or said.service or said.host or "",
        port=place.port or str(said.port or ""),
        database=place.database or said.database or "postgres",
        user="",
    )
    return str(where)


def _is_here(host: str) -> bool:
    return not host or host.startswith(("/", "@")) or is_loopback(joined(host, 0))


def _named(text: str, path: str) -> dict[str, str]:
    *schema, table = text.split(".")
    names = [*schema, table]
    if len(names) > 2 or not all(0 < len(name.encode()) <= NAME_BYTES_MAX for name in names):
        raise OutputError(
            f"cannot tell which table {PREFIX}{path} is: it must be {FORM}, the table a name of "
            f"1 to {NAME_BYTES_MAX} bytes, or SCHEMA.TABLE"
        )
    return {"table": table, "schema": schema[0] if schema else ""}
