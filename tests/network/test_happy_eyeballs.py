"""Which of several addresses is connected to."""

import gc
import socket
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream
from support.connecting import eventually

from aiokafkawire.network import happy_eyeballs
from aiokafkawire.network.connector import connect_tcp
from aiokafkawire.network.happy_eyeballs import addresses_of, dial

pytestmark = [pytest.mark.anyio, pytest.mark.every_loop]


@pytest.fixture(autouse=True)
def without_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(happy_eyeballs, "_STAGGER", 0.001)


class Addresses:
    """Addresses that refuse (named ``no...``), keep silent (``silent...``) until released, or connect."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.discarded: list[str] = []
        self.released = anyio.Event()
        self.given_up: list[str] = []
        self.resolved: Sequence[str] | OSError = OSError("the name server is silent")
        """What the name leads to later."""

    async def connect(self, address: str) -> str:
        self.tried.append(address)
        if address.startswith("no"):
            raise ConnectionRefusedError(address)
        if address.startswith("silent"):
            try:
                await self.released.wait()
            except BaseException:
                self.given_up.append(address)
                raise
        return address

    def discard(self, made: str) -> None:
        self.discarded.append(made)

    async def dial(self, *addresses: str) -> str:
        with anyio.fail_after(10):
            return await dial(addresses, self.connect, self.discard, self.resolve)

    async def resolve(self) -> Sequence[str]:
        if isinstance(self.resolved, OSError):
            raise self.resolved
        return self.resolved


async def test_the_first_that_takes_it_is_taken_and_no_other_is_tried() -> None:
    there = Addresses()
    assert await there.dial("no1", "no2", "a", "b") == "a"
    assert there.tried == ["no1", "no2", "a"]


async def test_who_keeps_silent_does_not_hold_up_the_next() -> None:
    there = Addresses()
    assert await there.dial("silent", "no", "a") == "a"
    assert there.given_up == ["silent"]


async def test_a_silent_one_may_still_answer_first() -> None:
    there = Addresses()
    async with anyio.create_task_group() as tasks:

        async def dial_both() -> None:
            assert await there.dial("silent1", "silent2") in ("silent1", "silent2")

        tasks.start_soon(dial_both)
        await eventually(lambda: len(there.tried) == 2)
        there.released.set()
    assert len(there.discarded) + len(there.given_up) <= 1


async def test_all_are_told_when_none_takes_it() -> None:
    with pytest.raises(OSError, match="none of 2 addresses") as caught:
        await Addresses().dial("no1", "no2")
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert [str(one) for one in caught.value.__cause__.exceptions] == ["no1", "no2"]


async def test_of_one_address_its_own_error_is_told() -> None:
    with pytest.raises(ConnectionRefusedError, match=r"^no$"):
        await Addresses().dial("no")


async def test_while_nobody_answers_the_name_is_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(happy_eyeballs, "_REPEAT", 0.001)
    there = Addresses()
    there.resolved = ["silent", "a"]
    assert await there.dial("silent", "no") == "a"
    assert there.tried == ["silent", "no", "silent", "a"]
    assert there.given_up == ["silent", "silent"]


async def test_the_name_is_resolved_again_where_the_first_address_refuses_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(happy_eyeballs, "_REPEAT", 0.001)
    there = Addresses()
    there.resolved = ["a"]
    assert await there.dial("no", "silent") == "a"


async def test_an_error_of_another_kind_is_raised_as_it_is() -> None:
    async def connect(address: str) -> str:
        raise OverflowError(address)

    with pytest.raises(OverflowError, match=r"^large$"):
        await dial(["large"], connect, lambda _: None, Addresses().resolve)


async def test_a_failed_attempt_is_freed_at_once() -> None:
    class Held:
        pass

    held = weakref.WeakSet[Held]()

    async def connect(address: str) -> str:
        held.add(own := Held())
        raise ConnectionRefusedError(address, own.__class__)

    gc.disable()
    try:
        with suppress(OSError):
            await dial(["no"], connect, lambda _: None, Addresses().resolve)
        await anyio.lowlevel.checkpoint()
        assert not held
    finally:
        gc.enable()


async def test_an_address_that_refuses_is_not_tried_again_and_the_same_ones_are_while_names_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(happy_eyeballs, "_REPEAT", 0.001)
    there = Addresses()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(there.dial, "silent", "no")
        await eventually(lambda: there.tried.count("silent") >= 3)
        there.released.set()
    assert there.tried.count("no") == 1
    assert len(there.discarded) + len(there.given_up) == there.tried.count("silent") - 1


async def test_an_attempt_that_fails_late_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(address: str) -> str:
        await anyio.sleep(0.01)
        raise ConnectionRefusedError(address)

    with anyio.fail_after(10), pytest.raises(ConnectionRefusedError, match=r"^late$"):
        await dial(["late"], connect, lambda _: None, Addresses().resolve)


async def test_who_is_cancelled_leaves_nothing_open() -> None:
    there = Addresses()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(there.dial, "silent1", "silent2")
        await eventually(lambda: len(there.tried) == 2)
        tasks.cancel_scope.cancel()
    assert sorted(there.given_up) == ["silent1", "silent2"]
    assert there.discarded == []


async def test_addresses_are_themselves_and_names_have_families_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await addresses_of("127.0.0.1", 9092) == ["127.0.0.1"]
    assert await addresses_of("::1", 9092) == ["::1"]

    async def resolve(*_: Any, **__: Any) -> list[Any]:
        six, four = socket.AF_INET6, socket.AF_INET
        found = [(six, "::1"), (six, "::2"), (six, "::3"), (four, "10.0.0.1"), (four, "10.0.0.2")]
        return [(family, socket.SOCK_STREAM, 6, "", (address, 9092)) for family, address in found]

    monkeypatch.setattr(anyio, "getaddrinfo", resolve)
    assert await addresses_of("broker", 9092) == ["::1", "10.0.0.1", "::2", "10.0.0.2", "::3"]


class Sockets:
    """A port of this machine, and other addresses in front of it that keep silent, or answer late."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
        self.port = port
        self.names: list[list[str] | OSError] = []
        """What the host's name leads to, at the first time and later ones."""
        self.tried: list[str] = []
        self.first_has_begun = anyio.Event()
        self.first_may_end = anyio.Event()
        self._really = anyio.connect_tcp
        monkeypatch.setattr(anyio, "connect_tcp", self.connect)
        monkeypatch.setattr(happy_eyeballs, "addresses_of", self.addresses_of)

    async def addresses_of(self, host: str, port: int) -> list[str]:
        assert (host, port) == ("moved", self.port)
        found = self.names.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    async def connect(self, address: str, port: int) -> Any:
        self.tried.append(address)
        if address == "silent":
            await anyio.sleep_forever()
        if address == "late":
            self.first_has_begun.set()
            with anyio.CancelScope(shield=True):
                await self.first_may_end.wait()
                return await self._really("127.0.0.1", port)
        if self.first_has_begun.is_set():
            self.first_may_end.set()
        return await self._really(address, port)


