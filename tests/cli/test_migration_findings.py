"""What is found in sources that use other Kafka clients, and what the drop-in changes in them."""

from __future__ import annotations

import importlib
from textwrap import dedent

import pytest
from support.rows import every_row

from aiokafkawire.cli.migrate.advice import Severity
from aiokafkawire.cli.migrate.aiokafka_names import DROP_IN_MODULES
from aiokafkawire.cli.migrate.analysis import find_dependencies, find_uses, may_use
from aiokafkawire.cli.migrate.libraries import LIBRARIES, advice_for, argument_advice, setting_advice
from aiokafkawire.cli.migrate.parsing import UnreadableSource
from aiokafkawire.cli.migrate.rewriting import with_drop_in

UNKNOWN = "no setting here has this name: leave it out, or see 'Settings' of the documentation"


def uses(source: str) -> list[str]:
    """The names of the findings, each with its line; imports left out."""
    text = dedent(source)
    lines = text.splitlines()
    return [
        f"{found.line} {found.name}" for found in find_uses(text.encode()) if "import " not in lines[found.line - 1]
    ]


@pytest.mark.parametrize(
    ("line", "name", "severity"),
    [
        ("from aiokafka import AIOKafkaProducer as P", "aiokafka.AIOKafkaProducer", "drop-in"),
        ("import aiokafka as ak", "aiokafka", "drop-in"),
        ("from aiokafka.errors import KafkaConnectionError", "aiokafka.errors.KafkaConnectionError", "drop-in"),
        ("from aiokafka.structs import TopicPartition", "aiokafka.structs.TopicPartition", "drop-in"),
        ("from aiokafka.admin import NewTopic", "aiokafka.admin.NewTopic", "drop-in"),
        ("from aiokafka.protocol.admin import X", "aiokafka.protocol.admin.X", "look"),
        ("from aiokafka.cluster import ClusterMetadata", "aiokafka.cluster.ClusterMetadata", "drop-in"),
        ("from aiokafka.client import create_conn", "aiokafka.client.create_conn", "look"),
        ("from aiokafka import __version__", "aiokafka.__version__", "look"),
        ("from aiokafka.consumer.fetcher import Fetcher", "aiokafka.consumer.fetcher.Fetcher", "look"),
        ("from aiokafka.producer.producer import _missing", "aiokafka.producer.producer._missing", "look"),
        ("from aiokafka.util import create_task", "aiokafka.util.create_task", "drop-in"),
        ("from aiokafka import util", "aiokafka.util", "drop-in"),
        ("from aiokafka.conn import AbstractTokenProvider", "aiokafka.conn.AbstractTokenProvider", "drop-in"),
        ("from aiokafka.conn import create_conn", "aiokafka.conn.create_conn", "no-counterpart"),
        ("from aiokafka import *", "aiokafka.*", "look"),
        ("import confluent_kafka.admin", "confluent_kafka.admin", "look"),
        ("from confluent_kafka import libversion", "confluent_kafka.libversion", "no-counterpart"),
        ("from kafka.errors import KafkaTimeoutError", "kafka.errors.KafkaTimeoutError", "look"),
        ("from kafka import SimpleClient", "kafka.SimpleClient", "no-counterpart"),
        ("from kafka.nonsense import what", "kafka.nonsense.what", "look"),
    ],
)
def test_an_import_is_found_with_its_severity(line: str, name: str, severity: str) -> None:
    assert may_use(line.encode())
    (found,) = find_uses(line.encode())
    assert (found.name, found.severity.value, found.line) == (name, severity, 1)
    assert found.advice


@pytest.mark.parametrize(
    "line", ["from .kafka import X", "from app.kafka import X", "import app.kafka", "kafka = 1", "x.kafka.y"]
)
def test_other_names_are_left_alone(line: str) -> None:
    assert find_uses(line.encode()) == []
    assert not may_use(line.encode())


def test_objects_are_followed_through_aliases_assignments_and_annotations() -> None:
    assert uses(
        """
        import confluent_kafka as ck
        from confluent_kafka import Consumer as C, Producer

        producer = Producer({})
        producer.poll(0)

        def make() -> C:
            return C({})

        class Service:
            consumer: C

            def __init__(self, given: "ck.Producer | None"):
                self.producer = given
                self.again = producer

            def run(self, other: C):
                self.producer.flush()
                self.again.flush()
                self.consumer.subscribe(["t"])
                other.close()
                with_it = make()
                with_it.commit()
                if message := other.poll(1):
                    message.value()
                for each in other.consume(5):
                    each.error().code()
                return [one.key() for one in other.consume(2)]

        def elsewhere(producer):
            return producer.poll(0)
        """
    ) == [
        "6 confluent_kafka.Producer.poll",
        "19 confluent_kafka.Producer.flush",
        "20 confluent_kafka.Producer.flush",
        "21 confluent_kafka.Consumer.subscribe",
        "22 confluent_kafka.Consumer.close",
        "24 confluent_kafka.Consumer.commit",
        "25 confluent_kafka.Consumer.poll",
        "26 confluent_kafka.Message.value",
        "27 confluent_kafka.Consumer.consume",
        "28 confluent_kafka.Message.error",
        "28 confluent_kafka.KafkaError.code",
        "29 confluent_kafka.Message.key",
        "29 confluent_kafka.Consumer.consume",
    ]


