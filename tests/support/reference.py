"""The pages of docs/ that are made from the code: `python tests/support/reference.py` writes them again."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
from prometheus_client import Metric

from aiokafkawire import errors
from aiokafkawire.admin.admin import Admin
from aiokafkawire.cli.shell.app import PROGRAM, root_command
from aiokafkawire.cli.shell.command import ShellCommand
from aiokafkawire.cli.shell.shared_options import SHARED
from aiokafkawire.cli.shell.verb_list import SHELL_VERBS
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.errors import BrokerError, KafkaError, Refresh, broker_error
from aiokafkawire.metrics.definitions import DEFINITIONS, LEFT_OUT, MetricDefinition
from aiokafkawire.metrics.instrument import InstrumentDefinition
from aiokafkawire.metrics.instrument_list import INSTRUMENTS
from aiokafkawire.prometheus import KafkaCollector
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.message_registry import FAMILIES, request_of

_ROLE = re.compile(r":\w+:`(?:~\.?[\w.]*\.)?([^`]+)`")
"""A reference to a name in a docstring, such as ":class:`~.protocol.api.ApiKey`"."""

DOCS = Path(__file__).parent.parent.parent / "docs"

ADMIN = """\
# The operations of the admin

Look up an operation of `Client.admin`; the blocking `Client` has the same. The names are those of Java's `Admin` in
snake_case. Java has no `find_hanging_transactions`, `consumer_group_lag`, `reset_consumer_group_offsets`,
`find_coordinators`, `offset_for_leader_epoch`, `api_versions`, and no `Client.request`, which sends any message. An
operation for several resources keeps the results of the others when some fail: see `AdminError`.

A call repeats its request when a connection breaks before the response arrives, and the broker may have done the work
already. Then the second attempt is refused, such as by `TopicAlreadyExists` or `UnknownTopicOrPartition`. The error
says that an attempt before has no answer, and its `__cause__` is why: so it is perhaps about the change that this call
has made.
"""

COMMANDS = """\
# The commands of the shell

Look up the options of a command; `aiokafkawire VERB --help` prints the same. [shell.md](shell.md) explains them.

## Options of every command

"""

ERRORS = """\
# The errors

Look up an exception of `aiokafkawire.errors`. All are `KafkaError`s, and their messages say what to do.

## Of the client

| class | meaning |
|---|---|
OWN
## Of the brokers

Every error code of Kafka's protocol is a `BrokerError` with a class of its own. *Retriable*: the same request may
succeed later. *Fatal*: an idempotent or transactional producer cannot continue. *Abortable*: the transaction must be
aborted (KIP-1050). A code that this release does not know becomes `UnknownBrokerError` with that `code`.

| code | class | retriable | producer | meaning |
|---:|---|---|---|---|
"""

MESSAGES = """\
# The messages of the protocol

Look up the class of a message, its versions and its module. The table has every API of Kafka's protocol in every
version, and the module of `aiokafkawire.protocol.messages` that declares it. The response has the same name with
`Response`. Kafka may still change versions marked *unstable*, and a client never chooses them.

| key | request | versions | flexible | module | what it is for |
|---:|---|---|---|---|---|
"""

PROMETHEUS = """\
# The metrics in Prometheus

Look up a metric of `aiokafkawire.prometheus.KafkaCollector`: its type, its labels beside `client_id`, and the metrics
of the Java client that mean the same. [observability.md](observability.md#prometheus) explains how to export and to
plot them. Java has averages, maxima and rates of the last minute; here they are PromQL's, of any time:
`rate(..._total[5m])`, `histogram_quantile(0.99, sum by (le) (rate(..._bucket[5m])))`.

| metric | type | labels | what it is | Java |
|---|---|---|---|---|
"""

METRICS = """\
# Metrics

Look up a metric of `kafka.metrics()`: what it means, and what it belongs to. Names, groups and attributes are those of
the Java client's metrics, so that dashboards and alerts for Java keep their meaning. The last column names the field of
librdkafka's statistics with the same meaning, or one that is close to it.

```python
from aiokafkawire import Client

async with Client("localhost:9092", client_id="orders-service") as kafka:
    kafka.metrics()  # counts from now on
    ...
    for metric in kafka.metrics():
        print(metric.group, metric.name, dict(metric.attributes), metric.value)
```

The client counts from the first call of `kafka.metrics()` on, or from the moment at which an exporter is attached: call
it once at the start. Before, metrics cost nothing. Lag, free buffers, open connections and other values of the present
are right from the first call. Any thread may call `kafka.metrics()`.

- *Rates, averages and maxima* are for the last two windows of 30 seconds, as Java's (`metrics.num.samples=2`,
  `metrics.sample.window.ms=30000`). A rate counts at least 30 seconds: a value that has just begun does not seem large.
  An average or maximum is NaN without values in these windows.
