"""How brokers of every age are asked for topics, and that none is made by asking."""

from collections.abc import Sequence

import pytest
from support.clusters import partition, topic

from aiokafkawire.cluster.metadata_requests import (
    add_starting_broker,
    drop_unreliable_epochs,
    keep_only,
    metadata_variants,
)
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.compiler import encode
from aiokafkawire.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.types import Address


def answer(*topics: str, error: int = 0) -> MetadataResponse:
    found = [MetadataResponseTopic(error_code=error, name=name, partitions=[]) for name in topics]
    return MetadataResponse(brokers=[], topics=found)


def asked(topics: Sequence[str] | None, version: int, *, allow: bool) -> tuple[bytes, Versions]:
    """The question that a broker gets that speaks up to this version."""
    for request, wanted in metadata_variants(topics, allow_creation=allow):
        if wanted.first <= version:
            return encode(request, min(version, wanted.last)), wanted
    raise AssertionError("nothing to ask")


NONE, ALL, T = b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\1\0\1t"


@pytest.mark.parametrize(
    ("topics", "version", "allow", "question"),
    [
        (["t"], 4, False, T + b"\0"),
        (["t"], 3, False, ALL),
        (["t"], 0, False, NONE),
        ([], 1, False, ALL),
        (None, 3, False, ALL),
        (None, 0, False, NONE),
        (["t"], 4, True, T + b"\1"),
        (["t"], 1, True, T),
        ([], 1, True, NONE),
        (["t"], 0, True, T),
        ([], 0, True, NONE),
        (None, 0, True, NONE),
    ],
)
def test_an_old_broker_is_asked_for_all_where_it_would_make_what_is_named(
    topics: list[str] | None, version: int, allow: bool, question: bytes
) -> None:
    assert asked(topics, version, allow=allow)[0] == question


def test_what_was_not_wanted_is_left_out_and_what_is_not_there_is_said_to_be_unknown() -> None:
    _, form = asked(["b", "c"], 0, allow=False)
    response = answer("a", "b")
    keep_only(response, ["b", "c"], form)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(one.name, one.error_code) for one in response.topics] == [("b", 0), ("c", unknown)]


@pytest.mark.parametrize(("topics", "version"), [(None, 0), (["b"], 4)])
def test_what_was_asked_for_stays(topics: list[str] | None, version: int) -> None:
    response = answer("a")
    keep_only(response, topics, asked(topics, version, allow=False)[1])
    assert [one.name for one in response.topics] == ["a"]


def test_a_broker_that_is_starting_has_no_leaders_yet() -> None:
    response = answer("a", error=ErrorCode.UNKNOWN_SERVER_ERROR)
    add_starting_broker(response, Address("b", 1))
    assert response.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert [(one.node_id, one.host, one.port) for one in response.brokers] == [(-1, "b", 1)]


@pytest.mark.parametrize(("version", "epoch"), [(8, -1), (9, 5)])
def test_leader_epochs_of_brokers_before_2_4_do_not_count(version: int, epoch: int) -> None:
    response = MetadataResponse(brokers=[], topics=[topic("t", partition(0, epoch=5), partition(1, epoch=5))])
    drop_unreliable_epochs(response, version)
    assert [one.leader_epoch for one in response.topics[0].partitions] == [epoch, epoch]