def test_objects_are_followed_through_what_is_assigned_later_in_the_module() -> None:
    assert uses(
        """
        from kafka import KafkaConsumer

        class Service:
            def start(self):
                self.again = self.consumer

            def run(self):
                self.again.poll()

            def __init__(self):
                self.consumer = KafkaConsumer()
        """
    ) == ["9 kafka.KafkaConsumer.poll"]


def test_with_and_await_and_conditions_are_followed() -> None:
    assert uses(
        """
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
        from kafka import KafkaProducer

        async def main(flag):
            async with AIOKafkaProducer() as producer:
                await producer.send("t", b"v")
                producer._sender
            chosen = KafkaProducer() if flag else None
            chosen.send("t", b"v").get(timeout=5)
            app.state.consumer = AIOKafkaConsumer("t")
            app.state.consumer._coordinator
        """
    ) == [
        "8 aiokafka.AIOKafkaProducer._sender",
        "10 kafka.KafkaProducer.send",
        "10 kafka.FutureRecordMetadata.get",
        "12 aiokafka.AIOKafkaConsumer._coordinator",
    ]


def test_a_class_that_derives_from_one_is_found_but_not_its_own_members() -> None:
    assert uses(
        """
        from kafka import KafkaConsumer

        class Mine(KafkaConsumer):
            def _own(self):
                self._set = 1
                self._own()
                self._set
                self._coordinator
                self.poll()
        """
    ) == ["4 kafka.KafkaConsumer", "9 kafka.KafkaConsumer._coordinator", "10 kafka.KafkaConsumer.poll"]


def test_arguments_without_a_setting_here_are_found() -> None:
    source = """
    from kafka import KafkaProducer

    KafkaProducer(bootstrap_servers="a", client_id="b", acks=1, value_serializer=str, api_version=(2, 0), selector=None)
    """
    assert uses(source) == ["4 kafka.KafkaProducer(api_version)", "4 kafka.KafkaProducer(selector)"]


@pytest.mark.parametrize(
    ("owner", "argument", "ours"),
    [
        ("KafkaConsumer", "ssl_cafile", "ssl_ca_location of Client"),
        ("KafkaAdminClient", "socks5_proxy", "proxy of Client: 'socks5://host:port' or 'http://host:port'"),
        ("KafkaConsumer", "default_offset_commit_callback", "interceptors= of consumer(), with on_commit()"),
        ("KafkaProducer", "nonsense", UNKNOWN),
    ],
)
def test_an_argument_has_the_advice_of_the_error_for_an_unknown_setting(owner: str, argument: str, ours: str) -> None:
    advice = argument_advice(LIBRARIES["kafka"], owner, argument)
    assert advice is not None
    assert advice.ours == ours


def test_settings_that_are_refused_are_found_in_dicts_and_assignments() -> None:
    assert uses(
        """
        from confluent_kafka import Producer

        config = {"bootstrap.servers": "a", "linger.ms": 5, "error_cb": print, "enable.auto.offset.store": False}
        config["stats_cb"] = print
        config["enable.partition.eof"] = "false"
        config["acks"] = "1"
        other = {"error_cb": None, "dr_cb": print}
        fine = {"bootstrap.servers": "a", "error_cb": None, "enable.auto.offset.store": True}
        """
    ) == [
        "4 confluent_kafka['error_cb']",
        "4 confluent_kafka['enable.auto.offset.store']",
        "5 confluent_kafka['stats_cb']",
    ]
    assert setting_advice("enable.auto.offset.store", None) is not None


