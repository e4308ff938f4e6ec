"""The names of aiokafka's API: its modules, exceptions, signatures, and install()."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import importlib
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.patience import SOON

from aiokafkawire import errors as own
from aiokafkawire.aiokafka import errors, install
from aiokafkawire.aiokafka.error_translation import TRANSLATED, translated
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.testing import Broker

RELEASE = "0.14.0"
NAMES = Path(__file__).with_name("names.txt")
"""What aiokafka 0.14 has, as :func:`described` tells it; ``python tests/aiokafka_api/test_names.py`` writes it anew."""
MODULES = (
    "abc",
    "admin",
    "admin.config_resource",
    "client",
    "consumer.consumer",
    "coordinator.assignors.abstract",
    "coordinator.assignors.range",
    "coordinator.assignors.roundrobin",
    "errors",
    "helpers",
    "partitioner",
    "producer.message_accumulator",
    "producer.producer",
    "structs",
    "util",
)
LEFT_OUT = ("MessageAccumulator", "MessageBatch")
"""aiokafka's internals in modules that have public classes as well."""
PRIVATE_METHODS = ("__init__", "_partition")
theirs_is_there = pytest.mark.skipif(find_spec("aiokafka") is None, reason="aiokafka is not installed")


class _Any:
    """Stands for a default that is an object."""

    def __repr__(self) -> str:
        return "..."


def described(package: str) -> list[str]:
    """What a package has under aiokafka's names: modules, functions, classes, methods, properties and fields."""
    lines = [f"aiokafka {name}" for name in importlib.import_module(package).__all__ if name != "install"]
    for module in MODULES:
        lines += _of_module(module, importlib.import_module(f"{package}.{module}"))
    return sorted(lines)


def _of_module(name: str, module: ModuleType) -> Iterator[str]:
    defined = [one for one, what in vars(module).items() if getattr(what, "__module__", "") == module.__name__]
    is_code = [one for one in defined if inspect.isclass(vars(module)[one]) or inspect.isfunction(vars(module)[one])]
    exported = {*getattr(module, "__all__", ()), *is_code}
    for one in exported:
        what = getattr(module, one)
        if (name == "errors" and inspect.isclass(what)) or one in LEFT_OUT or one.startswith("_"):
            continue
        if inspect.isfunction(what):
            yield f"{name} {one}{_signature(what)}"
        elif inspect.isclass(what):
            yield from _of_class(f"{name} {one}", what)
        else:
            yield f"{name} {one}"


def _of_class(name: str, cls: type[Any]) -> Iterator[str]:
    if hasattr(cls, "_fields"):
        yield f"{name} fields {', '.join(cls._fields)}"
        return
    if dataclasses.is_dataclass(cls):
        yield f"{name} fields {', '.join(field.name for field in dataclasses.fields(cls))}"
        return
    if issubclass(cls, enum.Enum):
        yield f"{name} values {', '.join(f'{one.name}={one.value}' for one in sorted(cls))}"  # type: ignore[type-var]
        return
    if inspect.isabstract(cls):
        yield f"{name} abstract {', '.join(sorted(cls.__abstractmethods__))}"
    for member, what in inspect.getmembers(cls):
        if member.startswith("_") and member not in PRIVATE_METHODS:
            continue
        if inspect.isfunction(what) or inspect.ismethod(what):
            yield f"{name}.{member}{_signature(what)}"
        elif isinstance(what, property):
            yield f"{name}.{member}"


def _signature(function: Any) -> str:
    given = inspect.signature(function)
    plain = (*map(type, (None, "", 0, 0.0, True)), type(inspect.Parameter.empty))
    bare = [
        one.replace(
            annotation=inspect.Parameter.empty,
            default=one.default if isinstance(one.default, plain) else _Any(),
        )
        for one in given.parameters.values()
    ]
    return str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def test_it_has_aiokafka_s_names_and_parameters() -> None:
    missing = set(NAMES.read_text().splitlines()) - set(described("aiokafkawire.aiokafka"))
    assert not sorted(missing)


@theirs_is_there
def test_the_list_of_names_is_aiokafka_s() -> None:
    if version("aiokafka") != RELEASE:
        pytest.skip(f"aiokafka {RELEASE} is not installed, another release is")
    assert NAMES.read_text().splitlines() == described("aiokafka")


