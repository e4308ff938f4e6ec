"""Kafka with an authorizer: ours, or Apache Kafka with its StandardAuthorizer, and users without rights.

Each test takes users of its own, so that no ACL of one test is about another's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

import anyio
import anyio.lowlevel
import attrs
from anyio.abc import ByteStream
from support.apache_kafka import ApacheKafka
from support.dialling import over_tcp
from support.logging_in import handshake, plain, token
from support.login_settings import login
from support.raw_client import RawClient

from aiokafkawire import AclBinding, AclBindingFilter, Client, ResourcePattern, ResourceType
from aiokafkawire.network.connector import Connector, connect_tcp
from aiokafkawire.testing.broker import Broker

from .patience import PATIENCE

__all__ = (
    "ADMIN",
    "SUPER_USERS",
    "Authorizing",
    "Names",
    "apache_with_acls",
    "authorizing_broker",
    "in_process",
    "password",
)

ADMIN = "admin"
SUPER_USERS = ("User:ANONYMOUS", f"User:{ADMIN}")
"""Those who may do everything: brokers among themselves, and who grants rights."""
_USERS = [ADMIN, *(f"user-{number}" for number in range(400))]
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

_numbers = count()


def password(user: str) -> str:
    """What a user logs in with."""
    return f"password-of-{user}"


class Names(NamedTuple):
    """What a test is about: a topic that exists, a group and a transactional id that do not."""

    topic: str
    topic_id: UUID
    group: str
    transactional_id: str

    def pattern(self, kind: ResourceType) -> ResourcePattern:
        """The resource of a type."""
        names = {
            ResourceType.TOPIC: self.topic,
            ResourceType.GROUP: self.group,
            ResourceType.TRANSACTIONAL_ID: self.transactional_id,
        }
        return ResourcePattern(kind, names[kind]) if kind in names else ResourcePattern.cluster()


@attrs.frozen
class Authorizing:
    """A Kafka that asks for a login by PLAIN, and lets only super users do anything."""

    bootstrap: str
    connector: Connector
    dial: Callable[[], Awaitable[ByteStream]]

    def new_user(self) -> str:
        """A user whom no ACL names yet."""
        return _USERS[1 + next(_numbers) % (len(_USERS) - 1)]

    def client(self, user: str = ADMIN, **options: Any) -> Client:
        given = login("PLAIN", user, password(user), **options)
        return Client(self.bootstrap, connector=self.connector, **given)

    @asynccontextmanager
    async def raw(self, user: str) -> AsyncIterator[RawClient]:
        """A connection of a user who has logged in."""
        async with RawClient(await self.dial()) as client:
            assert (await handshake(client, "PLAIN")).error_code == 0
            assert (await token(client, plain(user, password(user)))).error_code == 0
            yield client

    async def grant(self, admin: Client, *acls: AclBinding) -> None:
        """Create ACLs, and wait until they are in force: Apache Kafka's brokers hear of them a moment later."""
        await admin.admin.create_acls(acls)
        await self.until(admin, lambda known: set(acls) <= set(known))

    async def revoke(self, admin: Client, *acls: AclBinding) -> None:
        """Delete ACLs, and wait until they are out of force."""
        await admin.admin.delete_acls([acl.to_filter() for acl in acls])
        await self.until(admin, lambda known: not set(acls) & set(known))

    async def until(self, admin: Client, is_so: Callable[[list[AclBinding]], bool]) -> list[AclBinding]:
        """Wait until the broker's ACLs are so."""
        with anyio.fail_after(PATIENCE):
            while not is_so(known := await admin.admin.describe_acls(AclBindingFilter())):
                await anyio.lowlevel.checkpoint()
        return known


def authorizing_broker(**options: Any) -> Broker:
    """An in-process broker with an authorizer."""
    users = {user: password(user) for user in _USERS}
    given: dict[str, Any] = {
        "sasl_enabled_mechanisms": ["PLAIN"],
        "authorizer": True,
        "super_users": SUPER_USERS,
        **options,
    }
    return Broker(users=users, **given)


def in_process(broker: Broker, *, memory: bool) -> Authorizing:
    """An open in-process broker, over memory or over TCP."""
    if not memory:
        return Authorizing(broker.bootstrap, connect_tcp, partial(over_tcp, broker))
    host, _, port = broker.bootstrap.rpartition(":")
    return Authorizing(broker.bootstrap, broker.connect, partial(broker.connect, host, int(port)))


def apache_with_acls(version: str) -> ApacheKafka:
    """A real Kafka with ACLs; the tests' users log in at its listener GUARDED."""
    users = " ".join(f'user_{user}="{password(user)}"' for user in _USERS)
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(SUPER_USERS),
        "listener.name.guarded.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": f"{_MODULE} required {users};",
    }
    return ApacheKafka(version, properties=properties, listeners={"GUARDED": "SASL_PLAINTEXT"})
