"""Reads a cluster's declared state from TOML."""

import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from ...errors import UsageError
from ...types import check_topic_name
from ..exit_status import MISSING, CommandFailed
from ..quotas.limits import rounding_of
from .cluster_settings import (
    CLUSTER,
    DEFAULT,
    SECTIONS,
    Acl,
    ClusterSettings,
    ConfigValue,
    DeclaredTopic,
    QuotaEntity,
    Secret,
    User,
)
from .toml_places import TomlPath, find_place, path_text

__all__ = ("parse_state",)

_RESOURCES: Final = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")
_PATTERNS: Final = ("literal", "prefixed")
_PERMISSIONS: Final = ("allow", "deny")
_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_OPERATIONS: Final = (
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster_action",
    "describe_configs",
    "alter_configs",
    "idempotent_write",
    "create_tokens",
    "describe_tokens",
    "two_phase_commit",
)
_SECRET_PLACES: Final = {"env": "environment", "file": "file"}
_MOST_INT32: Final = 2**31 - 1
_MOST_INT16: Final = 2**15 - 1
_ITERATIONS: Final = (4096, 16384)  # KIP-554


def parse_state(text: str, source: str = "the file") -> ClusterSettings:
    """Return the state that a text of TOML declares.

    Raises:
        CommandFailed: the text is not TOML, or a key or a value is wrong (exit status 2); the message has the source,
            the line, the column, and the path of the key.
    """
    try:
        return _state(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise CommandFailed(f"{source} is not TOML: {error}", MISSING) from None
    except _WrongPart as wrong:
        line, column = find_place(text, wrong.path)
        raise CommandFailed(f"{source}:{line}:{column}: {path_text(wrong.path)} {wrong.reason}", MISSING) from None


class _WrongPart(Exception):
    """A key or a value that is wrong, and its path in the file."""

    def __init__(self, path: TomlPath, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason


def _state(given: dict[str, Any]) -> ClusterSettings:
    _check_keys((), given, SECTIONS)
    return ClusterSettings(
        topics=_topics(given["topics"]) if "topics" in given else None,
        brokers=_brokers(given["brokers"]) if "brokers" in given else None,
        acls=frozenset(_acls(given["acls"])) if "acls" in given else None,
        quotas=_quotas(given["quotas"]) if "quotas" in given else None,
        users=_users(given["users"]) if "users" in given else None,
    )


def _topics(given: object) -> dict[str, DeclaredTopic]:
    topics: dict[str, DeclaredTopic] = {}
    for name, topic in _table(("topics",), given).items():
        path = ("topics", name)
        try:
            check_topic_name(name)
        except UsageError as error:
            _fail(path, f"is wrong: {error}")
        fields = _table(path, topic)
        _check_keys(path, fields, ("partitions", "replication_factor", "configs"))
        topics[name] = DeclaredTopic(
            partitions=_integer((*path, "partitions"), fields.get("partitions"), 1, _MOST_INT32),
            replication_factor=_integer(
                (*path, "replication_factor"), fields.get("replication_factor"), 1, _MOST_INT16
            ),
            configs=_configs((*path, "configs"), fields.get("configs", {})),
        )
    return topics


def _brokers(given: object) -> dict[str, Mapping[str, ConfigValue]]:
    brokers: dict[str, Mapping[str, ConfigValue]] = {}
    for name, configs in _table(("brokers",), given).items():
        path = ("brokers", name)
        if name != "default" and not (name.isascii() and name.isdigit() and int(name) <= _MOST_INT32):
            _fail(path, "is wrong: the key must be a broker's id, or default")
        broker = DEFAULT if name == "default" else str(int(name))
        if broker in brokers:
            _fail(path, "is there twice")
        fields = _table(path, configs)
        secrets = {key: _secret((*path, key), value) for key, value in fields.items() if _is_secret(value)}
        plain = _configs(path, {key: value for key, value in fields.items() if key not in secrets})
        brokers[broker] = {**plain, **secrets}
    return brokers


def _acls(given: object) -> Iterator[Acl]:
    known = ("principal", "operations", "resource", "name", "pattern", "permission", "host")
    for path, fields in _tables(("acls",), given, known):
        resource = _choice((*path, "resource"), fields.get("resource"), _RESOURCES)
        name = _text((*path, "name"), fields.get("name", CLUSTER if resource == "cluster" else None))
        if resource == "cluster" and name != CLUSTER:
            _fail((*path, "name"), f"must be {CLUSTER}, or left out, for the resource cluster; got {name!r}")
        operations = fields.get("operations")
        if not isinstance(operations, list) or not operations:
            _fail((*path, "operations"), 'must be a list, such as ["read", "describe"]')
        principal = _text((*path, "principal"), fields.get("principal"))
        if ":" not in principal:
            _fail((*path, "principal"), f"must have a type, such as User:alice; got {principal!r}")
        for index, operation in enumerate(operations):
            yield Acl(
                principal=principal,
                operation=_choice((*path, "operations", index), operation, _OPERATIONS),
                resource_type=resource,
                resource_name=name,
                pattern=_choice((*path, "pattern"), fields.get("pattern", "literal"), _PATTERNS),
                permission=_choice((*path, "permission"), fields.get("permission", "allow"), _PERMISSIONS),
                host=_text((*path, "host"), fields.get("host", "*")),
            )


def _quotas(given: object) -> dict[QuotaEntity, Mapping[str, float]]:
    quotas: dict[QuotaEntity, Mapping[str, float]] = {}
    for path, fields in _tables(("quotas",), given, ("user", "client_id", "ip", "limits")):
        names = {key: _text((*path, key), fields[key]) for key in ("user", "client_id", "ip") if key in fields}
        if not names or ("ip" in names and len(names) > 1):
            _fail(path, "must have a user, a client_id, both, or an ip")
        entity = QuotaEntity(**names)
        if entity in quotas:
            _fail(path, f"is wrong: {entity} is there twice")
        limits = {}
        for name, limit in _table((*path, "limits"), fields.get("limits")).items():
            is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not is_number or not 0 < limit <= sys.float_info.max:
                _fail((*path, "limits", name), f"must be a number above 0, got {limit!r}")
            if isinstance(limit, int) and (why := rounding_of(limit)):
                _fail((*path, "limits", name), why)
            limits[name] = float(limit)
        if not limits:
            _fail((*path, "limits"), "is empty; leave the quota out")
        quotas[entity] = limits
    return quotas


def _users(given: object) -> dict[str, tuple[User, ...]]:
    users = {}
    for name, user in _table(("users",), given).items():
        path = ("users", name)
        if not name:
            _fail(path, "is wrong: a user has a name")
        found: list[User] = []
        for index, credential in enumerate(user if isinstance(user, list) else [user]):
            at = (*path, index) if isinstance(user, list) else path
            fields = _table(at, credential)
            _check_keys(at, fields, ("mechanism", "iterations", "password"))
            mechanism = _choice((*at, "mechanism"), fields.get("mechanism"), _MECHANISMS)
            if any(other.mechanism == mechanism for other in found):
                _fail((*at, "mechanism"), f"is wrong: {mechanism} is there twice")
            iterations = _integer((*at, "iterations"), fields.get("iterations"), *_ITERATIONS)
            found.append(User(mechanism, iterations, _secret((*at, "password"), fields.get("password"))))
        users[name] = tuple(found)
    return users


def _is_secret(given: object) -> bool:
    return isinstance(given, dict) and any(key in _SECRET_PLACES for key in given)


def _secret(path: TomlPath, given: object) -> Secret:
    if not isinstance(given, dict) or len(given) != 1 or next(iter(given)) not in _SECRET_PLACES:
        # Not even the type of what is there: it may be the password.
        _fail(path, 'must be {env = "NAME"} or {file = "PATH"}, the place of the secret; never the secret itself')
    ((place, value),) = given.items()
    return Secret(**{_SECRET_PLACES[place]: _text((*path, place), value)})


def _configs(path: TomlPath, given: object) -> dict[str, str]:
    configs = {}
    for name, value in _table(path, given).items():
        at = (*path, name)
        if not name:
            _fail(at, "is wrong: a config has a name")
        if isinstance(value, dict):  # TOML takes an unquoted retention.ms for a table
            _fail(at, 'is a table: names with dots need quotation marks, such as "retention.ms" = 3600000')
        if isinstance(value, bool):
            configs[name] = str(value).lower()
        elif isinstance(value, list):
            configs[name] = ",".join(_text((*at, index), each) for index, each in enumerate(value))
        elif isinstance(value, str | int | float):
            configs[name] = str(value)
        else:
            _fail(at, f"must be text, a number, true, false or a list, got {value!r}")
    return configs


def _tables(path: TomlPath, given: object, known: Collection[str]) -> Iterator[tuple[TomlPath, dict[str, Any]]]:
    if not isinstance(given, list):
        _fail(path, f"must be a list of tables: [[{path_text(path)}]]")
    for index, each in enumerate(given):
        at = (*path, index)
        fields = _table(at, each)
        _check_keys(at, fields, known)
        yield at, fields


def _table(path: TomlPath, given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        _fail(path, f"must be a table, got {type(given).__name__}" if given is not None else "is missing")
    return given


def _check_keys(path: TomlPath, given: Mapping[str, object], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            _fail((*path, key), f"is unknown; {_suggestion(key, known)}known: {', '.join(known)}")


def _suggestion(given: str, known: Collection[str]) -> str:
    similar = get_close_matches(given.lower(), known, 1)
    return f"did you mean {similar[0]}? " if similar else ""


def _text(path: TomlPath, given: object) -> str:
    if not isinstance(given, str) or not given:
        _fail(path, f"must be text, got {given!r}" if given is not None else "is missing")
    return given


def _choice(path: TomlPath, given: object, known: Collection[str]) -> str:
    if not isinstance(given, str) or given not in known:
        if given is None:
            _fail(path, f"is missing; known: {', '.join(known)}")
        suggestion = _suggestion(given, known) if isinstance(given, str) else ""
        _fail(path, f"is wrong, got {given!r}; {suggestion}known: {', '.join(known)}")
    return given


def _integer(path: TomlPath, given: object, least: int, most: int) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        _fail(path, f"must be a whole number from {least} to {most}, got {given!r}")
    return given


def _fail(path: TomlPath, reason: str) -> NoReturn:
    raise _WrongPart(path, reason)