@theirs_is_there
def test_the_exceptions_have_aiokafka_s_names_bases_codes_and_flags() -> None:
    theirs = importlib.import_module("aiokafka.errors")

    def described(module: Any) -> dict[str, Any]:
        return {
            name: (
                [base.__name__ for base in cls.__mro__],
                getattr(cls, "errno", None),
                getattr(cls, "message", None),
                getattr(cls, "retriable", None),
                getattr(cls, "invalid_metadata", None),
            )
            for name, cls in vars(module).items()
            if inspect.isclass(cls) and issubclass(cls, Exception)
        }

    assert described(errors) == described(theirs)
    assert {code: errors.for_code(code).__name__ for code in range(-1, 140)} == {
        code: theirs.for_code(code).__name__ for code in range(-1, 140)
    }
    assert {code: error.__name__ for code, error in errors.kafka_errors.items()} == {
        code: error.__name__ for code, error in theirs.kafka_errors.items()
    }
    assert str(errors.UnknownTopicOrPartitionError("t")) == str(theirs.UnknownTopicOrPartitionError("t"))
    assert str(errors.KafkaTimeoutError()) == str(theirs.KafkaTimeoutError())


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_every_broker_error_is_translated_by_its_code(code: ErrorCode) -> None:
    error = own.broker_error(code, "Produce to t-0")
    made = translated(error)
    assert isinstance(made, errors.KafkaError)
    assert made.__cause__ is error
    assert "Produce to t-0" in str(made)
    if isinstance(made, errors.BrokerResponseError):
        assert made.errno == code
        assert type(made) is errors.for_code(code)
    assert str(pickle.loads(pickle.dumps(made))).endswith(str(error))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (own.ConfigError("x"), ValueError),
        (own.TopicNotReady("x"), errors.UnknownTopicOrPartitionError),
        (own.RequestTimeout("x"), errors.KafkaTimeoutError),
        (own.BufferFull("x"), errors.KafkaTimeoutError),
        (own.NoBrokerReachable("x"), errors.KafkaConnectionError),
        (own.ConnectionLost("x"), errors.KafkaConnectionError),
        (own.RecordTooLarge("x"), errors.MessageSizeTooLargeError),
        (own.CommitFailed("x"), errors.CommitFailedError),
        (own.UsageError("x"), errors.IllegalStateError),
        (own.AuthenticationFailed("x"), errors.AuthenticationFailedError),
        (own.UnsupportedVersion("x"), errors.IncompatibleBrokerVersion),
        (own.CorruptBatch("x"), errors.CorruptRecordException),
        (own.DeliveryFailed([own.broker_error(10)], 1), errors.MessageSizeTooLargeError),
        (own.KafkaError("x"), errors.KafkaError),
        (own.broker_error(90), errors.ProducerFenced),
        (own.broker_error(47), errors.ProducerFenced),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else one.__name__,
)
def test_other_errors_are_translated_by_their_class(error: own.KafkaError, expected: type[Exception]) -> None:
    assert type(translated(error)) is expected
    with pytest.raises(expected), TRANSLATED:
        raise error


def test_an_error_of_the_user_stays_itself() -> None:
    cause = ZeroDivisionError("mine")
    aborted = own.TransactionAborted("the transaction was aborted")
    aborted.__cause__ = cause
    assert translated(aborted) is cause
    with pytest.raises(KeyError), TRANSLATED:
        raise KeyError("not of Kafka")


def test_installed_it_is_found_by_aiokafka_s_name() -> None:
    program = (
        "import aiokafkawire.aiokafka as ours\n"
        "ours.install(); ours.install()\n"
        "import aiokafka, aiokafka.errors\n"
        "from aiokafka.admin.client import AIOKafkaAdminClient\n"
        "from aiokafka.producer.producer import AIOKafkaProducer, _missing\n"
        "from aiokafka.structs import RecordMetadata\n"
        "assert aiokafka is ours and aiokafka.AIOKafkaProducer is AIOKafkaProducer is ours.AIOKafkaProducer\n"
        "assert AIOKafkaAdminClient.__module__ == 'aiokafkawire.aiokafka.admin.client'\n"
        "try:\n"
        "    import aiokafka.record\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("No module named 'aiokafka.record'\n", "")


@pytest.mark.parametrize(
    "name",
    [
        "coordinator.assignors.roundrobin.RoundRobinPartitionAssignor",
        "coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor",
        "coordinator.protocol.ConsumerProtocolMemberMetadata",
        "producer.producer.AIOKafkaProducer",
    ],
)
def test_a_dotted_name_is_found_after_an_import_of_the_package_alone(name: str) -> None:
    program = f"import aiokafkawire.aiokafka as aiokafka\nprint(aiokafka.{name}.__name__)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (name.rpartition(".")[2], "")


def test_it_does_not_replace_an_aiokafka_that_is_in_use() -> None:
    with pytest.raises(own.UsageError, match="imported already"):
        install()


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "aiokafka.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]

    async def main() -> None:
        async with asyncio.timeout(SOON), Broker() as broker:
            names: dict[str, Any] = {}
            exec(program.replace("localhost:9092", broker.bootstrap), names)
            await names["main"]()

    asyncio.run(main())
    assert capsys.readouterr().out == "0\nb'EWR' b'1'\n"


if __name__ == "__main__":
    NAMES.write_text("".join(f"{line}\n" for line in described("aiokafka")))
