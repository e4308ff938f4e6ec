"""Every method of the public API, and for each of its arguments what cannot be one."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

import anyio
import pyarrow as pa

from aiokafkawire import (
    AbortTransactionSpec,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Client,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaMatchType,
    ConfigOp,
    ConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    FeatureUpdate,
    GroupMetadata,
    IsolationLevel,
    KafkaPrincipal,
    NewPartitions,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    PatternType,
    RaftVoterEndpoint,
    ResourcePattern,
    ResourceType,
    RetryTopic,
    ScramCredentialInfo,
    ScramMechanism,
    TopicPartition,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from aiokafkawire.asgi import KafkaLifespan
from aiokafkawire.claim_check import ClaimCheckDeserializer, ClaimCheckSerializer, FsspecStore
from aiokafkawire.metrics import Metric
from aiokafkawire.prometheus import KafkaCollector
from aiokafkawire.protocol.messages.metadata import MetadataRequest

from .patience import SOON

TP = TopicPartition("t", 0)
MOST = 2**63 - 1


class Hands(NamedTuple):
    """What a call may use: an open client, and what it has made."""

    client: Any
    producer: Any
    transaction: Any
    consumer: Any
    """Has the partition assigned, and a group's id."""
    member: Any
    """Has a group's id, and nothing assigned."""
    share: Any
    """Is a member of a share group."""

    @property
    def admin(self) -> Any:
        return self.client.admin


class Case(NamedTuple):
    """A call with a hole in it, and what does not fit into the hole."""

    name: str
    call: Callable[[Hands, Any], Any]
    wrong: list[Any]


HOLE = object()


def filled(face: str, method: str, *given: Any, **named: Any) -> Callable[[Hands, Any], Any]:
    """Return a call of a method, with what is wrong in the place of HOLE."""

    def call(hands: Hands, wrong: Any) -> Any:
        arguments = [wrong if one is HOLE else one for one in given]
        return getattr(getattr(hands, face), method)(
            *arguments, **{name: wrong if one is HOLE else one for name, one in named.items()}
        )

    return call


class Strange:
    """Nothing that anybody expects."""

    def __repr__(self) -> str:
        return "<strange>"


# Without their types, as those who have no type checker see them.
_offset: Any = OffsetAndMetadata
_spec: Any = OffsetSpec
_group: Any = GroupMetadata
_topic: Any = NewTopic
_partitions: Any = NewPartitions
_resource: Any = ConfigResource
_op: Any = ConfigOp
_update: Any = FeatureUpdate
_endpoint: Any = RaftVoterEndpoint
_deletion: Any = UserScramCredentialDeletion
_upsertion: Any = UserScramCredentialUpsertion
_info: Any = ScramCredentialInfo
_quota_filter: Any = ClientQuotaFilter
_component: Any = ClientQuotaFilterComponent
_principal: Any = KafkaPrincipal
_acl: Any = AclBinding
_pattern: Any = ResourcePattern
_filter: Any = AclBindingFilter

