"""Reads and writes a cluster's declared state as TOML."""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn

from ...errors import UsageError
from ...types import check_topic_name
from ..exit_status import CommandFailed
from .cluster_settings import DEFAULT, Acl, ClusterSettings, DeclaredTopic, QuotaEntity, Secret, User

__all__ = ("format_state", "parse_state")

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
_CLUSTER: Final = "kafka-cluster"
_MOST_INT32: Final = 2**31 - 1
_MOST_INT16: Final = 2**15 - 1


def parse_state(text: str) -> ClusterSettings:
    """Return the state that a file declares.

    Raises:
        CommandFailed: the text is not TOML, or a key or a value is wrong; the message has its path in the file.
    """
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CommandFailed(f"the file is not TOML: {error}") from None
    _check_keys("the file", given, ("topics", "brokers", "acls", "quotas", "users"))
    return ClusterSettings(
        topics=_topics(given["topics"]) if "topics" in given else None,
        brokers=_brokers(given["brokers"]) if "brokers" in given else None,
        acls=frozenset(_acls(given["acls"])) if "acls" in given else None,
        quotas=_quotas(given["quotas"]) if "quotas" in given else None,
        users=_users(given["users"]) if "users" in given else None,
    )


# --- reading -------------------------------------------------------------------------------------------------------


def _topics(given: object) -> dict[str, DeclaredTopic]:
    topics: dict[str, DeclaredTopic] = {}
    for name, topic in _table("topics", given).items():
        path = f"topics.{name}"
        try:
            check_topic_name(name)
        except UsageError as error:
            _fail(path, str(error))
        fields = _table(path, topic)
        _check_keys(path, fields, ("partitions", "replication_factor", "configs"))
        topics[name] = DeclaredTopic(
            partitions=_integer(f"{path}.partitions", fields.get("partitions"), _MOST_INT32),
            replication_factor=_integer(f"{path}.replication_factor", fields.get("replication_factor"), _MOST_INT16),
            configs=_configs(f"{path}.configs", fields.get("configs", {})),
        )
    return topics


def _brokers(given: object) -> dict[str, Mapping[str, str]]:
    brokers: dict[str, Mapping[str, str]] = {}
    for name, configs in _table("brokers", given).items():
        path = f"brokers.{name}"
        if name != "default" and not (name.isascii() and name.isdigit()):
            _fail(path, "the key must be a broker's id, or default")
        brokers[DEFAULT if name == "default" else name] = _configs(path, configs)
    return brokers


def _acls(given: object) -> Iterator[Acl]:
    known = ("principal", "operations", "resource", "name", "pattern", "permission", "host")
    for path, fields in _tables("acls", given, known):
        resource = _choice(f"{path}.resource", fields.get("resource"), _RESOURCES)
        name = fields.get("name", _CLUSTER if resource == "cluster" else None)
        operations = fields.get("operations")
        if not isinstance(operations, list) or not operations:
            _fail(f"{path}.operations", 'must be a list, such as ["read", "describe"]')
        principal = _text(f"{path}.principal", fields.get("principal"))
        if ":" not in principal:
            _fail(f"{path}.principal", f"must have a type, such as User:alice; got {principal!r}")
        for index, operation in enumerate(operations):
            yield Acl(
                principal=principal,
                operation=_choice(f"{path}.operations[{index}]", operation, _OPERATIONS),
                resource_type=resource,
                resource_name=_text(f"{path}.name", name),
                pattern=_choice(f"{path}.pattern", fields.get("pattern", "literal"), _PATTERNS),
                permission=_choice(f"{path}.permission", fields.get("permission", "allow"), _PERMISSIONS),
                host=_text(f"{path}.host", fields.get("host", "*")),
            )


def _quotas(given: object) -> dict[QuotaEntity, Mapping[str, float]]:
    quotas: dict[QuotaEntity, Mapping[str, float]] = {}
    for path, fields in _tables("quotas", given, ("user", "client_id", "ip", "limits")):
        names = {key: _text(f"{path}.{key}", fields[key]) for key in ("user", "client_id", "ip") if key in fields}
        if not names or ("ip" in names and len(names) > 1):
            _fail(path, "must have a user, a client_id, both, or an ip")
        entity = QuotaEntity(**names)
        if entity in quotas:
            _fail(path, f"{entity} is there twice")
        limits = {}
        for name, limit in _table(f"{path}.limits", fields.get("limits")).items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
                _fail(f"{path}.limits.{name}", f"must be a number above 0, got {limit!r}")
            limits[name] = float(limit)
        quotas[entity] = limits
    return quotas


def _users(given: object) -> dict[str, tuple[User, ...]]:
    users = {}
    for name, user in _table("users", given).items():
        path = f"users.{name}"
        credentials = user if isinstance(user, list) else [user]
        found: list[User] = []
        for index, credential in enumerate(credentials):
            at = f"{path}[{index}]" if isinstance(user, list) else path
            fields = _table(at, credential)
            _check_keys(at, fields, ("mechanism", "iterations", "password"))
            mechanism = _choice(f"{at}.mechanism", fields.get("mechanism"), _MECHANISMS)
            if any(other.mechanism == mechanism for other in found):
                _fail(f"{at}.mechanism", f"{mechanism} is there twice")
            iterations = _integer(f"{at}.iterations", fields.get("iterations"), _MOST_INT32)
            found.append(User(mechanism, iterations, _secret(f"{at}.password", fields.get("password"))))
        users[name] = tuple(found)
    return users


