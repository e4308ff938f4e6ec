"""The settings of Java's clients and of librdkafka, and docs/settings.md, which says what becomes of each.

The page begins with this client's own settings (own_settings.py). `python tests/support/foreign_settings.py` writes it
again.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import attrs

from aiokafkawire.config.property_names import (
    ALIASES,
    MEANINGS,
    REFUSED,
    SPECIAL,
    WITHOUT_CONSUMER,
    why_without_effect,
)

_TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(_TESTS))

from support.own_settings import CONFIGS, own_settings  # noqa: E402, the line before finds it

__all__ = ("LISTS", "PAGE", "ForeignSetting", "foreign_settings", "outcome_of", "page")

PAGE = _TESTS.parent / "docs" / "settings.md"

LISTS = {"java": "Java's clients 4.4.0", "librdkafka": "librdkafka 2.16.0"}

_HEAD = """
## The settings of other clients

Look up what `settings_from` does with a setting of Java's clients 4.4 (producer, consumer, admin, share consumer) or
of librdkafka 2.16, whose names confluent-kafka has, too. It knows each of them:

- *applied*: it becomes an argument of the client, its producers, its consumers or its share consumers.
- *without effect*: it means nothing here, for the reason given. `settings.ignored` lists those in your file, and the
  logger `aiokafkawire.config` names them in one line at DEBUG. Both also have the applied settings that do nothing
  beside the others of your file, such as the password of a truststore without its location; the line says why.
- *refused*: it asks for something that this client does not do. `settings_from` raises ConfigError, whose text is the
  name and the sentence of the table. Values that ask for nothing, such as an empty one, are accepted.

```python
from pathlib import Path

from aiokafkawire import Client, settings_from

settings = settings_from(Path("client.properties").read_text())
client = Client(settings.bootstrap_servers, **settings.client)
share_consumer = client.share_consumer("orders", **settings.share_consumer)
```

`aiokafkawire.from_confluent` reads the dict of a program that moves from confluent-kafka, with its callbacks
([more](migrating.md#from-confluent-kafka)).

If a file has a setting under two names, such as `socket.timeout.ms` and `request.timeout.ms`, the name that this client
uses wins. A setting that is in neither list, such as a misspelt one, is an error that names the nearest known name.
Numbers that have 64 bits in Java become 2147483647 here if they are larger.

| setting | of | what becomes of it | as what, or why |
|---|---|---|---|
"""


class ForeignSetting(NamedTuple):
    """A setting that another client documents."""

    name: str
    clients: str
    type: str
    default: str


def foreign_settings(source: str) -> list[ForeignSetting]:
    """Return the settings of one of :data:`LISTS`."""
    with (_TESTS / "data" / f"{source}_settings.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [ForeignSetting(*row) for row in rows]


def outcome_of(name: str) -> tuple[str, str]:
    """Return whether a setting is applied, without effect or refused; and as what, or why."""
    if name in REFUSED:
        accepted = ", ".join(f"`{value}`" for value in REFUSED[name].unless if value)
        return "refused", REFUSED[name].why + (f"; accepted: {accepted}" if accepted else "")
    why = why_without_effect(name)
    if why is not None:
        return "without effect", why
    own = ALIASES.get(name, name)
    if own in SPECIAL:
        return "applied", SPECIAL[own]
    option = own.replace(".", "_")
    owners = [owner for owner, config in CONFIGS.items() if option in attrs.fields_dict(config)]
    if not owners:
        return "unknown", ""
    if "Client" in owners:  # it has the setting for its producers and consumers, but not for its share consumers
        owners = [owner for owner in owners if owner in ("Client", "share_consumer()")]
    how = [f"`{option}` of {', '.join(f'`{owner}`' for owner in owners)}"]
    how += [f"`{number}` becomes {nearest}" for number, nearest in MEANINGS.get(name, {}).items()]
    if name in WITHOUT_CONSUMER:
        how.append(WITHOUT_CONSUMER[name])
    return "applied", "; ".join(how)


def page() -> str:
    """Return the page docs/settings.md."""
    return own_settings() + _HEAD + "".join(_table())


def _table() -> Iterator[str]:
    """Yield the lines of the table: each setting, which clients document it, and what becomes of it."""
    documented: dict[str, list[str]] = {}
    for source in LISTS:
        for setting in foreign_settings(source):
            documented.setdefault(setting.name, []).append(source)
    for name, sources in sorted(documented.items()):
        outcome, how = outcome_of(name)
        of = " and ".join("Java" if source == "java" else source for source in sources)
        yield f"| `{name}` | {of} | {outcome} | {how} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print("docs/settings.md written")