SURROGATE = "\ud800"
NO_TEXT: list[Any] = [5, b"t", ["t", 5], Strange(), True, 1.5]
NO_NAME: list[Any] = [None, *NO_TEXT, "", "a/b", SURROGATE, ["t"]]
NO_GROUP: list[Any] = [None, *NO_TEXT, "", SURROGATE, "x" * 40_000]
NO_SECONDS: list[Any] = ["1", b"1", math.nan, -1, -0.5, -math.inf, True, [1], Strange(), 1j]
NO_FLAG: list[Any] = [None, 0, 1, "true", [], Strange()]
NO_PARTITION: list[Any] = [
    None,
    5,
    "t",
    "t-0",
    b"t",
    ("t",),
    ("t", "0"),
    ("t", -1),
    ("t", 2**31),
    ("t", True),
    ("t", 0, 0),
]
NO_PARTITION += [
    (5, 0),
    (None, 0),
    ("", 0),
    Strange(),
    {"t": 0},
]
NO_PARTITIONS: list[Any] = [
    None,
    5,
    "t",
    b"t",
    TP,
    1.5,
    Strange(),
    *([one] for one in NO_PARTITION if type(one) is not dict),
]
NO_OFFSET: list[Any] = [
    "5",
    1.5,
    -1,
    2**63,
    True,
    b"5",
    (5, "note"),
    Strange(),
    _offset(-1),
    _offset("5"),
]
NO_OFFSET += [
    _offset(2**63),
    _offset(5, None),
    _offset(5, SURROGATE),
    _offset(5, "x" * 40_000),
    _offset(5, leader_epoch=2**31),
    _offset(5, leader_epoch="1"),
]
NO_OFFSETS: list[Any] = [5, "t", [TP], TP, Strange(), {"t": 5}, {("t", 2**31): 5}, {("t", "0"): 5}, {TP: None}]
NO_OFFSETS += [{TP: one} for one in NO_OFFSET]
NO_SPEC: list[Any] = [None, "latest", -1, 1.5, 1_700_000_000_000, Strange(), _spec("x"), _spec(2**63)]
NO_SPECS: list[Any] = [None, 5, "t", [TP], TP, Strange(), {"t": OffsetSpec.LATEST}, *({TP: one} for one in NO_SPEC)]
NO_START: list[Any] = ["latest", "5", 1.5, -1, 2**63, True, b"5", Strange(), _spec("x"), _spec(2**63)]
NO_RESOURCE: list[Any] = [
    None,
    5,
    b"t",
    TP,
    Strange(),
    _resource(2, "t"),
    _resource("topic", "t"),
    _resource(ConfigResourceType.TOPIC, ""),
    _resource(ConfigResourceType.TOPIC, None),
    _resource(ConfigResourceType.GROUP, SURROGATE),
    _resource(ConfigResourceType.BROKER, "first"),
    _resource(ConfigResourceType.BROKER, 1),
    _resource(ConfigResourceType.BROKER_LOGGER, ""),
]
NO_RESOURCES: list[Any] = ["t", *NO_RESOURCE, ["t"], *([one] for one in NO_RESOURCE)]
NO_CONFIG: list[Any] = [
    5,
    b"secret",
    True,
    ["compact"],
    Strange(),
    SURROGATE,
    _op(0, "x"),
    _op(ConfigOpType.DELETE, "x"),
    _op(ConfigOpType.SET),
    _op.append(5),
    _op.subtract(SURROGATE),
]
NO_CHANGES: list[Any] = ["t", *NO_RESOURCE, [ConfigResource.topic("t")]]
NO_CHANGES += [{one: {"retention.ms": "1"}} for one in NO_RESOURCE]
NO_CHANGES += [{ConfigResource.topic("t"): one} for one in (None, 5, "retention.ms=1", ["retention.ms"])]
NO_CHANGES += [{ConfigResource.topic("t"): {one: "1"}} for one in (None, 5, "", SURROGATE)]
NO_CHANGES += [{ConfigResource.topic("t"): {"retention.ms": one}} for one in NO_CONFIG]
ORDERS = ResourcePattern.topic("t")
NO_ACL: list[Any] = [
    None,
    5,
    b"t",
    "t",
    TP,
    Strange(),
    ORDERS,
    AclBindingFilter(),
    _acl("t", "User:a", AclOperation.READ),
    _acl(ORDERS, "a", AclOperation.READ),
    _acl(ORDERS, None, AclOperation.READ),
    _acl(ORDERS, "", AclOperation.READ),
    _acl(ORDERS, f"User:{SURROGATE}", AclOperation.READ),
    _acl(ORDERS, "User:a", 3),
    _acl(ORDERS, "User:a", "READ"),
    _acl(ORDERS, "User:a", AclOperation.ANY),
    _acl(ORDERS, "User:a", AclOperation.UNKNOWN),
    _acl(ORDERS, "User:a", AclOperation.READ, AclPermissionType.ANY),
    _acl(ORDERS, "User:a", AclOperation.READ, True),
    _acl(ORDERS, "User:a", AclOperation.READ, host=""),
    _acl(ORDERS, "User:a", AclOperation.READ, host=None),
    *(
        _acl(one, "User:a", AclOperation.READ)
        for one in (
            _pattern("topic", "t"),
            _pattern(ResourceType.ANY, "t"),
            _pattern(ResourceType.TOPIC, ""),
            _pattern(ResourceType.TOPIC, None),
            _pattern(ResourceType.TOPIC, "t", PatternType.MATCH),
            _pattern(ResourceType.TOPIC, "t", 3),
        )
    ),
]
NO_FILTER: list[Any] = [
    5,
    b"t",
    "User:a",
    TP,
    Strange(),
    ORDERS,
    _filter(resource_type=2),
    _filter(resource_type=ResourceType.UNKNOWN),
    _filter(resource_name=""),
    _filter(resource_name=5),
    _filter(pattern_type="any"),
    _filter(principal="alice"),
    _filter(principal=5),
    _filter(host=""),
    _filter(host=SURROGATE),
    _filter(operation=None),
    _filter(operation=AclOperation.UNKNOWN),
    _filter(permission_type="ALLOW"),
]
NO_FUNCTION: list[Any] = [5, "f", b"f", [], Strange()]
NO_BYTES: list[Any] = [5, 1.5, "text", ["x"], {"a": 1}, True, Strange()]
NO_HEADERS: list[Any] = [
    5,
    0,
    False,
    "",
    "ab",
    b"ab",
    1.5,
    [("a",)],
    [("a", b"", 1)],
    [("a", "b")],
    [(1, b"")],
    [None],
    ["ab"],
    {"a": "b"},
    {1: b""},
    {SURROGATE: b""},
    [(SURROGATE, b"")],
    [(b"a", b"")],
    Strange(),
]
NO_INDEX: list[Any] = ["0", 1.5, -1, 7, 2**31, 2**80, True, b"0", [0], Strange()]
NO_TIME: list[Any] = ["now", 1.5, -1, 2**63, True, Strange()]
NO_TOPICS: list[Any] = [
    None,
    5,
    b"t",
    TP,
    Strange(),
    {"t": 1},
    [5],
    [None],
    [["t"]],
    ["a/b"],
    [SURROGATE],
    ["t", "t b"],
]
NO_NEW_TOPICS: list[Any] = [
    None,
    5,
    "a",
    b"a",
    ["a"],
    Strange(),
    [5],
    [("a", 3)],
    [_topic()],
    [_topic("a"), _topic("a")],
] + [{"a": one} for one in (None, "3", 1.5, 0, -2, 2**31, True, [3], {"num_partitions": 3}, Strange())]
NO_NEW_TOPICS += [{name: 1} for name in (5, None, b"a", "a/b", "")]
NO_NEW_TOPICS += [
    {"a": _topic(1, 0)},
    {"a": _topic(1, 2**15)},
    {"a": _topic(1, "1")},
    {"a": _topic("b", 1)},
    {"a": _topic(1, 1, [("a", "b")])},
    {"a": _topic(1, 1, {"retention.ms": 5})},
    {"a": _topic(1, 1, {5: "5"})},
    {"a": _topic(1, 1, {SURROGATE: "5"})},
    [_topic("a/b")],
    [_topic("a", "3")],
]
NO_NAMES: list[Any] = [5, "Stable", b"x", Strange(), [5], [None], [SURROGATE], [""]]
NO_BROKER_ID: list[Any] = ["1", 1.5, -1, True, [1], Strange()]
NO_GROUP_IDS: list[Any] = [None, *NO_TEXT, "", SURROGATE, [5], [""], {"g": 1}]
NO_CONSUMED: list[Any] = [None, 5, "t", [TP], TP, Strange(), {"t": 5}, *({TP: one} for one in NO_OFFSET)]
NO_META: list[Any] = [5, "", b"g", Strange(), _group(5), _group("g", "1"), _group("g", -2)]
NO_META += [
    _group("g", 1, None),
    _group("g", 1, "m", 5),
]


_SHA_256 = ScramMechanism.SCRAM_SHA_256
NO_ALTERATIONS: list[Any] = [
    None,
    5,
    "alice",
    Strange(),
    {"alice": "secret"},
    _deletion("alice", _SHA_256),
    *(
        [one]
        for one in (
            None,
            "alice",
            Strange(),
            _deletion("", _SHA_256),
            _deletion(None, _SHA_256),
            _deletion(SURROGATE, _SHA_256),
            _deletion("alice", 1),
            _deletion("alice", ScramMechanism.UNKNOWN),
            _upsertion("", _info(_SHA_256), "p"),
            _upsertion("alice", _SHA_256, "p"),
            _upsertion("alice", _info("SCRAM-SHA-256"), "p"),
            *(_upsertion("alice", _info(_SHA_256, count), "p") for count in (None, 0, 4095, 16385, 4096.0, True)),
            *(_upsertion("alice", _info(_SHA_256), password) for password in (None, 5, "", b"", SURROGATE)),
            *(_upsertion("alice", _info(_SHA_256), "p", salt) for salt in ("salt", b"", 5)),
        )
    ),
]
NO_QUOTAS: list[Any] = [
    None,
    5,
    "u",
    [ClientQuotaEntity.user("u")],
    Strange(),
    {"u": {}},
    {None: {}},
    {ClientQuotaEntity({}): {}},
    *({ClientQuotaEntity.user("u"): one} for one in (None, 5, [("a", 1.0)], {5: 1.0}, {"": 1.0}, {SURROGATE: 1.0})),
    *({ClientQuotaEntity.user("u"): {"q": one}} for one in ("1", math.nan, math.inf, True, 10**400, [1.0], Strange())),
]
NO_FILTERS: list[Any] = [
    5,
    "u",
    [],
    Strange(),
    {"user": "u"},
    _quota_filter(5),
    _quota_filter("user"),
    _quota_filter((), strict=1),
]
NO_FILTERS += [
    _quota_filter((one,))
    for one in (
        None,
        "user",
        _component("", ClientQuotaMatchType.ANY),
        _component(5, ClientQuotaMatchType.ANY),
        _component("user", 2),
        _component("user", ClientQuotaMatchType.EXACT),
        _component("user", ClientQuotaMatchType.EXACT, 5),
        _component("user", ClientQuotaMatchType.ANY, "u"),
    )
]


def _sending(face: str, method: str) -> Iterator[Case]:
    name = f"{face}.{method}"
    yield Case(f"{name}(topic)", filled(face, method, HOLE, b""), NO_NAME)
    yield Case(f"{name}(value)", filled(face, method, "t", HOLE), NO_BYTES)
    yield Case(f"{name}(key)", filled(face, method, "t", b"", key=HOLE), NO_BYTES)
    yield Case(f"{name}(partition)", filled(face, method, "t", b"", partition=HOLE), NO_INDEX)
    yield Case(f"{name}(timestamp_ms)", filled(face, method, "t", b"", timestamp_ms=HOLE), NO_TIME)
    yield Case(f"{name}(headers)", filled(face, method, "t", b"", headers=HOLE), NO_HEADERS)


