"""What the simulated network does to bytes: it delays, holds, and loses them."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream

from aiokafkawire.testing.simulation import Simulation, simulate
from aiokafkawire.testing.virtual.network import Network
from aiokafkawire.testing.virtual.trace import Trace

Body = Callable[["Lines"], Awaitable[None]]


class Lines:
    """A network that leads to nodes 1 and 2, whose ends of connections are kept here."""

    def __init__(self, sim: Simulation, *, latency: tuple[float, float] = (1.0, 1.0), bandwidth: float | None = None):
        self.ends: list[ByteStream] = []
        self.down: set[int] = set()
        self.network = Network(
            self._attend,
            lambda: {("one", 9): 1, ("two", 9): 2},
            now=anyio.current_time,
            chance=sim.random,
            trace=Trace(anyio.current_time),
            latency=latency,
            bandwidth=bandwidth,
        )

    def _attend(self, node: int, stream: ByteStream, name: str) -> None:
        if node in self.down:
            raise ConnectionRefusedError(name)
        self.ends.append(stream)

    async def dial(self, host: str = "one", client: str = "me") -> tuple[ByteStream, ByteStream]:
        return await self.network.connector(client)(host, 9), self.ends[-1]


def on_lines(
    *, seed: int = 1, latency: tuple[float, float] = (1.0, 1.0), bandwidth: float | None = None
) -> Callable[[Body], None]:
    """Run a body at once, on lines such as these."""

    def run(body: Body) -> None:
        async def main(sim: Simulation) -> None:
            await body(Lines(sim, latency=latency, bandwidth=bandwidth))

        simulate(main, seed=seed)

    return run


async def arrival(stream: ByteStream) -> tuple[float, bytes]:
    data = await stream.receive()
    return round(anyio.current_time(), 6), data


def test_bytes_take_their_time_and_a_connection_takes_a_round_trip() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()
        assert anyio.current_time() == 2
        await mine.send(b"ping")
        assert await arrival(theirs) == (3, b"ping")
        await theirs.send(b"pong")
        assert await arrival(mine) == (4, b"pong")


def test_who_waits_already_is_woken_when_bytes_are_there() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()

        async def wait() -> None:
            assert await arrival(theirs) == (8, b"late")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(5)
            await mine.send(b"late")


def test_bytes_never_overtake_one_another() -> None:
    @on_lines(latency=(0.0, 5.0))
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()
        sent = bytes(range(100))
        for byte in sent:
            await mine.send(bytes([byte]))
        received = b""
        while len(received) < len(sent):
            received += await theirs.receive()
        assert received == sent


def test_bandwidth_makes_many_bytes_late() -> None:
    @on_lines(bandwidth=100.0)
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()
        await mine.send(bytes(100))
        await mine.send(bytes(200))
        assert [(await arrival(theirs))[0], (await arrival(theirs))[0]] == [4, 6]


def test_a_sender_waits_while_too_much_is_under_way() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()
        received = 0

        async def take() -> None:
            nonlocal received
            while received < 1_000_000:
                received += len(await theirs.receive())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await mine.send(bytes(1_000_000))
            # A window of 256 KiB at a time, each a second after the one before.
            assert anyio.current_time() == 5
        assert received == 1_000_000


def test_a_partition_holds_bytes_and_healing_lets_them_go_on() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()
        await mine.send(b"before")
        await anyio.sleep(1.5)
        await mine.send(b"under way")
        lines.network.partition({1})
        await mine.send(b"during")
        assert await arrival(theirs) == (3.5, b"before")  # it was there already
        with anyio.move_on_after(100) as scope:
            await theirs.receive()
        assert scope.cancelled_caught
        lines.network.heal()
        assert [await arrival(theirs), await arrival(theirs)] == [(104.5, b"under way"), (104.5, b"during")]


def test_who_waits_during_a_partition_is_woken_after_it() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()

        async def wait() -> None:
            assert await arrival(theirs) == (13, b"held")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            lines.network.partition({1})
            await mine.send(b"held")
            await anyio.sleep(10)
            lines.network.heal()


def test_a_new_connection_waits_out_a_partition() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        lines.network.partition({1})
        with anyio.move_on_after(60) as scope:
            await lines.dial()
        assert scope.cancelled_caught

        async def heal() -> None:
            await anyio.sleep(5)
            lines.network.heal()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heal)
            await lines.dial()
        assert anyio.current_time() == 67


def test_a_partition_separates_groups_from_one_another_and_from_the_rest() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        network = lines.network
        network.partition({"a", 1}, {"b", 2})
        assert [network.separated("a", node) for node in (1, 2)] == [False, True]
        assert [network.separated("b", node) for node in (1, 2)] == [True, False]
        assert [network.separated("c", node) for node in (1, 2)] == [True, True]
        assert network.separated(1, 2)
        network.partition({1})
        assert not network.separated("b", 2)
        network.heal()
        network.block(1)
        assert network.separated("a", 1)
        assert not network.separated(1, 2)
        network.unblock(1)
        assert not network.separated("a", 1)


def test_closing_is_heard_when_all_bytes_have_arrived_and_not_through_a_partition() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()
        await mine.send(b"last words")
        await mine.aclose()
        lines.network.partition({1})
        with anyio.move_on_after(50) as scope:
            await theirs.receive()
        assert scope.cancelled_caught
        lines.network.heal()
        assert await theirs.receive() == b"last words"
        for _ in range(2):
            with pytest.raises(anyio.EndOfStream):
                await theirs.receive()
        with pytest.raises(anyio.ClosedResourceError):
            await mine.send(b"more")
        with pytest.raises(anyio.ClosedResourceError):
            await mine.receive()


def test_what_was_sent_before_closing_arrives_after_a_partition_whatever_was_dialled_meanwhile() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, theirs = await lines.dial()

        async def wait() -> None:
            assert await arrival(theirs) == (11, b"held")
            with pytest.raises(anyio.EndOfStream):
                await theirs.receive()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            lines.network.partition({"me"})
            await mine.send(b"held")
            await mine.aclose()
            await lines.dial("two", "another")
            await anyio.sleep_until(10)
            lines.network.heal()


def test_a_cut_goes_through_what_is_under_way() -> None:
    lengths = set[int]()
    for seed in range(30):

        @on_lines(seed=seed)
        async def _(lines: Lines) -> None:
            mine, theirs = await lines.dial()
            await mine.send(b"0123456789")
            assert lines.network.cut() == 1
            received = b""
            with pytest.raises(anyio.BrokenResourceError):
                while True:
                    received += await theirs.receive()
            assert b"0123456789".startswith(received)
            lengths.add(len(received))
            with pytest.raises(anyio.BrokenResourceError):
                await mine.send(b"more")
            with pytest.raises(anyio.BrokenResourceError):
                await mine.receive()
            assert lines.network.cut() == 0

    assert {0, 10} < lengths


def test_a_cut_wakes_who_waits_for_bytes_or_for_room() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, _theirs = await lines.dial()
        broken = list[str]()

        async def send() -> None:
            with pytest.raises(anyio.BrokenResourceError):
                await mine.send(bytes(10_000_000))
            broken.append("send")

        async def receive() -> None:
            with pytest.raises(anyio.BrokenResourceError):
                await mine.receive()
            broken.append("receive")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            tasks.start_soon(receive)
            await anyio.sleep(10)
            lines.network.cut(client="somebody else")
            lines.network.cut(2)
            await anyio.wait_all_tasks_blocked()
            assert not broken
            lines.network.cut(1, client="me")
        assert sorted(broken) == ["receive", "send"]


def test_closing_wakes_who_waits_for_bytes_or_for_room_at_the_same_end() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        mine, _theirs = await lines.dial()
        closed = list[str]()

        async def send() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await mine.send(bytes(10_000_000))
            closed.append("send")

        async def receive() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await mine.receive()
            closed.append("receive")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            tasks.start_soon(receive)
            await anyio.sleep(10)
            await mine.aclose()
            await anyio.wait_all_tasks_blocked()
            assert sorted(closed) == ["receive", "send"]


def test_connections_are_refused_where_nobody_listens_and_where_it_is_asked_for() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        lines.down.add(1)
        with pytest.raises(ConnectionRefusedError):
            await lines.dial()
        assert anyio.current_time() == 2
        lines.down.clear()
        lines.network.refuse(1)
        with pytest.raises(ConnectionRefusedError):
            await lines.dial()
        await lines.dial("two")
        lines.network.accept(1)
        await lines.dial()
        with pytest.raises(OSError, match="no route to nowhere"):
            await lines.dial("nowhere")


def test_a_slow_way_is_slow_to_the_brokers_named_and_becomes_normal_again() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        (mine, theirs), (my_other, other) = await lines.dial(), await lines.dial("two")
        lines.network.slow(1, latency=(10, 10))
        began = anyio.current_time()
        await mine.send(b"slow")
        await my_other.send(b"quick")
        assert await arrival(other) == (began + 1, b"quick")
        assert await arrival(theirs) == (began + 10, b"slow")
        lines.network.normal(1)
        await mine.send(b"quick again")
        assert await arrival(theirs) == (began + 11, b"quick again")


def test_a_way_that_is_dialled_later_is_as_slow() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        lines.network.slow(1, latency=(10, 10))
        await lines.dial("two")
        assert anyio.current_time() == 2
        await lines.dial()
        assert anyio.current_time() == 22
        lines.network.normal()
        await lines.dial(client="another")
        assert anyio.current_time() == 24


def test_what_one_hand_made_another_does_not_end() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        network = lines.network
        network.partition({1})
        network.block(2)
        network.refuse(2)
        network.slow(latency=(3, 3))
        injector = network.injector()
        injector.partition({1}, {2})
        injector.block(2)
        injector.refuse(2)
        injector.slow(2, latency=(10, 10))
        network.drop(injector)
        assert network.separated("me", 1)
        assert network.separated("me", 2)
        network.heal()
        with pytest.raises(ConnectionRefusedError):
            await lines.dial("two")
        assert anyio.current_time() == 6
        network.accept()
        await lines.dial("two")
        other = network.injector()
        other.block(2)
        network.heal()
        network.unblock()
        assert network.separated("me", 2)


def test_no_broker_named_is_all_of_them() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        lines.network.block()
        assert lines.network.separated("me", 1)
        lines.network.unblock()
        assert not lines.network.separated("me", 2)
        lines.network.refuse()
        with pytest.raises(ConnectionRefusedError):
            await lines.dial("two")


def test_what_makes_no_sense_is_refused() -> None:
    @on_lines()
    async def _(lines: Lines) -> None:
        network = lines.network
        for fault in (network.block, network.unblock, network.refuse, network.accept, network.normal, network.cut):
            with pytest.raises(KeyError, match="no broker 7; known: 1, 2"):
                fault(7)
        with pytest.raises(KeyError, match="no broker 7; known: 1, 2"):
            network.slow(7, latency=(1, 1))
        with pytest.raises(KeyError, match="no broker 7; known: 1, 2"):
            network.partition({"me", 7})
        for group in ("me", 1):
            with pytest.raises(TypeError, match=rf"clients and brokers such as \{{{group!r}\}}, got {group!r}"):
                network.partition(group)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"latency must be a minimum and a maximum"):
            network.slow(latency=(3, 1))
        with pytest.raises(ValueError, match="bandwidth must be above 0 bytes per second"):
            network.slow(latency=(1, 3), bandwidth=0)

    with pytest.raises(ValueError, match=r"latency must be .*, got \(3, 1\)"):
        on_lines(latency=(3, 1))(lambda _: anyio.lowlevel.checkpoint())
