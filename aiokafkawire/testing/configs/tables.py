"""The settings that each release of Apache Kafka has: those of 4.3, and for later releases the new ones too."""

from collections.abc import Mapping
from typing import Final

import attrs

from ..cluster.releases import Release
from .broker_configs import BROKER_CONFIGS
from .topic_configs import GROUP_CONFIGS, TOPIC_CONFIGS
from .types import Definition, read_table

__all__ = ("ConfigTables", "tables_of")


@attrs.frozen
class ConfigTables:
    """The definitions of topics', brokers' and groups' settings, by name."""

    topics: Mapping[str, Definition] = TOPIC_CONFIGS
    brokers: Mapping[str, Definition] = BROKER_CONFIGS
    groups: Mapping[str, Definition] = GROUP_CONFIGS


_TOPICS_4_4: Final = read_table("""
max.decompressed.message.bytes      int     2147483639 1..2147483639 max.decompressed.message.bytes
remote.copy.lag.ms                  long    0 -1.. log.remote.copy.lag.ms
remote.copy.lag.bytes               long    -1 -1.. log.remote.copy.lag.bytes
errors.deadletterqueue.group.enable boolean false
""")
_BROKERS_4_4: Final = read_table("""
errors.deadletterqueue.auto.create.topics.enable boolean false - - cluster
errors.deadletterqueue.topic.name.prefix         string  dlq. - - cluster
group.streams.assignors                          list    sticky
group.streams.rack.aware.assignment.tags         list    ""
group.streams.topology.description.plugin.class  class   -
log.remote.copy.lag.bytes                        long    -1 -1.. - cluster
log.remote.copy.lag.ms                           long    0 -1.. - cluster
max.decompressed.message.bytes                   int     2147483639 1..2147483639 - cluster
sasl.oauthbearer.allow.unverified.audience       boolean false
sasl.oauthbearer.allow.unverified.issuer         boolean false
""")
_GROUPS_4_4: Final = read_table("""
errors.deadletterqueue.copy.record.enable boolean false
errors.deadletterqueue.topic.name         string  ""
streams.assignor.name                     string  sticky - group.streams.assignors
streams.rack.aware.assignment.tags        list    "" - group.streams.rack.aware.assignment.tags
""")


def tables_of(release: Release) -> ConfigTables:
    """Return the settings of a release; those before 4.3 have the settings of 4.3."""
    if not release.since("4.4"):
        return ConfigTables()
    return ConfigTables(
        {**TOPIC_CONFIGS, **_TOPICS_4_4}, {**BROKER_CONFIGS, **_BROKERS_4_4}, {**GROUP_CONFIGS, **_GROUPS_4_4}
    )