def _sending_many(face: str, method: str) -> Iterator[Case]:
    name = f"{face}.{method}"
    no_column = [None, 5, b"ab", "ab", bytearray(b"ab"), {"a": b""}, Strange(), *([one] for one in NO_BYTES)]
    yield Case(f"{name}(topic)", filled(face, method, HOLE, [b""]), NO_NAME)
    yield Case(f"{name}(values)", filled(face, method, "t", HOLE), no_column)
    yield Case(f"{name}(keys)", filled(face, method, "t", [b""], keys=HOLE), no_column[1:])
    yield Case(f"{name}(partition)", filled(face, method, "t", [b""], partition=HOLE), NO_INDEX)
    yield Case(f"{name}(timestamp_ms)", filled(face, method, "t", [b""], timestamp_ms=HOLE), NO_TIME)
    yield Case(f"{name}(headers)", filled(face, method, "t", [b""], headers=HOLE), NO_HEADERS)


def _producers() -> Iterator[Case]:
    for face in ("producer", "transaction"):
        for method in ("send", "enqueue", "send_nowait"):
            yield from _sending(face, method)
        yield from _sending_many(face, "send_many")
    yield from _sending_many("producer", "enqueue_many")
    yield Case("producer.partitions_for(topic)", filled("producer", "partitions_for", HOLE), NO_NAME)
    yield Case(
        "transaction.commit_offsets(offsets)", filled("transaction", "commit_offsets", HOLE, group="g"), NO_CONSUMED
    )
    yield Case(
        "transaction.commit_offsets(group)",
        filled("transaction", "commit_offsets", {TP: 5}, group=HOLE),
        [None, *NO_META],
    )


def _client() -> Iterator[Case]:
    made = "x:1"
    yield Case("Client(servers)", lambda _, one: Client(one), [None, 5, b"x:1", [5], "", [], ":", "x:y", Strange()])
    yield Case("Client(connector)", lambda _, one: Client(made, connector=one), [None, *NO_FUNCTION])
    yield Case("Client(runtime)", lambda _, one: Client(made, runtime=one), [*NO_FUNCTION])
    yield Case("Client(observers)", lambda _, one: Client(made, observers=one), [None, 5, "x", b"x", [5], [Strange()]])
    yield Case("KafkaCollector(clients)", lambda _, one: KafkaCollector(one), [None, 5, "x:1", Strange()])
    yield Case(
        "KafkaCollector(prefix)", lambda _, one: KafkaCollector(prefix=one), [None, 5, "", "a b", b"x", Strange()]
    )
    yield Case("KafkaCollector(without)", lambda _, one: KafkaCollector(without=one), [None, 5, "topic", ["x"], [5]])
    for name in ("key_serializer", "value_serializer"):
        yield Case(
            f"client.producer({name})",
            filled("client", "producer", **{name: HOLE}),
            NO_FUNCTION,
        )
    for name in ("key_deserializer", "value_deserializer"):
        yield Case(
            f"client.consumer({name})",
            filled("client", "consumer", **{name: HOLE}),
            NO_FUNCTION,
        )
    chain: list[Any] = [None, 5, "x", b"x", [5], [Strange()]]
    yield Case("client.producer(interceptors)", filled("client", "producer", interceptors=HOLE), chain)
    yield Case("client.consumer(interceptors)", filled("client", "consumer", interceptors=HOLE), chain)
    yield Case("client.producer(identity)", lambda hands, one: hands.client.producer(identity=one), NO_FUNCTION)
    yield Case(
        "client.consumer(assignors)",
        lambda hands, one: hands.client.consumer("t", group_id="g", assignors=one),
        [None, 5, "range", ["range"], [5], Strange()],
    )
    yield Case("client.consumer(topics)", lambda hands, one: hands.client.consumer(one), [*NO_NAME[:-1], *NO_TOPICS])
    for name in ("key_deserializer", "value_deserializer"):
        yield Case(
            f"client.share_consumer({name})",
            filled("client", "share_consumer", "t", group_id="g", **{name: HOLE}),
            NO_FUNCTION,
        )
    yield Case(
        "client.share_consumer(topics)",
        lambda hands, one: hands.client.share_consumer(one, group_id="s"),
        [*NO_NAME[:-1], *NO_TOPICS],
    )
    yield Case(
        "client.share_consumer(group_id)",
        lambda hands, one: hands.client.share_consumer("t", group_id=one),
        NO_GROUP[:-1],
    )
    yield Case("client.consumer(topics, more)", lambda hands, one: hands.client.consumer("t", one), NO_NAME)


def _services() -> Iterator[Case]:
    def make() -> Client:
        return Client("b:1")

    lifespan: Any = KafkaLifespan
    yield Case("KafkaLifespan(make_client)", lambda _, one: lifespan(one), [None, *NO_FUNCTION, make()])
    yield Case("KafkaLifespan(make_producer)", lambda _, one: lifespan(make, one), [None, *NO_FUNCTION])
    yield Case("KafkaLifespan(on_failure)", lambda _, one: lifespan(make, on_failure=one), NO_FUNCTION)
    yield Case("KafkaLifespan(shutdown_timeout)", lambda _, one: lifespan(make, shutdown_timeout=one), [None, 1j])
    yield Case("KafkaLifespan.worker", lambda _, one: lifespan(make).worker(one), [None, *NO_FUNCTION, print, Client])


def _claim_check() -> Iterator[Case]:
    store: Any = FsspecStore("memory://wrong-arguments")

    def making(given: Any, name: str) -> Callable[[Hands, Any], Any]:
        return lambda _, wrong: given(**{"store": store, name: wrong})

    limits: dict[str, list[Any]] = {"concurrency": [None, 0, "1", 1.5], "timeout": [None, *NO_SECONDS]}
    of_serializers = {"serializer": NO_FUNCTION, "threshold": [None, *NO_INDEX[:3]], "expires_after": NO_SECONDS}
    of_deserializers = {"deserializer": NO_FUNCTION, "max_size": [None, 0, *NO_INDEX[:3]]}
    for check, own in ((ClaimCheckSerializer, of_serializers), (ClaimCheckDeserializer, of_deserializers)):
        for name, wrong in {"store": [None, *NO_FUNCTION, FsspecStore], **own, **limits}.items():
            yield Case(f"{check.__name__}({name})", making(check, name), wrong)
    url: Any = FsspecStore
    yield Case("FsspecStore(url)", lambda _, one: url(one), [None, 5, "", b"memory://", SURROGATE, "no://x"])


def _share() -> Iterator[Case]:
    yield Case(
        "share.poll(max_records)", filled("share", "poll", HOLE), [None, 0, -1, "5", 1.5, True, 2**31, Strange()]
    )
    for name in ("poll", "commit", "close", "unsubscribe"):
        seconds = [None, *NO_SECONDS] if name in ("close", "unsubscribe") else NO_SECONDS
        yield Case(f"share.{name}(timeout)", filled("share", name, timeout=HOLE), seconds)
    yield Case("share.subscribe(topics)", filled("share", "subscribe", HOLE), [*NO_NAME[:-1], [], *NO_TOPICS])
    yield Case("share.acknowledge(record)", filled("share", "acknowledge", HOLE), [None, 5, b"t", TP, [], Strange()])
    yield Case("share.acknowledge(kind)", filled("share", "acknowledge", TP, HOLE), [None, 1, "ACCEPT", Strange()])


