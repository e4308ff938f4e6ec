"""Turns settings into the forms that the admin takes, and what the admin describes into settings."""

from collections.abc import Iterable, Mapping
from typing import Final

from ...admin.acl_bindings import AclBinding, ResourcePattern
from ...admin.client_quotas import ClientQuotaEntity
from ...admin.config_resources import ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource
from ...admin.scram_credentials import ScramCredentialInfo, ScramMechanism
from ...admin.topic_descriptions import TopicDescription
from ...protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
from .cluster_settings import DEFAULT, HIDDEN, Acl, ConfigValue, DeclaredTopic, QuotaEntity, User

__all__ = (
    "acl_of",
    "binding_of",
    "broker_resource",
    "credentials_of",
    "declared_topic",
    "entity_of",
    "mechanism_of",
    "own_configs",
    "quota_entity_of",
    "topic_resource",
)

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_OWN_SOURCES: Final = {
    ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
}


def acl_of(binding: AclBinding) -> Acl | None:
    """Return a rule; None for one of a kind that this release does not know."""
    pattern = binding.pattern
    parts = (pattern.type, pattern.pattern_type, binding.operation, binding.permission_type)
    if any(part.name == "UNKNOWN" for part in parts):
        return None
    return Acl(
        principal=binding.principal,
        operation=binding.operation.name.lower(),
        resource_type=pattern.type.name.lower(),
        resource_name=pattern.name,
        pattern=pattern.pattern_type.name.lower(),
        permission=binding.permission_type.name.lower(),
        host=binding.host,
    )


def binding_of(acl: Acl) -> AclBinding:
    """Return a rule for the admin."""
    return AclBinding(
        ResourcePattern(ResourceType[acl.resource_type.upper()], acl.resource_name, PatternType[acl.pattern.upper()]),
        acl.principal,
        AclOperation[acl.operation.upper()],
        AclPermissionType[acl.permission.upper()],
        acl.host,
    )


def quota_entity_of(entity: ClientQuotaEntity) -> QuotaEntity | None:
    """Return the entity of a quota; None for one of a kind that this release does not know."""
    names = {kind: DEFAULT if name is None else name for kind, name in entity.entries.items()}
    if not set(names) <= {_USER, _CLIENT_ID, _IP}:
        return None
    return QuotaEntity(names.get(_USER, ""), names.get(_CLIENT_ID, ""), names.get(_IP, ""))


def entity_of(entity: QuotaEntity) -> ClientQuotaEntity:
    """Return the entity of a quota for the admin."""
    parts = ((_USER, entity.user), (_CLIENT_ID, entity.client_id), (_IP, entity.ip))
    return ClientQuotaEntity({kind: None if name == DEFAULT else name for kind, name in parts if name})


def mechanism_of(name: str) -> ScramMechanism:
    """Return a SCRAM mechanism by its name in SASL."""
    return ScramMechanism[name.replace("-", "_")]


def credentials_of(infos: Iterable[ScramCredentialInfo]) -> tuple[User, ...]:
    """Return a user's credentials, without those of mechanisms that this release does not know."""
    known = sorted((info.mechanism.mechanism_name, info.iterations) for info in infos if info.mechanism)
    return tuple(User(mechanism, iterations) for mechanism, iterations in known)


def broker_resource(broker: str) -> ConfigResource:
    """Return the resource of a broker's configs, or of the defaults of all brokers."""
    return ConfigResource.all_brokers() if broker == DEFAULT else ConfigResource.broker(int(broker))


def topic_resource(topic: str) -> ConfigResource:
    """Return the resource of a topic's configs."""
    return ConfigResource.topic(topic)


def own_configs(resource: ConfigResource, entries: Mapping[str, ConfigEntry]) -> dict[str, ConfigValue]:
    """Return the configs that are set for a resource itself, so that they are neither defaults nor those of others."""
    is_of_all = resource == ConfigResource.all_brokers()
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG if is_of_all else _OWN_SOURCES[resource.type]
    found: dict[str, ConfigValue] = {}
    for name, entry in entries.items():
        if entry.source is source:
            value = HIDDEN if entry.is_sensitive else entry.value
            if value is not None:
                found[name] = value
    return found


def declared_topic(description: TopicDescription, configs: Mapping[str, ConfigValue]) -> DeclaredTopic:
    """Return a topic as a file would declare it.

    Its number of replicas is the smallest of its partitions, as a partition has more while it moves.
    """
    return DeclaredTopic(
        partitions=len(description.partitions),
        replication_factor=min((len(partition.replicas) for partition in description.partitions), default=None),
        configs={name: value for name, value in configs.items() if isinstance(value, str)},
    )
