"""ZooKeeper's messages by themselves; that a real server takes them is in test_zookeeper.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.errors import UsageError, WireError
from aiokafkawire.legacy import jute
from aiokafkawire.legacy.errors import NoNode, SessionExpired, ZooKeeperError, zookeeper_error
from aiokafkawire.legacy.jute import EventType, Op, Reader, Stat, WatchEvent
from aiokafkawire.legacy.watches import Watches


def test_requests_are_as_zookeeper_writes_them() -> None:
    assert jute.connect_request(6000, 5, 7, b"p" * 16).hex() == (
        "0000002d00000000000000000000000500001770000000000000000700000010" + "70" * 16 + "00"
    )
    assert jute.create_request(1, "/a", b"x", ephemeral=True).hex() == (
        "000000320000000100000001000000022f610000000178000000010000001f00000005776f726c6400000006616e796f6e6500000001"
    )
    assert jute.create_request(1, "/a", None, ephemeral=False)[18:22] == b"\xff\xff\xff\xff"
    assert jute.path_request(2, Op.EXISTS, "/a", watch=True).hex() == "0000000f0000000200000003000000022f6101"
    assert jute.bare_request(-2, Op.PING).hex() == "00000008fffffffe0000000b"
    with pytest.raises(UsageError, match="cannot be written as UTF-8"):
        jute.path_request(2, Op.EXISTS, "/\ud800")


def test_answers_are_read() -> None:
    stat = Reader(b"".join(number.to_bytes(8) for number in (1, 2, 3, 4)) + bytes(range(4)) * 3 + bytes(28), "it")
    assert jute.read_stat(stat) == Stat(1, 2, 3, 4, 66051, 66051, 66051, 0, 0, 0, 0)
    assert stat.left == 4
    event = Reader(b"\0\0\0\4\0\0\0\3\0\0\0\2/a", "it")
    assert jute.read_event(event) == WatchEvent(EventType.CHILDREN_CHANGED, "/a")
    assert Reader(b"\0\0\0\2\0\0\0\1a\xff\xff\xff\xff", "it").strings() == ["a", ""]
    assert Reader(b"\xff\xff\xff\xff", "it").strings() == []


READERS = [
    jute.read_connect_answer,
    lambda data: jute.read_reply_header(Reader(data, "it")),
    lambda data: jute.read_event(Reader(data, "it")),
    lambda data: jute.read_stat(Reader(data, "it")),
    lambda data: Reader(data, "it").strings(),
    lambda data: Reader(data, "it").buffer(),
]


@given(st.sampled_from(READERS), st.binary(max_size=100))
def test_any_bytes_are_an_answer_or_an_error(read: object, data: bytes) -> None:
    assert callable(read)
    try:
        read(data)
    except WireError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\0\0\0\5ab", "a field of 5 bytes at byte 4, with 2 left"),
        (b"\xff\xff\xff\xf0ab", "a field of -16 bytes"),
        (b"\0\0\0\1\xff", "not UTF-8"),
    ],
)
def test_a_string_that_is_none_is_told(data: bytes, told: str) -> None:
    with pytest.raises(WireError, match=told):
        Reader(data, "it").string()


def test_errors_have_classes() -> None:
    assert isinstance(zookeeper_error(-101, "get /a"), NoNode)
    assert str(zookeeper_error(-101, "get /a")).startswith("get /a: There is no node")
    assert isinstance(zookeeper_error(-112, ""), SessionExpired)
    other = zookeeper_error(-102, "get /a")
    assert (type(other), other.code, str(other)) == (ZooKeeperError, -102, "get /a: error -102 (not authorised)")
    assert "unknown to this release" in str(zookeeper_error(-999, "get /a"))


def test_a_watch_is_told_once_of_what_concerns_it() -> None:
    watches, heard = Watches(), list[tuple[str, WatchEvent]]()
    for name, op, found in (
        ("data", Op.GET_DATA, True),
        ("there", Op.EXISTS, True),
        ("absent", Op.EXISTS, False),
        ("child", Op.GET_CHILDREN, True),
    ):
        watches.add(op, "/a", lambda event, name=name: heard.append((name, event)), found=found)  # type: ignore[misc]
    assert watches.again("/root") == jute.SetWatches(["/root/a"], ["/root/a"], ["/root/a"])
    watches.tell(WatchEvent(EventType.CHILDREN_CHANGED, "/b"))
    assert heard == []
    watches.tell(WatchEvent(EventType.CHILDREN_CHANGED, "/a"))
    assert [name for name, _ in heard] == ["child"]
    watches.tell(WatchEvent(EventType.DATA_CHANGED, "/a"))
    assert [name for name, _ in heard] == ["child", "data", "there", "absent"]
    watches.tell(WatchEvent(EventType.DELETED, "/a"))
    assert len(heard) == 4
    assert watches.again() is None


def test_a_watch_that_is_set_again_is_told_once() -> None:
    watches, heard = Watches(), list[WatchEvent]()
    hear = heard.append
    for _ in range(3):
        watches.add(Op.GET_DATA, "/a", hear, found=True)
    watches.tell(WatchEvent(EventType.DATA_CHANGED, "/a"))
    assert len(heard) == 1


def test_a_session_that_expired_is_told_to_all_watches() -> None:
    watches, heard = Watches(), list[WatchEvent]()
    watches.add(Op.GET_DATA, "/a", heard.append, found=True)
    watches.expire()
    watches.expire()
    assert heard == [WatchEvent(EventType.NONE, "/a")]
