"""The public test kit.

A slow, obvious interpreter and a check of your pipeline against it; a world that is a function of a
seed, and a search for the crash or fault that your program does not survive; suites for connectors.
"""

from __future__ import annotations

from ripple.testing.aggregates import Entry, twin
from ripple.testing.check import Divergence, Follower, Marker, check_pipeline
from ripple.testing.cluster import cluster_test
from ripple.testing.cluster_trial import ClusterTrial
from ripple.testing.connector_rows import Tick
from ripple.testing.connector_suites import sink_suite, source_suite
from ripple.testing.crash import crash_test
from ripple.testing.crash_scenario import CrashScenario
from ripple.testing.explore import Report, SimulationError, enumerate_crashes, explore, repeat
from ripple.testing.reference import Emit, Reference, Retract
from ripple.testing.sim_chance import Chance
from ripple.testing.sim_cluster import ClusterScenario, SimCluster, on_cluster
from ripple.testing.sim_disk import SimDisk
from ripple.testing.sim_faults import Fault, Faults
from ripple.testing.sim_host import SimHost
from ripple.testing.sim_run import Run, Scenario
from ripple.testing.sim_store import SimStore
from ripple.testing.sim_world import SimWorld, sim_world

__all__ = [
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