def _transform() -> Iterator[Case]:
    async def call(hands: Hands, **changed: Any) -> Any:
        given: dict[str, Any] = {
            "source": "t",
            "process": lambda _: [],
            "group_id": "g",
            "transactional_id": "x",
            "until_end": True,
        }
        given |= changed
        with anyio.fail_after(SOON):
            await hands.client.transform(given.pop("source"), given.pop("process"), **given)

    wrong: dict[str, list[Any]] = {
        "source": [None, 5, b"t", [], "", Strange(), [5], ["a/b"], TP],
        "process": [None, *NO_FUNCTION],
        "group_id": [5, b"g", "", SURROGATE, Strange()],
        "transactional_id": [5, b"x", "", SURROGATE, Strange()],
        "max_records": [None, 0, -1, "5", 1.5, True, Strange()],
        "commit_interval_ms": [None, 0, -1, "5", 1.5, True, Strange()],
        "auto_offset_reset": [None, 5, "first", Strange()],
        "stop": [5, "stop", Strange(), threading.Event()],
        "until_end": NO_FLAG,
        "consumer_options": [5, "x", [1], Strange(), {"group_id": "g"}, {5: 5}],
        "producer_options": [5, "x", [1], Strange(), {"transactional_id": "g"}, {5: 5}],
    }
    for name, values in wrong.items():

        def transform(hands: Hands, one: Any, name: str = name) -> Any:
            return call(hands, **{name: one})

        yield Case(f"client.transform({name})", transform, values)


def _yield_one(record: object) -> Iterator[object]:
    yield record


async def _yield_later(record: object) -> AsyncIterator[object]:
    yield record


class _YieldingOne:
    def __call__(self, record: object) -> Iterator[object]:
        yield record


class _YieldingLater:
    async def __call__(self, record: object) -> AsyncIterator[object]:
        yield record


def _process() -> Iterator[Case]:
    async def call(hands: Hands, **changed: Any) -> Any:
        given: dict[str, Any] = {"topics": "t", "handle": lambda _: None, "group_id": "g", "drain_timeout": 0} | changed
        given.setdefault("stop", anyio.Event())
        if isinstance(given["stop"], anyio.Event):
            given["stop"].set()
        with anyio.fail_after(5):
            await hands.client.process(given.pop("topics"), given.pop("handle"), **given)

    wrong: dict[str, list[Any]] = {
        "topics": [None, 5, b"t", [], "", Strange(), [5], ["a/b"], TP],
        "handle": [None, *NO_FUNCTION, _yield_one, _yield_later, _YieldingOne(), _YieldingLater()],
        "group_id": [5, b"g", "", SURROGATE, Strange()],
        "concurrency": [None, 0, -1, "5", 1.5, True, Strange()],
        "ordering": [None, 5, "keys", Strange()],
        "max_batch": [0, -1, "5", 1.5, True, Strange()],
        "retry": [5, "retry", Strange()],
        "retry_topics": [5, "t.retry", [5], ["t.retry"], [RetryTopic("t", 5)], RetryTopic("r", 5), Strange()],
        "dead_letter_topic": [5, b"t", "", "a/b", "t", Strange()],
        "share": NO_FLAG,
        "handler_timeout": ["5", -1, Strange()],
        "max_in_hand": [0, -1, "5", 1.5, True, Strange()],
        "commit_interval_ms": [None, 0, -1, "5", 1.5, True, Strange()],
        "stop": [5, "stop", Strange(), threading.Event()],
        "drain_timeout": [None, "5", -1, Strange()],
        "handle_signals": NO_FLAG,
        "on_progress": NO_FUNCTION,
        "key_deserializer": NO_FUNCTION,
        "value_deserializer": NO_FUNCTION,
        "producer_options": [5, "x", [1], Strange(), {5: 5}],
        "enable_auto_commit": [True, False],
    }
    for name, values in wrong.items():

        def process(hands: Hands, one: Any, name: str = name) -> Any:
            return call(hands, **{name: one})

        yield Case(f"client.process({name})", process, values)


def _bounded_reads() -> Iterator[Case]:
    for method in ("read_records", "read_batches", "read_table"):
        yield Case(f"client.{method}(topic)", filled("client", method, HOLE), NO_NAME)
        for bound in ("start", "end"):
            wrong = NO_START if bound == "end" else [None, *NO_START]
            yield Case(f"client.{method}({bound})", filled("client", method, "t", **{bound: HOLE}), wrong)
    for name in ("key_deserializer", "value_deserializer"):
        yield Case(f"client.read_records({name})", filled("client", "read_records", "t", **{name: HOLE}), NO_FUNCTION)
    columns = [5, "nothing", ["nothing"], [5], Strange()]
    for method in ("read_batches", "read_table"):
        yield Case(f"client.{method}(columns)", filled("client", method, "t", columns=HOLE), columns)
        typed = {"value_format": "json", "value_type": pa.schema({"delay": pa.int8()})}
        for name in ("value_format", "value_type"):
            wrong = [None, 5, "avro", b"json", [], Strange()]
            yield Case(f"client.{method}({name})", filled("client", method, "t", **{**typed, name: HOLE}), wrong)
        call = filled("client", method, "t", value_type=pa.int8(), value_deserializer=HOLE)
        yield Case(f"client.{method}(value_deserializer)", call, [None, *NO_FUNCTION])
    yield Case("client.read_table(progress)", filled("client", "read_table", "t", progress=HOLE), NO_FLAG)


def _tables() -> Iterator[Case]:
    table = pa.table({"id": ["a"], "payload": [b"x"]})
    yield Case("client.write_table(topic)", filled("client", "write_table", HOLE, table, value="payload"), NO_NAME)
    no_table: list[Any] = [None, 5, "t", b"t", [], {"payload": [b"x"]}, Strange()]
    yield Case("client.write_table(table)", filled("client", "write_table", "t", HOLE, value="payload"), no_table)
    no_column = [5, b"id", "", "none", ["id"], Strange()]
    for name in ("key", "partition", "timestamp", "headers"):
        call = filled("client", "write_table", "t", table, value="payload", **{name: HOLE})
        yield Case(f"client.write_table({name})", call, no_column)
    yield Case("client.write_table(value)", filled("client", "write_table", "t", table, value=HOLE), [None, *no_column])
    no_format = [None, 5, "avro", b"json", Strange()]
    yield Case(
        "client.write_table(value_format)", filled("client", "write_table", "t", table, value_format=HOLE), no_format
    )
    call = filled("client", "write_table", "t", table, value="payload", progress=HOLE)
    yield Case("client.write_table(progress)", call, NO_FLAG)


def _metrics_push() -> Iterator[Case]:
    for face in ("client", "producer", "consumer", "share", "admin"):
        if face != "admin":
            yield Case(
                f"{face}.client_instance_id(timeout)", filled(face, "client_instance_id", timeout=HOLE), NO_SECONDS
            )
        for method in ("register_metric_for_subscription", "unregister_metric_from_subscription"):
            wrong = [None, 5, "name", Metric("a", {}, 1.0, group="b", kind="gauge", description=""), Strange()]
            yield Case(f"{face}.{method}(metric)", filled(face, method, HOLE), wrong)


