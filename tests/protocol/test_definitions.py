"""Every message is declared as Kafka defines it, and what differs is told by a precise line."""

from collections import Counter
from typing import Any
from uuid import UUID

import attrs
import pytest
from support.definitions import OURS, Definition, Field, read
from support.differences import absences, differences
from support.vectors import declared_messages

from aiokafkawire.protocol.api import ApiKey, request_header_version, response_header_version
from aiokafkawire.protocol.message_registry import FAMILIES, request_of
from aiokafkawire.protocol.primitives import ZERO_UUID, Int8, Int32
from aiokafkawire.protocol.schema import Message, Request, Response, Versions, field, message, nested

DECLARED = declared_messages()
KAFKA = read(OURS)
REQUESTS = {one.api_key: one for one in KAFKA.values() if one.kind == "request"}
FETCH, METADATA = KAFKA["FetchRequest"], KAFKA["MetadataRequest"]
V = Versions.parse


@pytest.mark.parametrize("name", KAFKA)
def test_a_message_is_declared_as_kafka_defines_it(name: str) -> None:
    assert differences(DECLARED, {name: KAFKA[name]}) == []


def test_nothing_else_is_declared_and_requests_have_their_responses() -> None:
    assert differences(DECLARED, KAFKA) == []
    assert absences(DECLARED, KAFKA) == []
    assert len(KAFKA) == 2 * len(REQUESTS) + 2 + sum(one.kind == "data" for one in KAFKA.values())


def test_every_api_is_declared_exactly_once_and_has_a_family() -> None:
    for kind in (Request, Response):
        found = Counter(cls.api_key for cls in DECLARED.values() if issubclass(cls, kind))
        assert found == Counter(REQUESTS.keys())
    assert set(FAMILIES) == set(ApiKey) == REQUESTS.keys()


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_a_request_is_found_by_its_key(key: ApiKey) -> None:
    found = request_of(key)
    assert found is DECLARED[REQUESTS[key].name]
    assert found.__module__ == f"aiokafkawire.protocol.messages.{FAMILIES[key]}"


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_headers_are_those_of_kafka(key: ApiKey) -> None:
    kafka, request = REQUESTS[key], request_of(key)
    versions = range(kafka.versions.last + 1)
    assert tuple(request_header_version(request, one) for one in versions) == kafka.request_headers
    assert tuple(response_header_version(request, one) for one in versions) == kafka.response_headers


def altered(definition: Definition, path: str, **to: Any) -> Definition:
    """The definition with one field changed."""
    return attrs.evolve(definition, fields=_altered(definition.fields, path.split("."), to))


def _altered(fields: tuple[Field, ...], path: list[str], to: dict[str, Any]) -> tuple[Field, ...]:
    assert path[0] in [one.name for one in fields]
    return tuple(_altered_field(one, path[1:], to) if one.name == path[0] else one for one in fields)


def _altered_field(one: Field, rest: list[str], to: dict[str, Any]) -> Field:
    return attrs.evolve(one, **({"fields": _altered(one.fields, rest, to)} if rest else to))


