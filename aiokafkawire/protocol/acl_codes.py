"""The codes in requests and responses about ACLs. A code of a newer Kafka is UNKNOWN."""

from enum import IntEnum
from typing import Self

__all__ = ("AclOperation", "AclPermissionType", "PatternType", "ResourceType")


class _AclCode(IntEnum):
    """A code that may be of a newer Kafka; such a code becomes UNKNOWN, which is 0 in each enumeration."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)


class ResourceType(_AclCode):
    """The type of a resource that ACLs protect; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_AclCode):
    """The way in which a pattern names resources (KIP-290); ANY and MATCH are for filters.

    LITERAL names one resource, or all of them with the name ``*``. PREFIXED names all whose names begin with the
    pattern's name. A filter with MATCH finds every pattern that covers the filter's name, and one with ANY finds
    patterns of both types with exactly the filter's name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_AclCode):
    """An operation that an ACL allows or denies; ANY is for filters, and ALL is every operation.

    Allowing READ, WRITE, DELETE or ALTER allows DESCRIBE, too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS.
    """

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_AclCode):
    """Whether an ACL allows or denies; a denial wins over all permissions. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3
