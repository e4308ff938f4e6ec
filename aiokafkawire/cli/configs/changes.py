"""The changes of ``configs alter`` as users write them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...admin.config_resources import ConfigOp
from ..exit_status import MISSING, CommandFailed

__all__ = ("config_changes", "names_and_settings")


def names_and_settings(arguments: Sequence[str], *, default: bool) -> tuple[list[str], list[str]]:
    """Return the names and the ``KEY=VALUE`` texts among arguments.

    The first argument is a name, unless the defaults of all brokers are meant; of the others, those with an equals
    sign are settings.
    """
    first = 0 if default else 1
    names = [*arguments[:first], *(text for text in arguments[first:] if "=" not in text)]
    return names, [text for text in arguments[first:] if "=" in text]


def config_changes(
    settings: Iterable[str],
    *,
    of_file: Mapping[str, str] | None = None,
    deleted: Iterable[str] = (),
    appended: Iterable[str] = (),
    subtracted: Iterable[str] = (),
) -> dict[str, ConfigOp]:
    """Return the changes of settings, by key. The errors show no values, which may be passwords.

    Args:
        settings: ``KEY=VALUE`` texts, which set values.
        of_file: settings of a file, which set values, too.
        deleted: the keys that go back to their defaults.
        appended: ``KEY=ITEM`` texts, whose items, separated by commas, are added to lists.
        subtracted: ``KEY=ITEM`` texts, whose items are removed from lists.

    Raises:
        CommandFailed: a text is not ``KEY=VALUE``, a key has two changes, or there is no change (exit status 2).
    """
    changes: dict[str, ConfigOp] = {}

    def add(key: str, change: ConfigOp) -> None:
        if key in changes:
            raise CommandFailed(f"{key} has two changes: give one (separate the items of a list by commas)", MISSING)
        changes[key] = change

    for key, value in (of_file or {}).items():
        add(key, ConfigOp.set(value))
    _add_each("a setting", settings, ConfigOp.set, add)
    for key in deleted:
        if not key or "=" in key:
            raise CommandFailed("--delete takes the KEY of a setting, without a value", MISSING)
        add(key, ConfigOp.delete())
    _add_each("--append", appended, ConfigOp.append, add)
    _add_each("--subtract", subtracted, ConfigOp.subtract, add)
    if not changes:
        raise CommandFailed(
            "nothing to change: give KEY=VALUE, --delete KEY, --append KEY=ITEM or --subtract KEY=ITEM", MISSING
        )
    return changes


def _add_each(
    what: str, texts: Iterable[str], change: Callable[[str], ConfigOp], add: Callable[[str, ConfigOp], None]
) -> None:
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise CommandFailed(f"{what} must be KEY=VALUE; {key!r} has no {'key' if equals else 'value'}", MISSING)
        add(key, change(value))