# asyncio's transports dial by themselves
on_trio = pytest.mark.parametrize("anyio_backend", ["trio"])


@on_trio
async def test_a_stream_on_trio_follows_a_name_that_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(happy_eyeballs, "_REPEAT", 0.001)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as server:
        there = Sockets(monkeypatch, server.extra(SocketAttribute.local_port))
        there.names = [["silent"], OSError("the name server is silent"), ["127.0.0.1"]]
        with anyio.fail_after(10):
            async with await connect_tcp("moved", there.port) as stream:
                assert stream.extra(SocketAttribute.remote_port) == there.port
        assert there.tried == ["silent", "silent", "127.0.0.1"]


@on_trio
async def test_a_stream_on_trio_that_connects_too_late_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []

    async def serve(client: SocketStream) -> None:
        async with client:
            with suppress(anyio.EndOfStream):
                await client.receive()
            closed.append(client.extra(SocketAttribute.remote_port))

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as server,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.serve, serve)
        there = Sockets(monkeypatch, server.extra(SocketAttribute.local_port))
        there.names = [["late", "127.0.0.1"]]
        with anyio.fail_after(10):
            async with await connect_tcp("moved", there.port) as kept:
                await eventually(lambda: len(closed) == 1)
                assert closed != [kept.extra(SocketAttribute.local_port)]
            await eventually(lambda: len(closed) == 2)
        tasks.cancel_scope.cancel()


@on_trio
async def test_a_stream_on_trio_has_the_error_of_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    there = Sockets(monkeypatch, port)
    there.names = [["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]]
    with pytest.raises(ConnectionRefusedError):
        await connect_tcp("moved", port)
    with pytest.raises(OSError, match="none of 2 addresses accepted it") as raised:
        await connect_tcp("moved", port)
    assert isinstance(raised.value.__cause__, ExceptionGroup)
    assert {type(error) for error in raised.value.__cause__.exceptions} == {ConnectionRefusedError}
