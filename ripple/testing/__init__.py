"""The public test kit.

A slow, obvious interpreter and a check of your pipeline against it; a world that is a function of a
seed, and a search for the crash or fault that your program does not survive; suites for connectors;
fixtures of pytest.

A name is imported when it is first used: pytest loads ``plugin`` wherever Ripple is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
    from ripple.testing.check import Answered as Answered
    from ripple.testing.check import Divergence as Divergence
    from ripple.testing.check import Follower as Follower
    from ripple.testing.check import Marker as Marker
    from ripple.testing.check import check_pipeline as check_pipeline
    from ripple.testing.cluster.kit import cluster_test as cluster_test
    from ripple.testing.cluster.trial import ClusterTrial as ClusterTrial
    from ripple.testing.connectors.rows import Tick as Tick
    from ripple.testing.connectors.suites import sink_suite as sink_suite
    from ripple.testing.connectors.suites import source_suite as source_suite
    from ripple.testing.crash.kit import crash_test as crash_test
    from ripple.testing.crash.scenario import CrashScenario as CrashScenario
    from ripple.testing.exploring import Report as Report
    from ripple.testing.exploring import SimulationError as SimulationError
    from ripple.testing.exploring import enumerate_crashes as enumerate_crashes
    from ripple.testing.exploring import explore as explore
    from ripple.testing.exploring import repeat as repeat
    from ripple.testing.reference.aggregates import Entry as Entry
    from ripple.testing.reference.aggregates import twin as twin
    from ripple.testing.reference.interpreter import Emit as Emit
    from ripple.testing.reference.interpreter import Reference as Reference
    from ripple.testing.reference.interpreter import Retract as Retract
    from ripple.testing.sim.chance import Chance as Chance
    from ripple.testing.sim.cluster import ClusterScenario as ClusterScenario
    from ripple.testing.sim.cluster import SimCluster as SimCluster
    from ripple.testing.sim.cluster import on_cluster as on_cluster
    from ripple.testing.sim.disk import SimDisk as SimDisk
    from ripple.testing.sim.faults import Fault as Fault
    from ripple.testing.sim.faults import Faults as Faults
    from ripple.testing.sim.host import SimHost as SimHost
    from ripple.testing.sim.run import Run as Run
    from ripple.testing.sim.run import Scenario as Scenario
    from ripple.testing.sim.store import SimStore as SimStore
    from ripple.testing.sim.world import SimWorld as SimWorld
    from ripple.testing.sim.world import sim_world as sim_world

_NAMES_BY_HOME = {
    "ripple.testing.check": ("Answered", "Divergence", "Follower", "Marker", "check_pipeline"),
    "ripple.testing.cluster.kit": ("cluster_test",),
    "ripple.testing.cluster.trial": ("ClusterTrial",),
    "ripple.testing.connectors.rows": ("Tick",),
    "ripple.testing.connectors.suites": ("sink_suite", "source_suite"),
    "ripple.testing.crash.kit": ("crash_test",),
    "ripple.testing.crash.scenario": ("CrashScenario",),
    "ripple.testing.exploring": (
        "Report",
        "SimulationError",
        "enumerate_crashes",
        "explore",
        "repeat",
    ),
    "ripple.testing.reference.aggregates": ("Entry", "twin"),
    "ripple.testing.reference.interpreter": ("Emit", "Reference", "Retract"),
    "ripple.testing.sim.chance": ("Chance",),
    "ripple.testing.sim.cluster": ("ClusterScenario", "SimCluster", "on_cluster"),
    "ripple.testing.sim.disk": ("SimDisk",),
    "ripple.testing.sim.faults": ("Fault", "Faults"),
    "ripple.testing.sim.host": ("SimHost",),
    "ripple.testing.sim.run": ("Run", "Scenario"),
    "ripple.testing.sim.store": ("SimStore",),
    "ripple.testing.sim.world": ("SimWorld", "sim_world"),
}
_HOME_OF = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}
__all__ = [
    "Answered",
    "Chance",
    "ClusterScenario",
    "ClusterTrial",
    "CrashScenario",
    "Divergence",
    "Emit",
    "Entry",
    "Fault",
    "Faults",
    "Follower",
    "Marker",
    "Reference",
    "Report",
    "Retract",
    "Run",
    "Scenario",
    "SimCluster",
    "SimDisk",
    "SimHost",
    "SimStore",
    "SimWorld",
    "SimulationError",
    "Tick",
    "check_pipeline",
    "cluster_test",
    "crash_test",
    "enumerate_crashes",
    "explore",
    "on_cluster",
    "repeat",
    "sim_world",
    "sink_suite",
    "source_suite",
    "twin",
]

if not TYPE_CHECKING:
    __getattr__ = imported(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
