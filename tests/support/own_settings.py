"""This client's own settings, from their classes: the part of docs/settings.md with a heading for each."""

import ast
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent, fill
from typing import Any

import attrs

from aiokafkawire.config import ClientConfig, ConsumerConfig, ProducerConfig, ShareConsumerConfig

__all__ = ("CONFIGS", "own_settings")

CONFIGS: dict[str, type[Any]] = {
    "Client": ClientConfig,
    "producer()": ProducerConfig,
    "consumer()": ConsumerConfig,
    "share_consumer()": ShareConsumerConfig,
}

_ROLE = re.compile(r":\w+:`(?:~\.?[\w.]*\.)?([^`]+)`")
"""A reference to a name in a docstring, such as ":class:`~.types.AwsCredentials`"."""

_HEAD = """\
# Settings

Look up a keyword argument of `Client`, `producer`, `consumer` or `share_consumer`; the
[settings of other clients](#the-settings-of-other-clients) follow. The names are Kafka's with underscores; sizes are in
bytes, times in ms. An invalid value raises `ConfigError`, which has the name of the setting as its `setting`:
`settings.md#NAME` is the section about it.
"""


def own_settings() -> str:
    """Return the part of the page: a section for each setting, in the order of the alphabet."""
    described = {owner: dict(_sections(config)) for owner, config in CONFIGS.items()}
    found = [_HEAD]
    for name in sorted({name for sections in described.values() for name in sections}):
        found.append(f"\n### {name}\n")
        owners: dict[str, list[str]] = {}
        for owner, sections in described.items():
            if name in sections:
                owners.setdefault(sections[name], []).append(f"`{owner}`")
        found += [f"\nOf {', '.join(names)}. {text}\n" for text, names in owners.items()]
    return "".join(found)


def _sections(config: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield each setting of a class with its type, its default and its docstring as Markdown."""
    fields = attrs.fields_dict(config)
    for name, annotation, docstring in _fields(config):
        default = repr(fields[name].default)
        text = _ROLE.sub(r"`\1`", " ".join(docstring.split())).replace("``", "`")
        filled = fill(text, 120, break_long_words=False, break_on_hyphens=False)
        yield name, f"Type `{annotation}`, default `{default}`.\n\n{filled}"


def _fields(config: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the name and the type of each field of a class and of its bases, and the docstring below it."""
    for cls in config.__mro__[-2::-1]:
        [tree] = ast.parse(dedent(inspect.getsource(cls))).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                yield ast.unparse(field.target), ast.unparse(field.annotation).strip("'"), ast.literal_eval(below.value)
