"""The line about an error: its name once, and what the broker says, without Kafka's own objects."""

import pytest

from aiokafkawire import TopicPartition
from aiokafkawire.admin.response_errors import error_of
from aiokafkawire.cli.error_text import error_text, reason_text, resource_text
from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.errors import ConnectionLost, KafkaError, NoBrokerReachable

REQUEST = (
    "Request Request(processor=1, connectionId=127.0.0.1:9092-127.0.0.1:5-0, session=Session(User:eve,/127.0.0.1), "
    "listenerName=ListenerName(SASL), securityProtocol=SASL_PLAINTEXT, buffer=null, envelope=None) is not authorized."
)


@pytest.mark.parametrize(
    ("code", "message", "line"),
    [
        (
            ErrorCode.TOPIC_ALREADY_EXISTS,
            "Topic 'orders' already exists.",
            "TopicAlreadyExists: creating a topic: Topic 'orders' already exists",
        ),
        (
            ErrorCode.GROUP_ID_NOT_FOUND,
            None,
            "GroupIdNotFound: creating a topic: There is no group of this id; it may have expired",
        ),
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            REQUEST,
            "ClusterAuthorizationFailed: creating a topic: the request is not authorized",
        ),
        (
            ErrorCode.INVALID_REQUEST,
            "bad RequestHeader(apiKey=3, clientId=me, x(y)) here\nand there",
            "InvalidRequest: creating a topic: bad the request here and there",
        ),
        (999, "odd", "UnknownBrokerError: error code 999, unknown to this release: creating a topic: odd"),
    ],
)
def test_what_the_broker_says_is_one_sentence(code: int, message: str | None, line: str) -> None:
    error = error_of(code, "creating a topic", message)
    assert error is not None
    assert error.broker_message == message
    assert error_text(error) == line


def test_the_reason_of_a_refused_connection_is_in_words() -> None:
    refused = "cannot connect to h:1: [Errno 111] Connect call failed ('127.0.0.1', 1)"
    assert error_text(ConnectionLost(refused)) == "ConnectionLost: cannot connect to h:1: connection refused"
    several = NoBrokerReachable(f"no broker reachable within 1 s: h:1: {refused}; g:1: cannot connect to g:1: no name")
    assert error_text(several) == (
        "NoBrokerReachable: no broker reachable within 1 s: cannot connect to h:1: connection refused; "
        "cannot connect to g:1: no name"
    )


def test_other_errors_stay_as_they_are() -> None:
    assert error_text(KafkaError("two\n lines.")) == "KafkaError: two lines"
    assert reason_text("f(x) of orders-0") == "f(x) of orders-0"


def test_a_partition_is_named_as_on_the_command_line() -> None:
    assert (resource_text(TopicPartition("a-1", 0)), resource_text("group g")) == ("a-1:0", "group g")


def test_a_host_without_an_address_is_said_without_a_number() -> None:
    said = "cannot connect to nowhere:1: [Errno -2] Name or service not known"
    assert reason_text(said) == "cannot connect to nowhere:1: Name or service not known"