@pytest.mark.parametrize(
    ("path", "to", "told"),
    [
        (
            "Topics.Partitions.HighWatermark",
            {"versions": V("17+"), "tagged": V("17+")},
            "topics[].partitions[].high_watermark: declared 18+, Kafka has 17+",
        ),
        ("ReplicaId", {"versions": V("0-13")}, "replica_id: declared 0-14, Kafka has 0-13"),
        ("ReplicaId", {"name": "NodeId"}, "node_id: not declared: int32, 0-14, default -1"),
        ("ReplicaId", {"type": "int64"}, "replica_id: declared type int32, Kafka has int64"),
        (
            "ForgottenTopicsData.Partitions",
            {"type": "[]int64"},
            "forgotten_topics_data[].partitions: declared type []int32, Kafka has []int64",
        ),
        ("Topics", {"type": "FetchTopic"}, "topics: declared type []FetchTopic, Kafka has FetchTopic"),
        ("Topics", {"type": "[]Other"}, None),
        ("Topics", {"type": "[]int8", "fields": ()}, "topics: declared type []FetchTopic, Kafka has []int8"),
        ("RackId", {"nullable": V("12+")}, "rack_id: declared nullable none, Kafka has 12+"),
        ("ClusterId", {"nullable": V("13+")}, "cluster_id: declared nullable 12+, Kafka has 13+"),
        ("ClusterId", {"tag": 3}, "cluster_id: declared tag 0, Kafka has 3"),
        ("ClusterId", {"tag": None, "tagged": V("none")}, "cluster_id: declared tag 0, Kafka has none"),
        ("ClusterId", {"tagged": V("14+")}, "cluster_id: declared tag 0, Kafka has 0 in 14-18 alone"),
        ("RackId", {"tagged": V("11+"), "tag": 2}, "rack_id: declared tag none, Kafka has 2"),
        ("MaxBytes", {"ignorable": False}, "max_bytes: declared ignorable True, Kafka has False"),
        ("ReplicaId", {"ignorable": True}, "replica_id: declared ignorable False, Kafka has True"),
        ("RackId", {"flexible": V("none")}, "rack_id: declared flexible where its message is, Kafka has none"),
        ("ReplicaId", {"default": "-2"}, "replica_id: declared default -1, Kafka has -2"),
        ("ReplicaId", {"default": None}, "replica_id: declared default -1, Kafka has 0"),
        ("MaxBytes", {"default": "0x7ffffffe"}, "max_bytes: declared default 2147483647, Kafka has 2147483646"),
        ("MaxBytes", {"default": 2147483647}, None),
        ("MaxWaitMs", {"default": "0"}, None),
        ("MaxWaitMs", {"default": "500"}, "max_wait_ms: declared default 0, Kafka has 500"),
        ("ClusterId", {"default": ""}, 'cluster_id: declared default null, Kafka has ""'),
        ("RackId", {"default": "null"}, 'rack_id: declared default "", Kafka has null'),
        ("ForgottenTopicsData", {"default": "null"}, "forgotten_topics_data: declared default [], Kafka has null"),
        ("ReplicaState", {"default": "null"}, "replica_state: declared default {}, Kafka has null"),
        (
            "Topics.TopicId",
            {"default": "AAAAAAAAAAAAAAAAAAAAAQ"},
            f"topics[].topic_id: declared default {ZERO_UUID}, Kafka has {UUID(int=1)}",
        ),
    ],
)
def test_one_thing_changed_in_a_field_is_one_line(path: str, to: dict[str, Any], told: str | None) -> None:
    found = differences(DECLARED, {"FetchRequest": altered(FETCH, path, **to)})
    if to.get("name"):  # what is renamed is also what is missed
        assert found.pop() == "FetchRequest.replica_id: not in Kafka: declared int32, 0-14"
    assert found == ([] if told is None else [f"FetchRequest.{told}"])


def test_what_no_version_of_the_struct_around_it_has_is_no_field() -> None:
    (forgotten,) = (one for one in FETCH.fields if one.name == "ForgottenTopicsData")
    fields = (*forgotten.fields, Field("Never", "int8", V("0-6")))
    assert differences(DECLARED, {"FetchRequest": altered(FETCH, "ForgottenTopicsData", fields=fields)}) == []


def test_a_flag_whose_default_changed() -> None:
    changed = altered(METADATA, "AllowAutoTopicCreation", default="false")
    told = "MetadataRequest.allow_auto_topic_creation: declared default true, Kafka has false"
    assert differences(DECLARED, {"MetadataRequest": changed}) == [told]


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ({"flexible": V("11+")}, ": declared flexible 12+, Kafka has 11+"),
        ({"api_key": 99}, ": declared API key 1, Kafka has 99"),
        ({"kind": "data"}, ": declared kind request, Kafka has message"),
        ({"unstable": True}, ": declared unstable none, Kafka has 18"),
        ({"request_headers": (1, 2)}, ": version 1: declared request header 1, Kafka has 2"),
        ({"response_headers": (1,)}, ": version 0: declared response header 0, Kafka has 1"),
        ({"versions": V("0-19")}, ": version 19 is new in Kafka: the same fields"),
        ({"versions": V("0-19"), "unstable": True}, ": version 19 is new in Kafka, unstable: the same fields"),
        ({"versions": V("4-17")}, None),
        ({"versions": V("4-17"), "request_headers": (9, 9, 9, 9, 1), "response_headers": (9, 9, 9, 9, 0)}, None),
        ({"versions": V("4-17"), "unstable": True}, ": declared unstable none, Kafka has 17"),
        (
            {"fields": (*FETCH.fields[:3], FETCH.fields[4], FETCH.fields[3], *FETCH.fields[5:])},
            ": declared in the order max_wait_ms, min_bytes, Kafka has min_bytes, max_wait_ms",
        ),
        ({"fields": FETCH.fields[1:]}, ".cluster_id: not in Kafka: declared string, 12+"),
    ],
)
def test_one_thing_changed_in_a_message_is_one_line(to: dict[str, Any], told: str | None) -> None:
    found = differences(DECLARED, {"FetchRequest": attrs.evolve(FETCH, **to)})
    assert found == ([] if told is None else [f"FetchRequest{told}"])