def _consumer() -> Iterator[Case]:
    yield Case("consumer.check_ownership(since)", filled("consumer", "check_ownership", since=HOLE), NO_SECONDS)
    yield Case("consumer.owns(record)", filled("consumer", "owns", HOLE), [None, 5, b"t", TP, ("t", 0, 5), Strange()])
    yield Case("consumer.subscribe(topics)", lambda hands, one: hands.member.subscribe(one), NO_TOPICS)
    yield Case("consumer.subscribe(topics, more)", lambda hands, one: hands.member.subscribe("t", one), NO_NAME)
    yield Case(
        "consumer.subscribe(pattern)",
        lambda hands, one: hands.member.subscribe(pattern=one),
        [5, b"t", "(", "a{99999999999999}", ["t"], Strange()],
    )
    for name in ("on_assigned", "on_revoked", "on_lost"):
        yield Case(
            f"consumer.subscribe({name})",
            filled("member", "subscribe", "t", **{name: HOLE}),
            NO_FUNCTION,
        )
    yield Case("consumer.assign(partitions)", lambda hands, one: hands.consumer.assign(one), NO_PARTITIONS)
    yield Case("consumer.assign({partition})", lambda hands, one: hands.consumer.assign({one: 5}), NO_PARTITION[:-2])
    yield Case("consumer.assign({: start})", lambda hands, one: hands.consumer.assign({TP: one}), NO_START)
    for name in ("seek", "position", "high_watermark"):
        more = (0,) if name == "seek" else ()
        yield Case(
            f"consumer.{name}(partition)",
            filled("consumer", name, HOLE, *more),
            [*NO_PARTITION, ("t", 1), ["t", 0, 0], [TP]],
        )
    yield Case("consumer.seek(to)", lambda hands, one: hands.consumer.seek(TP, one), [None, *NO_START])
    for name in ("pause", "resume"):
        yield Case(
            f"consumer.{name}(partitions)",
            filled("consumer", name, HOLE),
            [*NO_PARTITION[:-1], ("t", 1), [5], ["t"], [("t", 1)]],
        )
    yield Case(
        "consumer.poll(max_records)",
        lambda hands, one: hands.consumer.poll(one, timeout=0.1),
        [None, 0, -1, 1.0, 0.5, "5", True, Strange(), math.nan],
    )
    yield Case("producer.close(timeout)", filled("producer", "close", timeout=HOLE), NO_SECONDS)
    for name in ("poll", "unsubscribe", "close"):
        yield Case(
            f"consumer.{name}(timeout)",
            filled("consumer", name, timeout=HOLE),
            NO_SECONDS if name == "poll" else [None, *NO_SECONDS],
        )
    yield Case(
        "consumer.close(leave_group)",
        lambda hands, one: hands.consumer.close(leave_group=one),
        ["yes", 1, 0, Strange()],
    )
    yield Case(
        "consumer.enforce_rebalance(reason)", filled("consumer", "enforce_rebalance", HOLE), [None, 5, b"x", Strange()]
    )
    yield Case("consumer.partitions_for(topic)", filled("consumer", "partitions_for", HOLE), NO_NAME)
    for name, given in (("partitions_for", ("t",)), ("list_topics", ())):
        yield Case(f"consumer.{name}(timeout)", filled("consumer", name, *given, timeout=HOLE), NO_SECONDS)
    yield Case("consumer.offsets(specs)", lambda hands, one: hands.consumer.offsets(one), NO_SPECS)
    yield Case(
        "consumer.offsets(timeout)",
        lambda hands, one: hands.consumer.offsets({TP: OffsetSpec.LATEST}, timeout=one),
        NO_SECONDS,
    )
    yield Case("consumer.commit(offsets)", lambda hands, one: hands.consumer.commit(one), NO_OFFSETS)
    yield Case(
        "consumer.commit(retention_ms)",
        lambda hands, one: hands.consumer.commit({TP: 0}, retention_ms=one),
        ["5", 1.5, -1, 2**63, True, Strange()],
    )
    yield Case("consumer.commit(timeout)", lambda hands, one: hands.consumer.commit({TP: 0}, timeout=one), NO_SECONDS)
    yield Case("consumer.committed(partitions)", lambda hands, one: hands.consumer.committed(one), NO_PARTITIONS)
    yield Case(
        "consumer.committed(timeout)", lambda hands, one: hands.consumer.committed([TP], timeout=one), NO_SECONDS
    )


def _admin() -> Iterator[Case]:
    yield Case("admin.create_topics(topics)", lambda hands, one: hands.admin.create_topics(one), NO_NEW_TOPICS)
    yield Case(
        "admin.create_topics(validate_only)",
        lambda hands, one: hands.admin.create_topics({"a": 1}, validate_only=one),
        NO_FLAG,
    )
    yield Case(
        "admin.delete_topics(topics)",
        lambda hands, one: hands.admin.delete_topics(one),
        [None, 5, b"t", "", "a/b", TP, Strange(), [5], [None], [b"t"], ["a/b"], [["t"]]],
    )
    yield Case("admin.list_topics(internal)", lambda hands, one: hands.admin.list_topics(internal=one), NO_FLAG)
    yield Case("admin.describe_topic(name)", lambda hands, one: hands.admin.describe_topic(one), NO_NAME)
    yield Case("admin.list_offsets(specs)", lambda hands, one: hands.admin.list_offsets(one), NO_SPECS)
    for name in ("states", "types"):
        yield Case(
            f"admin.list_groups({name})",
            filled("admin", "list_groups", **{name: HOLE}),
            NO_NAMES,
        )
    describing: tuple[str, ...] = ("describe_groups", "describe_consumer_groups", "describe_classic_groups")
    describing += ("describe_share_groups", "describe_streams_groups")
    deleting = ("delete_groups", "delete_share_groups", "delete_streams_groups")
    for name in (*describing, *deleting, "list_offsets_of_groups", "list_offsets_of_share_groups"):
        yield Case(
            f"admin.{name}(group_ids)",
            filled("admin", name, HOLE),
            NO_GROUP_IDS,
        )
    for name in describing:
        yield Case(
            f"admin.{name}(include_authorized_operations)",
            filled("admin", name, "g", include_authorized_operations=HOLE),
            NO_FLAG,
        )
    for name in ("list_consumer_group_offsets", "list_streams_group_offsets", "list_offsets_of_groups"):
        yield Case(
            f"admin.{name}(require_stable)",
            filled("admin", name, "g", require_stable=HOLE),
            NO_FLAG,
        )
    yield Case(
        "admin.remove_members(members)",
        lambda hands, one: hands.admin.remove_members("g", one),
        [5, "m", Strange(), [5], [None], [SURROGATE], [""]],
    )
    yield Case(
        "admin.remove_members(reason)",
        lambda hands, one: hands.admin.remove_members("g", ["m"], reason=one),
        [5, b"x", SURROGATE, Strange()],
    )
    yield Case(
        "admin.list_consumer_group_offsets(partitions)",
        lambda hands, one: hands.admin.list_consumer_group_offsets("g", one),
        NO_PARTITIONS[1:],
    )
    yield Case(
        "admin.alter_consumer_group_offsets(offsets)",
        lambda hands, one: hands.admin.alter_consumer_group_offsets("g", one),
        [None, *NO_OFFSETS],
    )
    yield Case(
        "admin.reset_consumer_group_offsets(offsets)",
        lambda hands, one: hands.admin.reset_consumer_group_offsets("g", one),
        [None, 5, "t", [TP], {"t": 5}, *({TP: one} for one in [None, *NO_START])],
    )
    yield Case(
        "admin.delete_consumer_group_offsets(partitions)",
        lambda hands, one: hands.admin.delete_consumer_group_offsets("g", one),
        NO_PARTITIONS,
    )
    yield Case(
        "admin.consumer_group_lag(isolation_level)",
        lambda hands, one: hands.admin.consumer_group_lag("g", isolation_level=one),
        [None, 1, "read_committed", Strange()],
    )