- *Totals* (`counter`) grow while the client lives.
- Times are in ms unless the table says otherwise, sizes in bytes. The clock is the event loop's; uvloop's has a
  resolution of 1 ms, so that single times of less are 0 or 1 ms.

## Where values differ from Java's

- A `Client` is one client with one `client-id`: the values of all its producers are together, and those of all its
  consumers. Connections that they share, for metadata and coordinators, belong to `admin-client-metrics`, as the
  requests on them do that are not for a transaction or for committed offsets.
- If several consumers of a client read one partition, its lag is that of the consumer that has the most to read.
- A batch counts when it has ended, with all its attempts; in Java it counts each time it is sent.
- Bytes of fetched records are those that were sent: compressed, and with the headers of batches. Records count when
  they arrive, before the program takes them; those at the beginning of a batch that the position is past are included.
- `records-lag-max` and `records-lead-min` are for the present; in Java they are for the two windows.
- Times of transactions are those of their requests. `record-size-avg` is before compression.
- `bufferpool-wait-ratio` and `buffer-exhausted-rate` have the times of calls of `kafka.metrics()` and exporters: read
  them regularly.
- While no broker answers, lag and lead stay as they were; `kafka.health()` says that none answers.
- A topic has its own name only; Java repeats metrics of topics with dots, with underscores instead.

## How many there are

