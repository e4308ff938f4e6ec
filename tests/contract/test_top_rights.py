"""What ``aiokafkawire top`` shows to a user with few rights."""

from __future__ import annotations

from secrets import token_hex

import pytest
from support.authorizing import Authorizing
from support.transactional import settled

from aiokafkawire import AclBinding, AclOperation, Client, ResourcePattern, TopicPartition
from aiokafkawire.cli.top.details import read_group
from aiokafkawire.cli.top.options import Pattern
from aiokafkawire.cli.top.rows import History
from aiokafkawire.cli.top.sampler import Sampler
from aiokafkawire.errors import GroupAuthorizationFailed

pytestmark = pytest.mark.anyio

DESCRIBE = AclOperation.DESCRIBE
LIMIT = 20.0


async def sampled(kafka: Client) -> History:
    history = History()
    history.add(await Sampler(kafka, topics=Pattern(), groups=Pattern(), timeout=LIMIT).sample())
    return history


async def test_a_group_without_rights_is_shown_with_its_error_and_the_others_with_their_lag(
    guarded: Authorizing,
) -> None:
    topic, known, secret = (f"{name}-{token_hex(6)}" for name in ("topic", "known", "secret"))
    user = guarded.new_user()
    async with guarded.client() as admin:
        await admin.admin.create_topics({topic: 1})
        async with admin.producer() as producer:
            await producer.send_many(topic, [b"x"] * 5)
        for group in (known, secret):
            await admin.admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): 2})
        allowed = (ResourcePattern.topic(topic), ResourcePattern.group(known), ResourcePattern.cluster())
        await guarded.grant(admin, *(AclBinding(one, f"User:{user}", DESCRIBE) for one in allowed))
    async with guarded.client(user) as kafka:

        async def ask() -> History:
            return await sampled(kafka)

        history = await settled(ask, lambda one: {known, secret} <= {row.group_id for row in one.group_rows()})
        groups = {row.group_id: row for row in history.group_rows()}
        assert (groups[known].lag, groups[known].error) == (3, None)
        assert (groups[secret].lag, groups[secret].members) == (None, None)
        assert (groups[secret].error or "").startswith("GroupAuthorizationFailed")
        assert [row.name for row in history.topic_rows()] == [topic]
        assert [row.error for row in history.broker_rows()] == [None]
        with pytest.raises(GroupAuthorizationFailed):
            await read_group(kafka, secret, "classic", timeout=LIMIT)


async def test_a_user_without_rights_sees_brokers_alone(guarded: Authorizing) -> None:
    async with guarded.client(guarded.new_user()) as kafka:
        history = await sampled(kafka)
    (broker,) = history.broker_rows()
    assert broker.error is None
    assert (history.topic_rows(), history.group_rows()) == ([], [])
