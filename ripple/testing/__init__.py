"""The public test kit.

A slow, obvious interpreter and a check of your pipeline against it; a world that is a function of a
seed, and a search for the crash or fault that your program does not survive; suites for connectors.
"""

from __future__ import annotations

from ripple.testing.check import Answered, Divergence, Follower, Marker, check_pipeline
from ripple.testing.cluster.kit import cluster_test
from ripple.testing.cluster.trial import ClusterTrial
from ripple.testing.connectors.rows import Tick
from ripple.testing.connectors.suites import sink_suite, source_suite
from ripple.testing.crash.kit import crash_test
from ripple.testing.crash.scenario import CrashScenario
from ripple.testing.explore import Report, SimulationError, enumerate_crashes, explore, repeat
from ripple.testing.reference.aggregates import Entry, twin
from ripple.testing.reference.interpreter import Emit, Reference, Retract
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.cluster import ClusterScenario, SimCluster, on_cluster
from ripple.testing.sim.disk import SimDisk
from ripple.testing.sim.faults import Fault, Faults
from ripple.testing.sim.host import SimHost
from ripple.testing.sim.run import Run, Scenario
from ripple.testing.sim.store import SimStore
from ripple.testing.sim.world import SimWorld, sim_world

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