def _secret(path: str, given: object) -> Secret:
    places = {"env": "environment", "file": "file"}
    if not isinstance(given, dict) or len(given) != 1 or next(iter(given)) not in places:
        # Not even the type of what is there: it may be the password.
        _fail(path, 'must be {env = "NAME"} or {file = "PATH"}, the place of the password; never the password itself')
    ((place, value),) = given.items()
    return Secret(**{places[place]: _text(f"{path}.{place}", value)})


def _configs(path: str, given: object) -> dict[str, str]:
    configs = {}
    for name, value in _table(path, given).items():
        if isinstance(value, dict):  # TOML takes an unquoted retention.ms for a table
            _fail(f"{path}.{name}", 'names with dots need quotation marks, such as "retention.ms" = 3600000')
        if isinstance(value, bool):
            configs[name] = str(value).lower()
        elif isinstance(value, list):
            configs[name] = ",".join(_text(f"{path}.{name}", each) for each in value)
        elif isinstance(value, str | int | float):
            configs[name] = str(value)
        else:
            _fail(f"{path}.{name}", f"must be text, a number, true, false or a list, got {value!r}")
    return configs


def _tables(path: str, given: object, known: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(given, list):
        _fail(path, f"must be a list of tables: [[{path}]]")
    for index, each in enumerate(given):
        at = f"{path}[{index}]"
        fields = _table(at, each)
        _check_keys(at, fields, known)
        yield at, fields


def _table(path: str, given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        _fail(path, f"must be a table, got {given!r}" if given is not None else "is missing")
    return given


def _check_keys(path: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    for key in given:
        if key not in known:
            _fail(f"{path}.{key}" if path != "the file" else key, f"is unknown; known: {', '.join(known)}")


def _text(path: str, given: object) -> str:
    if not isinstance(given, str) or not given:
        _fail(path, f"must be text, got {given!r}" if given is not None else "is missing")
    return given


def _choice(path: str, given: object, known: Collection[str]) -> str:
    if not isinstance(given, str) or given not in known:
        _fail(path, f"must be one of {', '.join(known)}; got {given!r}" if given is not None else "is missing")
    return given


def _integer(path: str, given: object, most: int) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        _fail(path, f"must be a whole number from 1 to {most}, got {given!r}")
    return given


def _fail(path: str, wrong: str) -> NoReturn:
    raise CommandFailed(f"{path} {wrong}" if not wrong.startswith("'") else f"{path}: {wrong}")


# --- writing -------------------------------------------------------------------------------------------------------


def format_state(state: ClusterSettings) -> str:
    """Return the text of a file that declares this state; :func:`parse_state` reads it.

    A user's password becomes the name of an environment variable, since brokers do not return passwords.
    """
    return "\n".join(_lines(state)).strip() + "\n"


def _lines(state: ClusterSettings) -> Iterator[str]:
    for name, topic in sorted((state.topics or {}).items()):
        yield f"[topics.{_key(name)}]"
        if topic.partitions is not None:
            yield f"partitions = {topic.partitions}"
        if topic.replication_factor is not None:
            yield f"replication_factor = {topic.replication_factor}"
        if topic.configs:
            yield f"configs = {_inline(topic.configs)}"
        yield ""
    for name, configs in sorted((state.brokers or {}).items()):
        yield f"[brokers.{'default' if name == DEFAULT else name}]"
        yield from (f"{_key(key)} = {_quoted(value)}" for key, value in sorted(configs.items()))
        yield ""
    for (principal, resource, name, pattern, permission, host), operations in _grouped(state.acls or ()).items():
        yield "[[acls]]"
        yield f"principal = {_quoted(principal)}"
        yield f"operations = [{', '.join(map(_quoted, operations))}]"
        yield f"resource = {_quoted(resource)}"
        optional = (("name", name, _CLUSTER), ("pattern", pattern, "literal"), ("permission", permission, "allow"))
        for key, value, default in (*optional, ("host", host, "*")):
            if value != default:
                yield f"{key} = {_quoted(value)}"
        yield ""
    for entity, limits in sorted((state.quotas or {}).items()):
        yield "[[quotas]]"
        names = (("user", entity.user), ("client_id", entity.client_id), ("ip", entity.ip))
        yield from (f"{key} = {_quoted(value)}" for key, value in names if value)
        yield f"limits = {{ {', '.join(f'{_key(key)} = {value:.15g}' for key, value in sorted(limits.items()))} }}"
        yield ""
    for name, users in sorted((state.users or {}).items()):
        for user in users:
            yield f"[[users.{_key(name)}]]"
            yield f"mechanism = {_quoted(user.mechanism)}"
            if user.iterations is not None:
                yield f"iterations = {user.iterations}"
            variable = "".join(char if char.isascii() and char.isalnum() else "_" for char in name).upper()
            yield f"password = {{ env = {_quoted(variable + '_PASSWORD')} }}"
            yield ""


def _grouped(acls: Iterable[Acl]) -> dict[tuple[str, str, str, str, str, str], list[str]]:
    """Return the operations of rules that differ in nothing else."""
    found: dict[tuple[str, str, str, str, str, str], list[str]] = {}
    for acl in sorted(acls):
        rule = (acl.principal, acl.resource_type, acl.resource_name, acl.pattern, acl.permission, acl.host)
        found.setdefault(rule, []).append(acl.operation)
    return found


def _inline(configs: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{_key(key)} = {_quoted(value)}' for key, value in sorted(configs.items()))} }}"


def _key(name: str) -> str:
    is_bare = bool(name) and all(char.isascii() and (char.isalnum() or char in "-_") for char in name)
    return name if is_bare else _quoted(name)


def _quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " and char != "\x7f" else f"\\u{ord(char):04X}" for char in escaped) + '"'
