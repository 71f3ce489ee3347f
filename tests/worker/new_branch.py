"""A simulated cluster whose workers get code with further branches while it is at work."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ripple.testing.cluster.scene import ClusterScene
from ripple.testing.cluster.trial import BEGIN_S, STEP_MS_MAX, TROUBLES, ClusterTrial
from ripple.testing.cluster.trouble import Trouble
from ripple.testing.cluster.truth import Truth
from ripple.testing.cluster.watch import Watch
from ripple.testing.sim.chance import Chance

if TYPE_CHECKING:
    from ripple.testing.sim.cluster import SimCluster


class NewBranchTrial(ClusterTrial):
    """A trial that begins with another pipeline, of some of the branches."""

    def __init__(self, pipeline: Any, events: list[Any], before: Any) -> None:
        super().__init__(pipeline, events)
        self._before = before.plan()

    @cached_property
    def truth_before(self) -> Truth:
        """The results of the pipeline with which the cluster begins."""
        return Truth(self._before, self.truth.source)

    async def _run(self, cluster: SimCluster, seed: int) -> None:
        chance = Chance(seed, "trouble")
        scene = ClusterScene(cluster, self.truth_before, self.shape_of(seed))
        scene.start()
        await scene.at_work(BEGIN_S)
        await asyncio.sleep(chance.below(STEP_MS_MAX) / 1000)
        await self._change(scene, is_graceful=chance.flip())
        trouble = Trouble(scene, chance)
        try:
            for _ in range(TROUBLES):
                await asyncio.sleep(chance.below(STEP_MS_MAX) / 1000)
                scene.watch.chain.look()
                trouble.step()
                scene.start()
            scene.heal()
            await scene.come_to_rest()
            await self.compare(scene)
        except AssertionError as error:
            error.add_note(f"{scene.shape}; what happened: {', '.join(trouble.done) or 'nothing'}")
            raise

    async def _change(self, scene: ClusterScene, *, is_graceful: bool) -> None:
        """End all workers, and start others with the code of the trial, which wait for theirs."""
        names = list(scene.workers)
        if is_graceful:
            await asyncio.gather(*map(scene.stop, names))
        for name in names:
            scene.cluster.host(name).kill()
        before, scene.truth = scene.watch, self.truth.of_run()
        watch = scene.watch = Watch(scene.cluster, scene.truth, scene.shape.partitions)
        watch.chain, watch._seen = before.chain, dict(before._seen)
        for one, was in zip(watch.partitions, before.partitions, strict=True):
            if was._writes:  # else only its state was at a cut, which is computed anew
                one.committed = was.committed
        for name in names:
            scene.add_worker(name)
        scene.start(*names)
