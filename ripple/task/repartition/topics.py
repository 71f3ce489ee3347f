"""The repartition topics of a pipeline: their locations, and the lanes' senders and receivers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from ripple.core.errors import OutputError
from ripple.engine.edges.sent_rows import row_values
from ripple.model.pipeline.topology import stages_of
from ripple.storage.log import LogSettings, Topic
from ripple.storage.log.body import columns_of
from ripple.storage.log.epochs import newest_owner_of
from ripple.task.repartition.rows import lane_schema

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import Schema
    from ripple.world.ports import Disk

RECORDS = "records"
# Commits sync. Records that are no longer needed go by whole segments: by no age that is ever
# reached, but a log without any retention that does not begin at its beginning is a damaged one.
SETTINGS = LogSettings(sync_appends=0, segment_bytes_max=16 << 20, retention_age_ns_max=1 << 62)


@dataclass(frozen=True, slots=True)
class LaneTopic:
    """The topic of one edge. senders, receivers: how many there are."""

    path: str
    schema: Schema
    senders: int
    receivers: int

    @property
    def topic(self) -> str:
        """The topic's name at a broker."""
        return self.schema.name

    def lane(self, sender: int, receiver: int) -> int:
        """Return the lane from a sender to a receiver."""
        return receiver * self.senders + sender

    def lanes_to(self, receiver: int) -> list[int]:
        """Return the lanes to a receiver, by sender."""
        return [self.lane(sender, receiver) for sender in range(self.senders)]

    def open(self, disk: Disk) -> Topic:
        """Return the topic, which is made if there is none.

        Raises OutputError where there is one of another plan, or of other counts; TopicError where
        none can be made.
        """
        count = self.senders * self.receivers
        topic = Topic.ensure(disk, self.path, self.schema, partitions=count, settings=SETTINGS)
        if columns_of(topic.schema) != columns_of(self.schema) or topic.partitions != count:
            raise OutputError(
                f"the repartition topic {self.path} has {topic.partitions} lanes of "
                f"{', '.join(columns_of(topic.schema).names)}, and the pipeline has {count} of "
                f"{', '.join(columns_of(self.schema).names)}: begin with another folder, and other "
                "outputs"
            )
        for lane in range(count):
            disk.make_folder(topic.folder(lane))
        return topic


def lanes_of_records(
    plan: Plan, inputs: int, receivers: int, of: SourceSpec | None = None
) -> LaneTopic:
    """Return the topic of a source's repartitioned records; senders are inputs.

    of: the source, None for the only one of a chain.
    """
    if of is None:
        schema = lane_schema(f"{plan.name}.{RECORDS}", plan.source.fields)
        return LaneTopic(_path(plan, RECORDS), schema, inputs, receivers)
    schema = lane_schema(f"{plan.name}.{RECORDS}.{of.name}", of.fields)
    path = _path(plan, f"{RECORDS}-{quote(of.name, safe='')}")
    return LaneTopic(path, schema, inputs, receivers)


def lanes_into(plan: Plan, stage: int, senders: int) -> LaneTopic:
    """Return the topic of the event edge that leads into a stage."""
    into = stages_of(plan)[stage]
    assert into.edge is not None
    above, fold = plan.fold(into.edge.of), plan.fold(into.edge.to)
    fields = (*above.row_key, *row_values(above, fold))
    name = f"stage-{stage}"
    schema = lane_schema(f"{plan.name}.{name}", fields)
    return LaneTopic(_path(plan, name), schema, senders, into.partitions or 1)


def newest_owner(disk: Disk, plan: Plan) -> int:
    """Return the highest epoch that an owner of any lane of a pipeline had, 0 for none."""
    folder = _folder(plan)
    topics = (f"{folder}/{name}" for name in disk.list(folder))
    there = [Topic.open(disk, path) for path in topics if disk.exists(f"{path}/topic")]
    return max((newest_owner_of(topic) for topic in there), default=0)


def _path(plan: Plan, name: str) -> str:
    return f"{_folder(plan)}/{name}"


def _folder(plan: Plan) -> str:
    # Dots tell files from folders in a store on disk.
    return f"edges/{quote(plan.name, safe='').replace('.', '%2E')}"