def test_a_name_in_a_text_is_found() -> None:
    (found,) = find_uses(b'patch("aiokafka.AIOKafkaProducer.start")')
    assert found.severity is Severity.LOOK
    assert "aiokafkawire.aiokafka.AIOKafkaProducer.start" in found.advice
    assert find_uses(b'("kafka.topic", "aiokafka", "kafka.nonsense", "a kafka.KafkaProducer")') == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import importlib; importlib.import_module('aiokafka')", "aiokafka"),
        ("from importlib import import_module as load; load(name='aiokafka')", "aiokafka"),
        ("from importlib import import_module as load; load('aiokafka.errors')", "aiokafka.errors"),
        ("import importlib; importlib.import_module('aiokafka.nonsense')", "aiokafka.nonsense"),
        ("__import__('aiokafka')", "aiokafka"),
        ("__import__('confluent_kafka')", "confluent_kafka"),
        ("import importlib.util; importlib.util.find_spec('kafka')", "kafka"),
        ("import pytest; pytest.importorskip('aiokafka', reason='it is needed')", "aiokafka"),
        ("import logging; logging.getLogger('aiokafka').setLevel(30)", "logging.getLogger('aiokafka')"),
        ("from logging import getLogger; getLogger('aiokafka.cluster')", "logging.getLogger('aiokafka.cluster')"),
        ("dictConfig({'loggers': {**own, 'aiokafka': {'level': 'INFO'}}})", "loggers['aiokafka']"),
    ],
)
def test_modules_and_loggers_that_a_literal_names_are_found_once(line: str, name: str) -> None:
    assert may_use(line.encode())
    (found,) = find_uses(line.encode())
    assert (found.name, found.severity) == (name, Severity.LOOK)
    assert find_uses(line.encode(), ("aiokafka", "kafka", "confluent_kafka")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import importlib; importlib.import_module(name)",
        "import importlib; importlib.import_module('json')",
        "import importlib; importlib.import_module(*['aiokafka'])",
        "def load(name): ...\nload('aiokafka')",
        "import logging; logging.getLogger('kafka')",
        "import logging; logging.getLogger('aiokafkawire')",
        "import logging; logging.getLogger()",
        "{'loggers': ['aiokafka'], 'others': {'aiokafka': 1}}",
    ],
)
def test_other_calls_with_literals_are_left_alone(line: str) -> None:
    assert find_uses(line.encode()) == []


def test_the_text_of_a_module_says_what_it_is_with_the_drop_in_and_that_of_a_logger_does_not() -> None:
    (module,) = find_uses(b"__import__('aiokafka.errors')")
    assert module.advice.endswith("with the drop-in it is `aiokafkawire.aiokafka.errors`")
    (logger,) = find_uses(b"import logging; logging.getLogger('aiokafka.errors')")
    assert "named `aiokafkawire`," in logger.advice


def test_a_name_of_the_drop_in_has_the_differences_of_the_clients_own_api_apart() -> None:
    (found,) = find_uses(b"from aiokafka import AIOKafkaProducer")
    assert (found.advice, found.differs) == ("import it from `aiokafkawire.aiokafka`, which does the same", "")
    assert found.own_api.startswith("`Client(servers).producer()`; ")
    assert "`acks` is all by default" in found.own_api
    (look,) = find_uses(b"from kafka import KafkaProducer")
    assert look.own_api == ""


def test_connections_have_no_counterpart() -> None:
    (found,) = find_uses(b"from aiokafka.conn import AIOKafkaConnection")
    assert found.severity is Severity.NO_COUNTERPART
    assert found.advice == "connections are internal; `health()` and `metrics()` describe them"


def test_of_a_package_of_the_code_base_only_known_names_are_found() -> None:
    source = b"from kafka import KafkaProducer, settings\nfrom kafka.admin import mine\nimport kafka\nkafka.start()\n"
    assert [found.name for found in find_uses(source, ("kafka",))] == ["kafka.KafkaProducer"]
    assert len(find_uses(source)) == 5


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('dependencies = ["aiokafka[lz4]>=0.8", "confluent_kafka", "kafka-python-ng==2"]', 3),
        ("Kafka-Python", 1),
        ("opentelemetry-instrumentation-kafka-python", 0),
        ("aiokafka-helpers", 0),
        ('module = "aiokafka.*"', 0),
        ("git+https://example.org/aio-libs/aiokafka", 0),
        ("# aiokafka", 0),
    ],
)
def test_dependencies_are_found(line: str, names: int) -> None:
    assert len(find_dependencies(f"\n{line}\n")) == names
    assert all(found.line == 2 for found in find_dependencies(f"\n{line}\n"))


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=lambda library: library.distribution)
def test_every_name_of_the_table_has_its_advice(library) -> None:  # type: ignore[no-untyped-def]
    for name in library.names:
        advice = advice_for(library, library.name if name == library.name else f"{library.name}.{name}")
        assert advice is not None
        assert advice.ours


