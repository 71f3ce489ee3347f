"""The dispatch of calls to the coordinators of several pipelines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol

from coordinator.service.handlers import refusal
from coordinator.service.messages import pipelines_to_bytes
from ripple.control.rpc import methods
from ripple.core.errors import InputError
from ripple.world.control import RefusedError, Service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.control.assignment.pipelines import Pipelines
    from ripple.core.access import Access

NOT_READ = "the record of pipelines has not been read yet: try again"


class Serves(Protocol):
    """The pipelines of a coordinator, and their services."""

    @property
    def record(self) -> Pipelines | None:
        """The record, None before its first reading."""

    @property
    def services(self) -> Mapping[str, Service]:
        """The services of the coordinators at work, by pipeline."""


class Front:
    """Dispatches calls by the pipeline that they name; refuses others with a list of pipelines."""

    def __init__(self, serves: Serves, access: Access | None = None) -> None:
        """Answer the callers that ``access`` admits, or all."""
        self._serves = serves
        self._access = access

    @property
    def service(self) -> Service:
        """Its methods."""
        unnamed = (methods.COMMAND, methods.STATUS, methods.VIEW)
        return Service(
            calls=dict.fromkeys(unnamed, self._refuse) | {methods.PIPELINES: self._listed},
            conversations={methods.CONVERSE: self._refuse},
            allows=None if self._access is None else partial(refusal, self._access),
            named=self._named,
        )

    def _named(self, name: str) -> Service:
        found = self._serves.services.get(name)
        if found is not None:
            return found
        try:
            one = self._known().get(name)
        except InputError as error:
            raise RefusedError(str(error)) from None
        if one.is_stopped:
            raise RefusedError(
                f"pipeline {name} is stopped: ripple pipeline start {name} starts it"
            )
        raise RefusedError(f"pipeline {name} begins here just now: try again")

    async def _listed(self, _: bytes) -> bytes:
        return pipelines_to_bytes(self._known())

    async def _refuse(self, _: object) -> NoReturn:
        there = ", ".join(self._known().names)
        raise RefusedError(
            f"the cluster has several pipelines: name one of {there} with --pipeline"
            if there
            else "the cluster is one of several pipelines, and has none yet: ripple pipeline add "
            "adds one"
        )

    def _known(self) -> Pipelines:
        if self._serves.record is None:
            raise RefusedError(NOT_READ)
        return self._serves.record