NO_ID: list[Any] = [None, 5, b"t", "", "a/b", TP, Strange(), [5], [None], [b"t"], ["a/b"], [["t"]], UUID(int=0)]
NO_REPLICAS: list[Any] = [5, "1", b"1", Strange(), [], ["1"], [-1], [1, 1], [None], [True]]
NO_REPLICA: list[Any] = [
    None,
    5,
    "t",
    TP,
    ("t", 0),
    ("t", -1, 1),
    ("t", 0, "1"),
    ("t", 0, -1),
    ("a/b", 0, 1),
    Strange(),
]


def _admin_of_topics() -> Iterator[Case]:
    wrong_assignments = [5, "1", [], [1], [[]], [["1"]], [[1, 1]], [[-1]], Strange()]
    yield Case(
        "admin.create_topics({: assignments})",
        lambda hands, one: hands.admin.create_topics({"a": _topic(assignments=one)}),
        wrong_assignments,
    )
    yield Case("admin.describe_topics(topics)", lambda hands, one: hands.admin.describe_topics(one), NO_ID)
    yield Case(
        "admin.describe_topics(include_authorized_operations)",
        filled("admin", "describe_topics", "t", include_authorized_operations=HOLE),
        NO_FLAG,
    )
    yield Case(
        "admin.create_partitions(topics)",
        lambda hands, one: hands.admin.create_partitions(one),
        [None, 5, "t", ["t"], Strange(), {"a/b": 3}, {5: 3}, *({"t": one} for one in (None, "3", 0, -1, 1.5, True))],
    )
    yield Case(
        "admin.create_partitions({: assignments})",
        lambda hands, one: hands.admin.create_partitions({"t": _partitions(3, one)}),
        wrong_assignments,
    )
    yield Case(
        "admin.create_partitions(validate_only)",
        filled("admin", "create_partitions", {"t": 3}, validate_only=HOLE),
        NO_FLAG,
    )
    yield Case(
        "admin.delete_records(offsets)",
        lambda hands, one: hands.admin.delete_records(one),
        [
            None,
            5,
            "t",
            [TP],
            Strange(),
            {"t": 5},
            {("t", -1): 5},
            *({TP: one} for one in (None, "5", -2, 1.5, MOST + 1)),
        ],
    )
    yield Case(
        "admin.elect_leaders(election_type)",
        filled("admin", "elect_leaders", HOLE, [TP]),
        [None, 0, "preferred", True, Strange()],
    )
    for name, given in (("elect_leaders", (ElectionType.PREFERRED,)), ("list_partition_reassignments", ())):
        yield Case(f"admin.{name}(partitions)", filled("admin", name, *given, HOLE), NO_PARTITIONS[1:])
    yield Case(
        "admin.alter_partition_reassignments(reassignments)",
        lambda hands, one: hands.admin.alter_partition_reassignments(one),
        [None, 5, "t", [TP], Strange(), {"t": [1]}, *({TP: one} for one in NO_REPLICAS)],
    )
    yield Case(
        "admin.alter_partition_reassignments(allow_replication_factor_change)",
        filled("admin", "alter_partition_reassignments", {TP: [1]}, allow_replication_factor_change=HOLE),
        NO_FLAG,
    )
    yield Case(
        "admin.describe_log_dirs(brokers)",
        filled("admin", "describe_log_dirs", HOLE),
        ["1", b"1", -1, True, 1.5, ["1"], [None], [-1], 2**31, Strange()],
    )
    yield Case(
        "admin.describe_log_dirs(partitions)", filled("admin", "describe_log_dirs", partitions=HOLE), NO_PARTITIONS[1:]
    )
    yield Case(
        "admin.describe_replica_log_dirs(replicas)",
        lambda hands, one: hands.admin.describe_replica_log_dirs(one),
        [None, 5, "t", ("t", 0, 1), Strange(), *([one] for one in NO_REPLICA)],
    )
    yield Case(
        "admin.alter_replica_log_dirs(log_dirs)",
        lambda hands, one: hands.admin.alter_replica_log_dirs(one),
        [
            *(None, 5, "t", [("t", 0, 1)], Strange(), {TP: "/x"}, {("t", 0, "1"): "/x"}),
            *({("t", 0, 1): one} for one in (None, 5, b"/x", "", SURROGATE)),
        ],
    )


def _admin_of_share_groups() -> Iterator[Case]:
    yield Case(
        "admin.list_share_group_offsets(partitions)",
        lambda hands, one: hands.admin.list_share_group_offsets("g", one),
        NO_PARTITIONS[1:],
    )
    yield Case(
        "admin.alter_share_group_offsets(offsets)",
        lambda hands, one: hands.admin.alter_share_group_offsets("g", one),
        [None, *NO_OFFSETS, {TP: OffsetAndMetadata(5)}],
    )
    yield Case(
        "admin.delete_share_group_offsets(topics)",
        lambda hands, one: hands.admin.delete_share_group_offsets("g", one),
        [None, 5, b"t", "", "a/b", TP, Strange(), [5], [None], [b"t"], ["a/b"], [["t"]]],
    )


def _admin_of_streams_groups() -> Iterator[Case]:
    yield Case(
        "admin.list_streams_group_offsets(partitions)",
        lambda hands, one: hands.admin.list_streams_group_offsets("g", one),
        NO_PARTITIONS[1:],
    )
    yield Case(
        "admin.alter_streams_group_offsets(offsets)",
        lambda hands, one: hands.admin.alter_streams_group_offsets("g", one),
        [None, *NO_OFFSETS],
    )
    yield Case(
        "admin.delete_streams_group_offsets(partitions)",
        lambda hands, one: hands.admin.delete_streams_group_offsets("g", one),
        NO_PARTITIONS,
    )


