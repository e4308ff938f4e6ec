"""The features that the cluster has finalised (KIP-584)."""

from collections.abc import Callable

import pytest
from support.clusters import Net, metadata, opened
from support.scripted_broker import SPOKEN, Asked, ScriptedBroker, api_versions

from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.metadata import FinalizedFeatureKey
from aiokafkawire.protocol.schema import Response

pytestmark = pytest.mark.anyio


async def test_the_features_are_those_of_the_broker_that_answered_metadata_last() -> None:
    def level(number: int) -> Callable[[Asked], Response]:
        answer = api_versions(SPOKEN)
        answer.finalized_features = [
            FinalizedFeatureKey(name="transaction.version", max_version_level=number, min_version_level=1)
        ]
        return lambda _: answer

    async with ScriptedBroker() as old, ScriptedBroker() as new:
        net = Net(old=old, new=new)
        old.on[ApiKey.API_VERSIONS], new.on[ApiKey.API_VERSIONS] = level(1), level(2)
        for broker in (old, new):
            broker.on[ApiKey.METADATA] = lambda _: metadata(hosts=("old", "new"))
        async with opened(net.connect, "old:9092") as cluster:
            assert cluster.metadata.features == {"transaction.version": 1}
            await cluster.connection(cluster.metadata.snapshot.nodes[2])
            assert cluster.metadata.features == {"transaction.version": 1}
            del net.hosts["old"]
            await old.peers[0].stream.aclose()
            await cluster.metadata.refresh(cluster.metadata.snapshot, cluster.deadline(10))
            assert cluster.metadata.features == {"transaction.version": 2}
