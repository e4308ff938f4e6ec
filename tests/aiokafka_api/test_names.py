"""The names of aiokafka's API: its modules, exceptions, signatures, and install()."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.patience import SOON

from aiokafkawire import errors as own
from aiokafkawire.aiokafka import errors, install
from aiokafkawire.aiokafka.error_translation import TRANSLATED, translated
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.testing import Broker

pytest.importorskip("aiokafka.producer", reason="aiokafka is not installed")

CLASSES = {
    "admin.client": ["AIOKafkaAdminClient"],
    "admin.config_resource": ["ConfigResource"],
    "admin": ["NewPartitions", "NewTopic", "RecordsToDelete"],
    "client": ["AIOKafkaClient"],
    "producer.producer": ["AIOKafkaProducer", "TransactionContext"],
    "producer.message_accumulator": ["BatchBuilder"],
}


def both(module: str) -> tuple[Any, Any]:
    return importlib.import_module(f"aiokafkawire.aiokafka.{module}"), importlib.import_module(f"aiokafka.{module}")


def test_the_package_exports_what_aiokafka_exports() -> None:
    ours, theirs = importlib.import_module("aiokafkawire.aiokafka"), importlib.import_module("aiokafka")
    assert set(ours.__all__) - {"install"} == set(theirs.__all__)
    assert all(getattr(ours, name).__name__ == name for name in theirs.__all__)


@pytest.mark.parametrize("module", ["abc", "admin", "errors", "producer"])
def test_the_modules_export_what_aiokafka_s_export(module: str) -> None:
    ours, theirs = both(module)
    assert set(ours.__all__) >= set(theirs.__all__)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in CLASSES for name in CLASSES[module]])
def test_every_method_has_aiokafka_s_parameters(module: str, name: str) -> None:
    ours, theirs = (getattr(one, name) for one in both(module))
    for method, function in inspect.getmembers(theirs, inspect.isfunction):
        if method.startswith("_") and method not in ("__init__", "_partition"):
            continue
        expected = inspect.signature(function).parameters
        given = inspect.signature(getattr(ours, method)).parameters
        assert list(given) == list(expected), method
        kinds = {key: one.kind for key, one in expected.items()}
        assert {key: one.kind for key, one in given.items()} == kinds, method
        plain = {key: one.default for key, one in expected.items() if isinstance(one.default, int | str | None)}
        assert {key: given[key].default for key in plain} == plain, method


def test_the_exceptions_have_aiokafka_s_names_bases_codes_and_flags() -> None:
    theirs = importlib.import_module("aiokafka.errors")

    def described(module: Any) -> dict[str, Any]:
        return {
            name: (
                [base.__name__ for base in cls.__mro__],
                getattr(cls, "errno", None),
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
        "    import aiokafka.conn\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("No module named 'aiokafka.conn'\n", "")


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