def _admin_of_transactions() -> Iterator[Case]:
    yield Case(
        "admin.describe_producers(partitions)",
        lambda hands, one: hands.admin.describe_producers(one),
        [one for one in NO_PARTITIONS if one is not TP],
    )
    for name in ("describe_producers", "find_hanging_transactions"):
        given = (TP,) if name == "describe_producers" else ()
        yield Case(f"admin.{name}(broker_id)", filled("admin", name, *given, broker_id=HOLE), NO_BROKER_ID)
    for name in ("fence_producers", "describe_transactions"):
        yield Case(f"admin.{name}(transactional_ids)", filled("admin", name, HOLE), NO_GROUP_IDS)
    yield Case(
        "admin.force_terminate_transaction(transactional_id)",
        filled("admin", "force_terminate_transaction", HOLE),
        NO_GROUP,
    )
    yield Case("admin.list_transactions(states)", filled("admin", "list_transactions", states=HOLE), NO_NAMES)
    yield Case(
        "admin.list_transactions(producer_ids)",
        filled("admin", "list_transactions", producer_ids=HOLE),
        [5, "5", b"x", Strange(), ["5"], [None], [-1], [True], [2**63]],
    )
    yield Case(
        "admin.list_transactions(running_longer_than_ms)",
        filled("admin", "list_transactions", running_longer_than_ms=HOLE),
        ["5", 1.5, -1, True, 2**63, [5], Strange()],
    )
    yield Case(
        "admin.list_transactions(transactional_id_pattern)",
        filled("admin", "list_transactions", transactional_id_pattern=HOLE),
        [5, b"t.*", "", SURROGATE, Strange()],
    )
    yield Case(
        "admin.find_hanging_transactions(topics)",
        filled("admin", "find_hanging_transactions", HOLE),
        [5, b"t", "", "a/b", TP, Strange(), [5], [None], ["a/b"]],
    )
    yield Case(
        "admin.find_hanging_transactions(max_transaction_timeout_ms)",
        filled("admin", "find_hanging_transactions", max_transaction_timeout_ms=HOLE),
        [None, "5", 1.5, -1, True, 2**31],
    )
    yield Case(
        "admin.abort_transaction(transaction)",
        filled("admin", "abort_transaction", HOLE),
        [
            *[None, "t", TP, {"t": 5}, Strange(), AbortTransactionSpec("t", 1, 0)],  # type: ignore[arg-type]
            *[AbortTransactionSpec(TP, -1, 0), AbortTransactionSpec(TP, 1, 2**15), AbortTransactionSpec(TP, 1, 0, -1)],
        ],
    )


def _admin_of_configs() -> Iterator[Case]:
    yield Case(
        "admin.describe_configs(resources)",
        lambda hands, one: hands.admin.describe_configs(one),
        NO_RESOURCES,
    )
    for name in ("include_synonyms", "include_documentation"):
        yield Case(
            f"admin.describe_configs({name})",
            filled("admin", "describe_configs", ConfigResource.topic("t"), **{name: HOLE}),
            NO_FLAG,
        )
    yield Case(
        "admin.incremental_alter_configs(changes)",
        lambda hands, one: hands.admin.incremental_alter_configs(one),
        NO_CHANGES,
    )
    yield Case(
        "admin.incremental_alter_configs(validate_only)",
        filled("admin", "incremental_alter_configs", {ConfigResource.topic("t"): {}}, validate_only=HOLE),
        NO_FLAG,
    )


NO_VOTER: list[Any] = [None, "1", -1, 2**31, 1.5, True, Strange()]
NO_UUID: list[Any] = [None, 5, "x", b"x" * 16, str(UUID(int=1)), Strange()]
NO_ENDPOINTS: list[Any] = [None, 5, "CONTROLLER", [], [5], ["CONTROLLER://h:1"], Strange()]
NO_ENDPOINTS += [
    [_endpoint(5, "h", 1)],
    [_endpoint("", "h", 1)],
    [_endpoint("C", None, 1)],
    [_endpoint("C", SURROGATE, 1)],
    [_endpoint("C", "h", 0)],
    [_endpoint("C", "h", "1")],
    [_endpoint("C", "h", 2**16)],
]
NO_UPDATES: list[Any] = [None, 5, "metadata.version", [], {}, Strange(), {5: 1}, {"": 1}, {SURROGATE: 1}]
NO_UPDATES += [{"a": one} for one in (None, "1", -1, 0, 2**15, True, 1.5, Strange(), _update(0), _update("1"))]
NO_UPDATES += [{"a": _update(1, 1)}, {"a": _update(1, "UPGRADE")}, {"a": _update(1, None)}]


def _admin_of_the_cluster() -> Iterator[Case]:
    for name in ("include_authorized_operations", "include_fenced_brokers"):
        yield Case(f"admin.describe_cluster({name})", filled("admin", "describe_cluster", **{name: HOLE}), NO_FLAG)
    yield Case(
        "admin.api_versions(brokers)", filled("admin", "api_versions", HOLE), [5, "1", b"1", [None], ["1"], [-1]]
    )
    yield Case("admin.find_coordinators(keys)", filled("admin", "find_coordinators", HOLE), NO_GROUP_IDS)
    yield Case(
        "admin.find_coordinators(key_type)",
        filled("admin", "find_coordinators", "g", key_type=HOLE),
        [None, 0, "GROUP", "topic", [], Strange()],
    )
    yield Case(
        "admin.offset_for_leader_epoch(epochs)",
        filled("admin", "offset_for_leader_epoch", HOLE),
        [None, 5, "t", [TP], TP, Strange(), {"t": 0}, *({TP: one} for one in NO_VOTER)],
    )
    yield Case("admin.unregister_broker(broker_id)", filled("admin", "unregister_broker", HOLE), NO_VOTER)
    yield Case("admin.unregister_controller(controller_id)", filled("admin", "unregister_controller", HOLE), NO_VOTER)
    yield Case("admin.describe_features(broker)", filled("admin", "describe_features", broker=HOLE), NO_VOTER[1:])
    yield Case("admin.update_features(updates)", filled("admin", "update_features", HOLE), NO_UPDATES)
    yield Case(
        "admin.update_features(validate_only)",
        filled("admin", "update_features", {"a": 1}, validate_only=HOLE),
        NO_FLAG,
    )
    some = [_endpoint("C", "h", 1)]
    for name, more in (("add_raft_voter", (some,)), ("remove_raft_voter", ())):
        yield Case(f"admin.{name}(voter_id)", filled("admin", name, HOLE, UUID(int=1), *more), NO_VOTER)
        yield Case(f"admin.{name}(directory_id)", filled("admin", name, 1, HOLE, *more), NO_UUID)
        yield Case(
            f"admin.{name}(cluster_id)",
            filled("admin", name, 1, UUID(int=1), *more, cluster_id=HOLE),
            [5, "", b"x", SURROGATE, Strange()],
        )
    yield Case("admin.add_raft_voter(endpoints)", filled("admin", "add_raft_voter", 1, UUID(int=1), HOLE), NO_ENDPOINTS)
    yield Case(
        "admin.list_config_resources(types)",
        filled("admin", "list_config_resources", HOLE),
        [5, "TOPIC", [2], ["TOPIC"], [None], Strange()],
    )


def _request() -> Iterator[Case]:
    some = MetadataRequest(topics=[])
    yield Case(
        "client.request(message)",
        filled("client", "request", HOLE),
        [None, 5, "Metadata", MetadataRequest, some.topics, Strange()],
    )
    yield Case(
        "client.request(broker)",
        filled("client", "request", some, broker=HOLE),
        ["1", "leader", -1, 2**31, 1.5, True, [1], b"controller", ("t", 0, 0), Strange()],
    )
    yield Case(
        "client.request(version)",
        filled("client", "request", some, version=HOLE),
        ["1", -1, 2**15, 1.5, True, [1], Strange()],
    )
    yield Case("client.request(timeout)", filled("client", "request", some, timeout=HOLE), NO_SECONDS)