def test_a_new_version_tells_what_it_adds_drops_and_lets_be_null() -> None:
    host = Field("Host", "string", V("0+"))
    extra = Field("NearestBroker", "[]Broker", V("19+"), nullable=V("19+"), tagged=V("19+"), tag=2, fields=(host,))
    changed = altered(FETCH, "Topics.Partitions.LogStartOffset", versions=V("5-18"))
    changed = altered(changed, "RackId", nullable=V("19+"))
    changed = attrs.evolve(changed, versions=V("0-20"), fields=(*changed.fields, extra))
    told = "adds nearest_broker, drops topics[].partitions[].log_start_offset, rack_id may be null"
    assert differences(DECLARED, {"FetchRequest": changed}) == [
        f"FetchRequest: version 19 is new in Kafka: {told}",
        "FetchRequest: version 20 is new in Kafka: the same fields",
        "FetchRequest.nearest_broker: new in Kafka: []Broker, 19+, nullable 19+, tag 2, default []",
        'FetchRequest.nearest_broker[].host: new in Kafka: string, 0+, default ""',
    ]


def test_an_api_that_nobody_declares() -> None:
    new = {"NewThingRequest": attrs.evolve(FETCH, name="NewThingRequest", api_key=95)}
    assert differences(DECLARED, new) == ["NewThingRequest (API key 95): not declared"]
    assert differences({}, {"EndTxnMarker": KAFKA["EndTxnMarker"]}) == ["EndTxnMarker: not declared"]


def test_the_response_is_the_one_of_the_same_api() -> None:
    other = attrs.evolve(KAFKA["FetchResponse"], name="OtherResponse")
    assert differences(DECLARED, {"FetchRequest": FETCH, "OtherResponse": other}) == [
        "FetchRequest: declared response FetchResponse, Kafka has OtherResponse",
        "OtherResponse (API key 1): not declared",
    ]


def test_what_a_release_has_no_more_is_not_a_difference_and_is_told_apart() -> None:
    # As 4.x has it: fields of lost versions are gone, ranges begin where they did or later, a word is no longer needed.
    release = attrs.evolve(altered(FETCH, "MaxBytes", versions=V("4+"), ignorable=False), versions=V("4-17"))
    response = attrs.evolve(KAFKA["FetchResponse"], versions=V("4-17"))
    declared = {name: DECLARED[name] for name in ("FetchRequest", "FetchResponse", "LeaderAndIsrRequest", "AbortedTxn")}
    definitions = {"FetchRequest": release, "FetchResponse": response}
    assert differences(DECLARED, definitions) == []
    assert absences(declared, definitions) == ["AbortedTxn", "Fetch 0-3 and 18", "LeaderAndIsrRequest"]
    definitions["FetchResponse"] = attrs.evolve(response, versions=V("4-18"))
    told = ["AbortedTxn", "FetchRequest 0-3 and 18", "FetchResponse 0-3", "LeaderAndIsrRequest"]
    assert absences(declared, definitions) == told
    fields = tuple(one for one in FETCH.fields if one.name != "ReplicaId")
    assert differences(DECLARED, {"FetchRequest": attrs.evolve(FETCH, versions=V("15-18"), fields=fields)}) == []


def test_an_old_version_that_is_not_declared_is_not_new() -> None:
    @message(versions="1")
    class Tiny(Message):
        """As little as can be declared."""

        rack: Int8 = field("1+")

    kafka = Definition("Tiny", "data", V("0-1"), V("none"), (Field("Rack", "int8", V("0+")),))
    assert differences({"Tiny": Tiny}, {"Tiny": kafka}) == ["Tiny: version 0 is not declared: adds rack"]
    assert differences({"Tiny": Tiny}, {"Tiny": attrs.evolve(kafka, versions=V("1"))}) == []


def test_fields_that_never_meet_may_stand_in_any_order() -> None:
    @message(versions="0-1")
    class Tiny(Message):
        """A field per version."""

        late: Int8 = field("1+", default=0)
        early: Int8 = field("0", default=0)

    fields = (Field("Early", "int8", V("0")), Field("Late", "int8", V("1+")))
    kafka = Definition("Tiny", "data", V("0-1"), V("none"), fields)
    assert differences({"Tiny": Tiny}, {"Tiny": kafka}) == []


def test_a_default_struct_must_have_kafkas_defaults_in_it() -> None:
    @nested
    class Where:
        """A place."""

        node: Int32 = field("0+", default=-1)

    @message(versions="0")
    class Tiny(Message):
        """A place that is not Kafka's."""

        where: Where = field("0+", default=lambda: Where(node=5))

    inside = (Field("Node", "int32", V("0+"), default="-1"),)
    kafka = Definition("Tiny", "data", V("0"), V("none"), (Field("Where", "Where", V("0+"), fields=inside),))
    assert differences({"Tiny": Tiny}, {"Tiny": kafka}) == ["Tiny.where: declared default {node: 5}, Kafka has {}"]
