"""Reads the settings of a live cluster, in few requests."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

import attrs

from ...admin.admin import Admin
from ...admin.config_resources import ConfigResource
from ...errors import AdminError, InvalidRequest, SecurityDisabled, UnknownTopicOrPartition, UnsupportedVersion
from .admin_forms import acl_of, broker_resource, credentials_of, declared_topic, own_configs, quota_entity_of
from .cluster_settings import DEFAULT, SECTIONS, Acl, ClusterSettings, ConfigValue, DeclaredTopic, QuotaEntity, User

__all__ = ("read_cluster", "read_counterpart")

K = TypeVar("K")
V = TypeVar("V")

_OF_KAFKA: Final = "__"
"""The start of the names of topics that Kafka's own tools keep their state in; a file may name them nevertheless."""


async def read_counterpart(admin: Admin, declared: ClusterSettings) -> ClusterSettings:
    """Return what the cluster has of the sections that are declared.

    Of topics that are not declared it has only the names. Internal topics are left out.

    Raises:
        KafkaError: a broker refused a request, or none can be reached.
    """
    found = _Reader(admin)
    if declared.topics is not None:
        names = await admin.list_topics(internal=True)
        await found.read_topics([name for name in names if name in declared.topics])
        others = (name for name in names if name not in declared.topics and not name.startswith(_OF_KAFKA))
        found.topics |= {name: DeclaredTopic() for name in others}
    if declared.brokers is not None:
        await found.read_brokers(declared.brokers)
    if declared.acls is not None:
        try:
            await found.read_acls()
        except SecurityDisabled:
            if declared.acls:
                raise
    if declared.quotas is not None:
        await found.read_quotas()
    if declared.users is not None:
        await found.read_users()
    return found.settings([section for section in SECTIONS if getattr(declared, section) is not None])


async def read_cluster(
    admin: Admin, sections: Collection[str], topics: Collection[str] = (), *, explicit: bool = False
) -> tuple[ClusterSettings, list[str]]:
    """Return the settings of the cluster, and comments about what is left out.

    Args:
        admin: the admin of the cluster.
        sections: those of :data:`SECTIONS` that are read.
        topics: patterns such as ``orders-*`` of the topics that are read; by default all. A topic whose name begins
            with two underscores is read only if a pattern that begins so matches it.
        explicit: whether a section that the brokers do not have is an error, and not only left out.

    Raises:
        KafkaError: a broker refused a request, or none can be reached.
    """
    found = _Reader(admin)
    readers: dict[str, Callable[[], Any]] = {
        "topics": lambda: found.read_matching_topics(topics),
        "brokers": found.read_all_brokers,
        "acls": found.read_acls,
        "quotas": found.read_quotas,
        "users": found.read_users,
    }
    there = []
    for section, read in readers.items():
        if section not in sections:
            continue
        try:
            await read()
            there.append(section)
        except (SecurityDisabled, UnsupportedVersion) as absent:
            if explicit:
                raise
            has_none = isinstance(absent, SecurityDisabled)
            why = "the brokers have no authorizer" if has_none else " ".join(str(absent).split())
            found.comments.append(f"The {section} are left out: {why}.")
    return found.settings(there), found.comments


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(
        fnmatchcase(name, pattern) and (not name.startswith(_OF_KAFKA) or pattern.startswith(_OF_KAFKA))
        for pattern in patterns or ("*",)
    )


async def _of_those_there(call: Awaitable[Mapping[K, V]], count: int) -> Mapping[K, V]:
    """Return the results of a call about several topics and other resources, without topics that are gone by now."""
    try:
        return await call
    except UnknownTopicOrPartition:
        if count > 1:
            raise
        return {}
    except AdminError as some:
        if any(not isinstance(error, UnknownTopicOrPartition) for error in some.errors.values()):
            raise
        return some.results


@attrs.define
class _Reader:
    """Collects what the brokers describe."""

    admin: Admin
    topics: dict[str, DeclaredTopic] = attrs.field(factory=dict)
    brokers: dict[str, dict[str, ConfigValue]] = attrs.field(factory=dict)
    acls: list[Acl] = attrs.field(factory=list)
    quotas: dict[QuotaEntity, dict[str, float]] = attrs.field(factory=dict)
    users: dict[str, tuple[User, ...]] = attrs.field(factory=dict)
    types: dict[str, str] = attrs.field(factory=dict)
    comments: list[str] = attrs.field(factory=list)

    def settings(self, sections: Collection[str]) -> ClusterSettings:
        """Return what was read of the sections."""
        return ClusterSettings(
            topics=self.topics if "topics" in sections else None,
            brokers=self.brokers if "brokers" in sections else None,
            acls=frozenset(self.acls) if "acls" in sections else None,
            quotas=self.quotas if "quotas" in sections else None,
            users=self.users if "users" in sections else None,
            config_types=self.types,
        )

    async def read_matching_topics(self, patterns: Collection[str]) -> None:
        names = await self.admin.list_topics(internal=True)
        await self.read_topics([name for name in names if _matches(name, patterns)])

    async def read_topics(self, names: Collection[str]) -> None:
        if not names:
            return
        described = (await _of_those_there(self.admin.describe_topics(names), len(names))).values()
        configs = await self._configs([ConfigResource.topic(topic.name) for topic in described])
        for topic in described:
            found = configs.get(ConfigResource.topic(topic.name))
            if found is not None:
                self.topics[topic.name] = declared_topic(topic, found)

    async def read_all_brokers(self) -> None:
        cluster = await self.admin.describe_cluster()
        try:
            await self.read_brokers([DEFAULT, *map(str, sorted(cluster.nodes))])
        except AdminError as some:
            if isinstance(some.errors.get(broker_resource(DEFAULT)), InvalidRequest):
                raise UnsupportedVersion(f"dynamic configs need brokers since 1.1 (KIP-226): {some}") from None
            raise
        self.brokers = {name: configs for name, configs in self.brokers.items() if configs}

    async def read_brokers(self, names: Collection[str]) -> None:
        resources = {name: broker_resource(name) for name in names}
        configs = await self._configs(list(resources.values()))
        self.brokers = {name: configs[resource] for name, resource in resources.items()}

    async def _configs(self, resources: list[ConfigResource]) -> dict[ConfigResource, dict[str, ConfigValue]]:
        if not resources:
            return {}
        described = await _of_those_there(self.admin.describe_configs(resources), len(resources))
        for entries in described.values():
            self.types |= {name: entry.type for name, entry in entries.items() if entry.type is not None}
        return {resource: own_configs(resource, entries) for resource, entries in described.items()}

    async def read_acls(self) -> None:
        for binding in await self.admin.describe_acls():
            acl = acl_of(binding)
            if acl is None:
                self.comments.append(f"An ACL of a kind that this release does not know is left out: {binding}.")
            else:
                self.acls.append(acl)

    async def read_quotas(self) -> None:
        for entity, limits in (await self.admin.describe_client_quotas()).items():
            known = quota_entity_of(entity)
            if known is None:
                self.comments.append(f"A quota of a kind that this release does not know is left out: {entity}.")
            elif limits:
                self.quotas[known] = dict(limits)

    async def read_users(self) -> None:
        for name, infos in (await self.admin.describe_user_scram_credentials()).items():
            credentials = credentials_of(infos)
            if len(credentials) < len(infos):
                what = f"A credential of user {name}, whose mechanism this release does not know, is left out."
                self.comments.append(what)
            if credentials:
                self.users[name] = credentials