def _admin_of_users() -> Iterator[Case]:
    yield Case(
        "admin.describe_user_scram_credentials(users)",
        filled("admin", "describe_user_scram_credentials", HOLE),
        [5, b"u", "", SURROGATE, Strange(), [5], [None], [""], [SURROGATE], "x" * 40_000],
    )
    yield Case(
        "admin.alter_user_scram_credentials(alterations)",
        filled("admin", "alter_user_scram_credentials", HOLE),
        NO_ALTERATIONS,
    )
    yield Case(
        "admin.describe_client_quotas(quota_filter)", filled("admin", "describe_client_quotas", HOLE), NO_FILTERS
    )
    yield Case("admin.alter_client_quotas(alterations)", filled("admin", "alter_client_quotas", HOLE), NO_QUOTAS)
    yield Case(
        "admin.alter_client_quotas(validate_only)",
        filled("admin", "alter_client_quotas", {}, validate_only=HOLE),
        NO_FLAG,
    )


def _admin_of_delegation_tokens() -> Iterator[Case]:
    no_principals = [5, "User:u", b"u", Strange(), [5], [None], ["User:u"], [_principal("User", "")]]
    no_principals += [[_principal(5, "u")], [_principal("User", SURROGATE)]]
    no_period = ["5", 1.5, -1, 2**63, True, Strange()]
    name = "create_delegation_token"
    yield Case(f"admin.{name}(renewers)", filled("admin", name, renewers=HOLE), [None, *no_principals])
    yield Case(f"admin.{name}(owner)", filled("admin", name, owner=HOLE), no_principals)
    yield Case(f"admin.{name}(max_lifetime_ms)", filled("admin", name, max_lifetime_ms=HOLE), [0, *no_period])
    name = "describe_delegation_token"
    yield Case(f"admin.{name}(owners)", filled("admin", name, HOLE), no_principals)
    for name, period, least in (
        ("renew_delegation_token", "renew_time_period_ms", [0]),
        ("expire_delegation_token", "expiry_time_period_ms", []),
    ):
        yield Case(f"admin.{name}(token)", filled("admin", name, HOLE), [None, 5, "hmac", b"", Strange(), [b"h"]])
        yield Case(f"admin.{name}({period})", filled("admin", name, b"h", **{period: HOLE}), [*least, *no_period])


def _admin_of_acls() -> Iterator[Case]:
    yield Case(
        "admin.create_acls(acls)",
        lambda hands, one: hands.admin.create_acls(one),
        [*NO_ACL, *([one] for one in NO_ACL)],
    )
    yield Case("admin.describe_acls(filter)", lambda hands, one: hands.admin.describe_acls(one), NO_FILTER)
    yield Case(
        "admin.delete_acls(filters)",
        lambda hands, one: hands.admin.delete_acls(one),
        [None, *NO_FILTER, *([one] for one in NO_FILTER)],
    )


def _admin_with_a_timeout() -> Iterator[Case]:
    calls: dict[str, tuple[Any, ...]] = {
        "create_topics": ({"a": 1},),
        "delete_topics": (["t"],),
        "list_topics": (),
        "describe_topic": ("t",),
        "describe_topics": ("t",),
        "create_partitions": ({"t": 3},),
        "delete_records": ({TP: 0},),
        "elect_leaders": (ElectionType.PREFERRED,),
        "alter_partition_reassignments": ({TP: [1]},),
        "list_partition_reassignments": (),
        "describe_log_dirs": (),
        "describe_replica_log_dirs": ([("t", 0, 1)],),
        "alter_replica_log_dirs": ({("t", 0, 1): "/x"},),
        "list_offsets": ({TP: OffsetSpec.LATEST},),
        "list_groups": (),
        "describe_groups": ("g",),
        "describe_consumer_groups": ("g",),
        "describe_classic_groups": ("g",),
        "delete_groups": ("g",),
        "remove_members": ("g", ["m"]),
        "list_consumer_group_offsets": ("g",),
        "list_offsets_of_groups": ("g",),
        "alter_consumer_group_offsets": ("g", {TP: 5}),
        "reset_consumer_group_offsets": ("g", {TP: 5}),
        "delete_consumer_group_offsets": ("g", [TP]),
        "consumer_group_lag": ("g",),
        "describe_share_groups": ("g",),
        "delete_share_groups": ("g",),
        "list_share_group_offsets": ("g",),
        "list_offsets_of_share_groups": ("g",),
        "alter_share_group_offsets": ("g", {TP: 5}),
        "delete_share_group_offsets": ("g", ["t"]),
        "describe_streams_groups": ("g",),
        "delete_streams_groups": ("g",),
        "list_streams_group_offsets": ("g",),
        "alter_streams_group_offsets": ("g", {TP: 5}),
        "delete_streams_group_offsets": ("g", [TP]),
        "describe_producers": (TP,),
        "fence_producers": ("t",),
        "force_terminate_transaction": ("t",),
        "list_transactions": (),
        "describe_transactions": ("t",),
        "find_hanging_transactions": (),
        "abort_transaction": (AbortTransactionSpec(TP, 1, 0),),
        "describe_configs": (ConfigResource.topic("t"),),
        "incremental_alter_configs": ({ConfigResource.topic("t"): {"retention.ms": "5"}},),
        "list_config_resources": (),
        "describe_cluster": (),
        "api_versions": (),
        "find_coordinators": ("g",),
        "offset_for_leader_epoch": ({TP: 0},),
        "unregister_broker": (1,),
        "unregister_controller": (1,),
        "client_instance_id": (),
        "describe_features": (),
        "update_features": ({"a": 1},),
        "describe_metadata_quorum": (),
        "add_raft_voter": (1, UUID(int=1), [_endpoint("C", "h", 1)]),
        "remove_raft_voter": (1, UUID(int=1)),
        "describe_user_scram_credentials": (),
        "alter_user_scram_credentials": ([_deletion("u", ScramMechanism.SCRAM_SHA_256)],),
        "describe_client_quotas": (),
        "alter_client_quotas": ({ClientQuotaEntity.user("u"): {}},),
        "create_delegation_token": (),
        "renew_delegation_token": (b"h",),
        "expire_delegation_token": (b"h",),
        "describe_delegation_token": (),
        "create_acls": (AclBinding(ResourcePattern.topic("t"), "User:a", AclOperation.READ),),
        "describe_acls": (),
        "delete_acls": (AclBindingFilter(),),
    }
    for name, given in calls.items():
        yield Case(
            f"admin.{name}(timeout)",
            filled("admin", name, *given, timeout=HOLE),
            NO_SECONDS,
        )
        if given and given[0] == "g":
            yield Case(
                f"admin.{name}(group_id)",
                filled("admin", name, HOLE, *given[1:]),
                NO_GROUP,
            )


CASES: list[Case] = [
    *_client(),
    *_share(),
    *_transform(),
    *_process(),
    *_services(),
    *_claim_check(),
    *_bounded_reads(),
    *_tables(),
    *_producers(),
    *_metrics_push(),
    *_consumer(),
    *_admin(),
    *_admin_of_topics(),
    *_admin_of_share_groups(),
    *_admin_of_streams_groups(),
    *_admin_of_transactions(),
    *_admin_of_configs(),
    *_admin_of_the_cluster(),
    *_request(),
    *_admin_of_users(),
    *_admin_of_delegation_tokens(),
    *_admin_of_acls(),
    *_admin_with_a_timeout(),
]

TIMEOUTS_THAT_WORK = [None, 5, 5.0, 1e9, math.inf]
ISOLATIONS = list(IsolationLevel)
