"""Writes a cluster's state as TOML, sorted, so that the same state is always the same text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..shell.safe_text import safe_text
from .cluster_settings import CLUSTER, DEFAULT, Acl, ClusterSettings, ConfigValue, Secret

__all__ = ("format_state",)

_MOST_EXACT: Final = 2.0**53
"""All whole numbers below are exact as floats."""
_MOST_OF_COMMENT: Final = 1000
_MOST_DIGITS: Final = 19
"""The digits of the largest whole numbers that every reader of TOML knows."""


def format_state(state: ClusterSettings, comments: Sequence[str] = ()) -> str:
    """Return the text of a file that declares this state, after some lines of comment; ``parse_state`` reads it.

    Brokers return no passwords and other secrets, so each becomes the name of an environment variable.
    """
    head = [f"# {safe_text(comment, _MOST_OF_COMMENT)}" for comment in comments]
    return "\n".join([*head, "", *_lines(state)]).strip() + "\n"


def _lines(state: ClusterSettings) -> Iterator[str]:
    variables = _Variables()
    # These two are lists, which TOML has before all tables; with contents they are tables, too.
    for name, section in (("acls", state.acls), ("quotas", state.quotas)):
        if section is not None and not section:
            yield from (f"{name} = []", "")
    yield from _topics(state)
    yield from _brokers(state, variables)
    yield from _acls(state)
    yield from _quotas(state)
    yield from _users(state, variables)


def _topics(state: ClusterSettings) -> Iterator[str]:
    if state.topics is not None and not state.topics:
        yield from ("[topics]", "")
    for name, topic in sorted((state.topics or {}).items()):
        yield f"[topics.{_key(name)}]"
        if topic.partitions is not None:
            yield f"partitions = {topic.partitions}"
        if topic.replication_factor is not None:
            yield f"replication_factor = {topic.replication_factor}"
        if topic.configs:
            yield f"[topics.{_key(name)}.configs]"
            yield from (f"{_key(key)} = {_config(value)}" for key, value in sorted(topic.configs.items()))
        yield ""


def _brokers(state: ClusterSettings, variables: "_Variables") -> Iterator[str]:
    if state.brokers is not None and not state.brokers:
        yield from ("[brokers]", "")
    for name, configs in sorted((state.brokers or {}).items(), key=_default_first):
        is_default = name == DEFAULT
        yield f"[brokers.{'default' if is_default else name}]"
        for key, value in sorted(configs.items()):
            if isinstance(value, Secret):
                yield "# Brokers do not return this value."
                proposed = key if is_default else f"broker_{name}_{key}"
                yield f"{_key(key)} = {{ env = {_quoted(variables.name(('broker', name, key), proposed))} }}"
            else:
                yield f"{_key(key)} = {_config(value)}"
        yield ""


def _default_first(broker: tuple[str, Mapping[str, ConfigValue]]) -> int:
    return -1 if broker[0] == DEFAULT else int(broker[0])


def _acls(state: ClusterSettings) -> Iterator[str]:
    for (principal, resource, name, pattern, permission, host), operations in _grouped(state.acls or ()).items():
        yield "[[acls]]"
        yield f"principal = {_quoted(principal)}"
        yield f"operations = [{', '.join(map(_quoted, operations))}]"
        yield f"resource = {_quoted(resource)}"
        optional = (
            ("name", name, CLUSTER if resource == "cluster" else None),
            ("pattern", pattern, "literal"),
            ("permission", permission, "allow"),
            ("host", host, "*"),
        )
        yield from (f"{key} = {_quoted(value)}" for key, value, default in optional if value != default)
        yield ""


def _quotas(state: ClusterSettings) -> Iterator[str]:
    for entity, limits in sorted((state.quotas or {}).items()):
        yield "[[quotas]]"
        names = (("user", entity.user), ("client_id", entity.client_id), ("ip", entity.ip))
        yield from (f"{key} = {_quoted(value)}" for key, value in names if value)
        yield f"limits = {{ {', '.join(f'{_key(key)} = {_number(value)}' for key, value in sorted(limits.items()))} }}"
        yield ""


def _users(state: ClusterSettings, variables: "_Variables") -> Iterator[str]:
    if state.users is not None and not state.users:
        yield from ("[users]", "")
    for name, users in sorted((state.users or {}).items()):
        for user in sorted(users, key=lambda user: user.mechanism):
            yield f"[[users.{_key(name)}]]"
            yield f"mechanism = {_quoted(user.mechanism)}"
            if user.iterations is not None:
                yield f"iterations = {user.iterations}"
            yield "# Brokers do not return passwords."
            yield f"password = {{ env = {_quoted(variables.name(('user', name), f'{name}_password'))} }}"
            yield ""


class _Variables:
    """Names of environment variables: another one for each secret."""

    def __init__(self) -> None:
        self._owners: dict[str, tuple[str, ...]] = {}

    def name(self, owner: tuple[str, ...], proposed: str) -> str:
        """Return the variable of an owner, such as a user: letters, digits and underscores of the proposed name."""
        plain = "".join(char if char.isascii() and char.isalnum() else "_" for char in proposed).upper()
        plain = f"_{plain}" if plain[0].isdigit() else plain
        name, number = plain, 1
        while self._owners.setdefault(name, owner) != owner:
            number += 1
            name = f"{plain}_{number}"
        return name


def _grouped(acls: Iterable[Acl]) -> dict[tuple[str, str, str, str, str, str], list[str]]:
    """Return the operations of rules that differ in nothing else."""
    found: dict[tuple[str, str, str, str, str, str], list[str]] = {}
    for acl in sorted(acls):
        rule = (acl.principal, acl.resource_type, acl.resource_name, acl.pattern, acl.permission, acl.host)
        found.setdefault(rule, []).append(acl.operation)
    return found


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < _MOST_EXACT else repr(value)


def _config(value: ConfigValue) -> str:
    """Return the value of a config: a number if its text is one, otherwise text."""
    text = str(value)
    is_short = text.isascii() and text.removeprefix("-").isdigit() and len(text) < _MOST_DIGITS
    return text if is_short and str(int(text)) == text else _quoted(text)


def _key(name: str) -> str:
    is_bare = bool(name) and all(char.isascii() and (char.isalnum() or char in "-_") for char in name)
    return name if is_bare else _quoted(name)


def _quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in escaped) + '"'
