"""The share group of a measurement."""

import anyio

from aiokafkawire import Client, ConfigResource
from benchmarks.clients.measurement import Job


def begin_at_earliest(job: Job) -> None:
    """Let the job's group read its topics from their beginning, which only the group's config can say."""

    async def configure() -> None:
        async with Client(job.bootstrap) as kafka:
            group = ConfigResource.group(job.group_id)
            await kafka.admin.incremental_alter_configs({group: {"share.auto.offset.reset": "earliest"}})

    anyio.run(configure)
