"""Answers that no honest broker gives to the admin: errors of the protocol, never bare ones or errors of the user."""

from __future__ import annotations

import pytest
from support.made import made

from aiokafkawire.admin.cluster_messages import described_quorum
from aiokafkawire.admin.quota_messages import altered, described
from aiokafkawire.errors import WireError
from aiokafkawire.protocol.messages.quorum_voters import DescribeQuorumResponse
from aiokafkawire.protocol.messages.quotas import AlterClientQuotasResponse, DescribeClientQuotasResponse


def test_a_quorum_with_its_partition_twice_is_refused() -> None:
    topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    assert described_quorum(made(DescribeQuorumResponse, topics=[topic])).leader_id == 0
    with pytest.raises(WireError, match=r"^the DescribeQuorum response has __cluster_metadata-0 2 times$"):
        described_quorum(made(DescribeQuorumResponse, topics=[topic] * 2))


@pytest.mark.parametrize(("kind", "name"), [("", "alice"), ("user\r\nforged", "")])
def test_an_entity_of_quotas_that_cannot_be_is_the_brokers_fault(kind: str, name: str) -> None:
    entries = [{"entity": [{"entity_type": kind, "entity_name": name}]}]
    with pytest.raises(WireError, match="an entity of quotas that cannot be") as caught:
        described(made(DescribeClientQuotasResponse, entries=entries))
    assert str(caught.value).isprintable()
    with pytest.raises(WireError, match="an entity of quotas that cannot be"):
        altered(made(AlterClientQuotasResponse, entries=entries))