A client has about 150 metrics. Each broker adds 12 for each of producer, consumer and admin that has sent requests to
it, each topic 9 for producing and 7 for consuming, each assigned partition 3. A client remembers at most 5,000 topics
for producing and 5,000 for consuming; then it drops the tenth of them that was unused longest, and their totals begin
at zero when they are used again. The values of partitions are read from the consumer at the call, and take no memory.
"""


def metrics_page() -> str:
    """Return the page docs/metrics.md."""
    found = [METRICS]
    for group in dict.fromkeys(each.group for each in DEFINITIONS):
        found.append(f"\n## {group}\n\n| metric | attributes | kind | meaning | librdkafka |\n|---|---|---|---|---|\n")
        found += [_metric_row(each) for each in DEFINITIONS if each.group == group]
    found.append("\n## What Java has besides\n\n| metric | why this client does not have it |\n|---|---|\n")
    for reason in dict.fromkeys(LEFT_OUT.values()):
        names = ", ".join(f"`{name}`" for name, why in LEFT_OUT.items() if why == reason)
        found.append(f"| {names} | {reason} |\n")
    return "".join(found)


def _metric_row(metric: MetricDefinition) -> str:
    tags = ", ".join(f"`{tag}`" for tag in ("client-id", *metric.tags))
    known = f"`{metric.librdkafka}`" if metric.librdkafka else ""
    return f"| `{metric.name}` | {tags} | {metric.kind} | {metric.description} | {known} |\n"


def errors_page() -> str:
    """Return the page docs/errors.md."""
    own = [found for name in errors.__all__ if _is_own(found := getattr(errors, name))]
    rows = "".join(f"| `{found.__name__}` | {_in_markdown(_first_line(found))} |\n" for found in own)
    codes = "".join(_error_row(broker_error(code)) for code in ErrorCode if code is not ErrorCode.NONE)
    return ERRORS.replace("OWN\n", f"{rows}\n") + codes


def _in_markdown(docstring: str) -> str:
    return re.sub(r":\w+:(?=`)", "", docstring.replace("``", "`"))


def _is_own(found: object) -> bool:
    """Return whether an object is an error that no broker answers."""
    return isinstance(found, type) and issubclass(found, KafkaError) and not issubclass(found, BrokerError)


def _error_row(error: BrokerError) -> str:
    retriable = "yes" if error.retriable else ""
    if error.refresh is not Refresh.NOTHING:
        retriable = f"yes, after looking up the {error.refresh.value}"
    producer = "fatal" if error.fatal else "abortable" if error.abortable else ""
    return f"| {int(error.code)} | `{type(error).__name__}` | {retriable} | {producer} | {_first_line(type(error))} |\n"


def prometheus_page() -> str:
    """Return the page docs/prometheus.md."""
    return PROMETHEUS + "".join(map(_instrument_row, INSTRUMENTS.values(), KafkaCollector().describe()))


def _instrument_row(known: InstrumentDefinition, family: Metric) -> str:
    name = family.name + ("_total" if family.type == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in known.labels)
    java = re.sub(r"[a-z]*-[a-z-]+", r"`\g<0>`", known.java)
    return f"| `{name}` | {family.type} | {labels} | {_escaped(known.description)} | {java} |\n"


def messages_page() -> str:
    """Return the page docs/messages.md."""
    return MESSAGES + "".join(_message_row(key) for key in ApiKey)


def _message_row(key: ApiKey) -> str:
    request = request_of(key)
    unstable = f", {request.versions.last} unstable" if request.stable != request.versions else ""
    name = request.__name__
    return (
        f"| {int(key)} | `{name}` | {request.versions}{unstable} | {request.flexible} | `{FAMILIES[key]}` "
        f"| {_first_line(request)} |\n"
    )


def _first_line(documented: object) -> str:
    summary = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    return " ".join(summary.split())


def admin_page() -> str:
    """Return the page docs/admin.md."""
    return ADMIN + "".join("".join(_subject(part)) for part in (*Admin.__bases__, Admin))


def _subject(part: type[object]) -> Iterator[str]:
    """Yield the section of a class of operations, with a link to the page about its subject."""
    name = part.__module__.rpartition(".")[2]
    title = "offsets" if part is Admin else name.replace("_", " ")
    page = DOCS / f"{name.replace('_', '-')}.md"
    yield f"\n## {title.capitalize() if title != 'acls' else 'ACLs'}\n\n"
    if page.exists():
        yield f"See [{page.name}]({page.name}).\n\n"
    yield "| operation | |\n|---|---|\n"
    for method, function in vars(part).items():
        if inspect.isfunction(function) and method[0] != "_":
            summary = _ROLE.sub(r"`\1`", _first_line(function)).replace("``", "`")
            yield f"| `{method}` | {_escaped(summary)} |\n"


def commands_page() -> str:
    """Return the page docs/commands.md."""
    root = root_command()
    context = click.Context(root)
    found: list[str] = [COMMANDS, *_table(root, shared=True)]
    for verb in SHELL_VERBS:
        command = root.get_command(context, verb)
        assert command is not None
        commands = command.commands if isinstance(command, click.Group) else {"": command}
        for name, each in commands.items():
            assert isinstance(each, ShellCommand)
            found += _section(f"{PROGRAM} {verb} {name}".strip(), each)
    return "".join(found)


def _section(path: str, command: ShellCommand) -> Iterator[str]:
    arguments = [_value(one) for one in command.params if isinstance(one, click.Argument)]
    yield f"\n## {path}\n\n"
    yield f"`{' '.join((path, *arguments))}`\n\n"
    yield f"{' '.join((command.help or '').split())}\n\n"
    yield from _table(command, shared=False)
    yield "\n```sh\n" + "".join(f"{line}\n" for line in command.examples) + "```\n"


def _table(command: click.Command, *, shared: bool) -> Iterator[str]:
    options = [one for one in command.params if isinstance(one, click.Option) and (one.name in SHARED) is shared]
    if not options:
        return
    yield "| option | |\n|---|---|\n"
    for option in options:
        names = ", ".join(option.opts)
        text = f"{names} {_value(option)}".strip()
        yield f"| `{text}` | {_escaped(option.help or '')} |\n"


def _value(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return "/".join(map(str, parameter.type.choices))
    return parameter.metavar or ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<")


PAGES = {
    "admin.md": admin_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
    "messages.md": messages_page,
    "prometheus.md": prometheus_page,
    "metrics.md": metrics_page,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        print(f"docs/{name} written")
