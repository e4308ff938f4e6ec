"""The lines that the package's code logs: their loggers, levels, messages and fields, read from the source.

`python tests/support/log_calls.py` writes the tables of docs/logging.md again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import aiokafkawire
from aiokafkawire.event_log import FIELDS

__all__ = ("LogCall", "PAGE", "log_calls", "page", "plain_loggers")

PACKAGE = Path(aiokafkawire.__file__).parent
PAGE = PACKAGE.parent / "docs" / "logging.md"
_LEVELS = ("debug", "info", "warning", "error", "log", "failed", "ended")
_NAMED = re.compile(r"%\((\w+)\)[^a-z]*[a-z]")
_EVENTS = ("<!-- events: made by tests/support/log_calls.py -->\n", "<!-- end of events -->")
_FIELDS = ("<!-- fields: made by tests/support/log_calls.py -->\n", "<!-- end of fields -->")


class LogCall(NamedTuple):
    """A call that logs a line."""

    place: str
    logger: str
    method: str
    level: str
    messages: tuple[str, ...]
    fields: frozenset[str]
    text: frozenset[str]


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE.parent).as_posix()
        if "/testing/" not in name and not name.endswith(("/event_log.py",)):
            yield name, ast.parse(path.read_text())


def plain_loggers() -> list[str]:
    """Return the places that make a logger without EventLog, but for the few that have no fields."""
    allowed = (
        "/__init__.py",
        "/_accelerators.py",
        "/cli/error_log.py",
        "/legacy/kazoo_thread.py",
        "/log_forwarding.py",
    )
    return [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        if not name.endswith(allowed)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "getLogger"
    ]


def log_calls() -> list[LogCall]:
    """Return the calls of EventLog and TroubleLog, in the order of loggers and places."""
    found = []
    for name, tree in sources():
        text = ast.unparse(tree)
        made = re.search(r"EventLog\('([\w.]+)'\)", text)
        if "event_log import" not in text:
            continue
        logger = made.group(1) if made else "aiokafkawire.network"
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for function in functions:
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and _logs(node):
                    found.append(_call(f"{name}:{node.lineno}", logger, node, function, tree))
    unique = {call.place: call for call in found}
    return sorted(unique.values(), key=lambda call: call.logger)


def _logs(node: ast.Call) -> bool:
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _LEVELS:
        return False
    owner = ast.unparse(node.func.value)
    if node.func.attr in ("failed", "ended"):
        message = node.args[1] if len(node.args) == 2 else None
        return isinstance(message, ast.Constant) or (isinstance(message, ast.Name) and message.id == "message")
    return owner in ("_log", "LOG")


def _call(place: str, logger: str, node: ast.Call, function: ast.AST, tree: ast.Module) -> LogCall:
    assert isinstance(node.func, ast.Attribute)
    method = node.func.attr
    message = node.args[0 if method in ("debug", "info", "warning", "error") else 1]
    fields = {one.arg for one in node.keywords if one.arg} - {"text", "exc_info"}
    text = set[str]()
    for one in node.keywords:
        if one.arg is None:
            fields |= _keys(one.value, function, tree)
        elif one.arg == "text":
            text |= _keys(one.value, function, tree)
    level = {"failed": "repeated", "ended": "INFO"}.get(method, method.upper())
    if method == "log":
        level = "INFO or DEBUG" if "DEBUG" in ast.unparse(function) else "INFO or WARNING"
    if method in ("failed", "ended"):
        fields |= {"count", "elapsed", "others"}
    return LogCall(place, logger, method, level, tuple(_texts(message, function)), frozenset(fields), frozenset(text))


def _texts(message: ast.expr, function: ast.AST) -> Iterator[str]:
    """Return the texts that a message may have: it is a literal, or a local name that only literals are given to."""
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        yield message.value
    elif isinstance(message, ast.IfExp):
        yield from _texts(message.body, function)
        yield from _texts(message.orelse, function)
    elif isinstance(message, ast.Name):
        for value in _given(message, function):
            yield from _texts(value, function)


def _given(used: ast.Name, function: ast.AST) -> list[ast.expr]:
    """Return what a local name may stand for where it is used: what it was given last, on any way to there."""
    given: list[ast.expr] = []
    for statement in sorted(_statements(function), key=lambda one: one.lineno):
        if statement.lineno > used.lineno:
            break
        value = _value_of(statement, used.id)
        if value is None:
            continue
        if any(statement in body and any(_holds(one, used) for one in body) for body in _bodies(function)):
            given = []  # all ways lead through this one
        given.append(value)
    return given


def _statements(function: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(function) if isinstance(node, ast.stmt))


def _bodies(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def _holds(statement: ast.stmt, used: ast.Name) -> bool:
    return any(node is used for node in ast.walk(statement))


def _value_of(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return what the statement gives to a name; None if it gives it nothing."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.target.id == name:
        return statement.value
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id == name:
                return statement.value
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                pairs = zip(target.elts, statement.value.elts, strict=True)
                return next((value for one, value in pairs if isinstance(one, ast.Name) and one.id == name), None)
    return None


def _keys(value: ast.expr, function: ast.AST, tree: ast.Module) -> set[str]:
    """Return the keys of a dict: a literal, a local name of one, or what a function of the module returns."""
    if isinstance(value, ast.Dict):
        return {one.value for one in value.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    if isinstance(value, ast.Name):
        return {key for given in _given(value, function) for key in _keys(given, function, tree)}
    if isinstance(value, ast.Call):
        name = ast.unparse(value.func).split(".")[-1]
        made = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        return {
            key
            for one in made
            for node in ast.walk(one)
            if isinstance(node, ast.Dict)
            for key in _keys(node, one, tree)
        }
    return set()


def named_in(message: str) -> set[str]:
    """Return the names that a message has."""
    return set(_NAMED.findall(message))


def page(text: str) -> str:
    """Return the page with its tables made from the code."""
    events = ["| logger | level | message | fields |", "|---|---|---|---|"]
    rows = {}
    for call in log_calls():
        for message in call.messages:
            words = _NAMED.sub(r"<\1>", message).replace("|", "\\|").partition("\n")[0]
            fields = ", ".join(sorted(call.fields))
            rows[call.logger, words] = f"| `{call.logger.partition('.')[2]}` | {call.level} | `{words}` | {fields} |"
    names = ["| field | meaning |", "|---|---|", *(f"| `{name}` | {meaning} |" for name, meaning in FIELDS.items())]
    for (begin, end), lines in ((_EVENTS, [*events, *rows.values()]), (_FIELDS, names)):
        before, found, rest = text.partition(begin)
        assert found, f"docs/logging.md lacks {begin!r}"
        text = before + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