@every_row("module", list(DROP_IN_MODULES))
def test_the_drop_in_has_the_names_that_imports_change_to(module: str) -> None:
    pytest.importorskip("aiokafkawire.aiokafka", reason="the drop-in is not in this package")
    theirs, ours = importlib.import_module(module), importlib.import_module(f"aiokafkawire.{module}")
    public = [
        name
        for name, value in vars(theirs).items()
        if name[0] != "_" and str(getattr(value, "__module__", "")).startswith("aiokafka")
    ]
    names = DROP_IN_MODULES[module]
    assert names is None or set(names) <= set(public)
    assert [name for name in (public if names is None else names) if not hasattr(ours, name)] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from aiokafka import AIOKafkaProducer\n", "from aiokafkawire.aiokafka import AIOKafkaProducer\n"),
        (
            "from aiokafka.errors import (  # why\r\n    KafkaError as E,\r\n)\r\n",
            "from aiokafkawire.aiokafka.errors import (  # why\r\n    KafkaError as E,\r\n)\r\n",
        ),
        ("import aiokafka; aiokafka.abc", "import aiokafkawire.aiokafka as aiokafka; aiokafka.abc"),
        ("import os, aiokafka as ak\n", "import os, aiokafkawire.aiokafka as ak\n"),
        ("import aiokafka.errors as e\n", "import aiokafkawire.aiokafka.errors as e\n"),
        (
            "if x:\n\tfrom aiokafka.structs import TopicPartition",
            "if x:\n\tfrom aiokafkawire.aiokafka.structs import TopicPartition",
        ),
        ("import aiokafka\nimport aiokafka.errors\n", "import aiokafka\nimport aiokafka.errors\n"),
        (
            "import aiokafka\nfrom aiokafka.codec import has_gzip\n",
            "import aiokafkawire.aiokafka as aiokafka\nfrom aiokafka.codec import has_gzip\n",
        ),
        ("import aiokafka as ak\nak.codec.has_gzip()\n", "import aiokafka as ak\nak.codec.has_gzip()\n"),
        (
            "import aiokafka as ak\nak.errors.KafkaError.errno\nak.AIOKafkaProducer.send.x\nak.abc",
            "import aiokafkawire.aiokafka as ak\nak.errors.KafkaError.errno\nak.AIOKafkaProducer.send.x\nak.abc",
        ),
        ("from aiokafka import *\n", "from aiokafka import *\n"),
        ("from aiokafka.protocol.admin import X\n", "from aiokafka.protocol.admin import X\n"),
        ("from aiokafka import errors\n", "from aiokafkawire.aiokafka import errors\n"),
        ("from aiokafka import KafkaProducer\n", "from aiokafka import KafkaProducer\n"),
        ("from aiokafka import AIOKafkaProducer, _private\n", "from aiokafka import AIOKafkaProducer, _private\n"),
        ("from .aiokafka import AIOKafkaProducer\n", "from .aiokafka import AIOKafkaProducer\n"),
        ("from kafka import KafkaProducer\nimport aiokafkas\n", "from kafka import KafkaProducer\nimport aiokafkas\n"),
        ("x = 'aiokafka'  # aiokafka\n", "x = 'aiokafka'  # aiokafka\n"),
    ],
)
def test_imports_that_are_certain_change_and_nothing_else(before: str, after: str) -> None:
    assert with_drop_in(before.encode()).decode() == after
    assert with_drop_in(after.encode()).decode() == after


@pytest.mark.parametrize("end", [b"", b"\r", b"\n\n\n   ", b"\n\x0c\n\t\n", b"  # why\\\n", b"\n\n# why\r\n \r\n  "])
def test_the_end_of_a_file_stays(end: bytes) -> None:
    assert with_drop_in(b"import aiokafka" + end) == b"import aiokafkawire.aiokafka as aiokafka" + end
    assert with_drop_in(b"x = 'aiokafka'" + end) == b"x = 'aiokafka'" + end


def test_the_encoding_of_a_file_stays() -> None:
    before = "# coding: latin-1\nimport aiokafka  # für\n".encode("latin-1")
    assert with_drop_in(before) == before.replace(b"import aiokafka ", b"import aiokafkawire.aiokafka as aiokafka ")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"import kafka\nx = (", "line 2: '(' was never closed"),
        (b"x = " + b"(" * 5000 + b")" * 5000, "line 1: too many nested parentheses"),
        (b"x = " + b"lambda: " * 20_000 + b"1", "it is nested too deeply"),
        (b"import kafka\0", "source code string cannot contain null bytes"),
        (b"# coding: nonsense\nimport kafka", "unknown encoding: nonsense"),
    ],
)
def test_what_is_no_python_is_an_error_that_says_where(source: bytes, message: str) -> None:
    for function in (find_uses, with_drop_in):
        with pytest.raises(UnreadableSource) as caught:
            function(source)
        assert str(caught.value) == message


def test_warnings_about_a_source_are_not_those_of_the_command() -> None:
    assert len(find_uses(b"import kafka\nx = '\\d'\n")) == 1
