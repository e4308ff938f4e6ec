"""A share group on a cluster in trouble: members come, process records, dawdle, go and die, and leaders move."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import anyio
import attrs
from histories.checking import History
from support.raw_client import RawClient

from aiokafkawire import TopicPartition
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.configs.types import ConfigKind
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import Logs, check_in_the_end, logs_found, no_task_fails_unheard
from .leftovers import check_nothing_is_left, tasks
from .protocols import who_shares
from .scenario import LATE
from .seats import Seats, until_settled
from .share_checks import ShareWatch
from .share_members import GROUP, Member, ShareGroup
from .share_wiretap import wiretap
from .share_writers import due_records, write, write_in_transactions
from .taking_part import logs_of
from .trouble import next_fault, refusing

__all__ = ("Outcome", "Play", "run", "told")

_LOSABLE = (
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.FIND_COORDINATOR,
)

_REFUSED = (
    *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.FIND_COORDINATOR),
    ApiKey.METADATA,
)


@attrs.frozen
class Outcome:
    """What one run came to."""

    records: int
    members: int
    """Those that there were, one after the other on each seat."""
    deliveries: int
    again: int
    commits: int
    outcomes: Mapping[str, int]
    group: ShareGroup
    faults: int
    settled: float
    """Virtual seconds from the end of all faults until all was finished, and the group stable."""


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(lambda sim: Play(sim).main(), seed=seed, keep=keep, min_insync_replicas=2)


@attrs.define
class Play:
    """One run, and what came of it. Its hooks are of the usual run, whose members are share consumers."""

    sim: Simulation
    watch: ShareWatch = attrs.field(init=False)
    group: ShareGroup = attrs.field(init=False)
    topics: Sequence[str] = ()
    partitions: list[TopicPartition] = attrs.field(factory=list)
    history: History = attrs.field(factory=History)
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once all faults are over."""
    alarm: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once something is wrong."""
    seats: Seats[Any] = attrs.field(init=False)
    names: dict[str, str] = attrs.field(factory=dict)
    """The members' names by their ids."""
    gentle: bool = False
    """Whether nothing goes wrong, and every member leaves in order."""
    patience: float = 60.0
    """Virtual seconds in which the rest is finished, beside the times that the brokers and members may wait."""
    commits: int = 0

    def __attrs_post_init__(self) -> None:
        sim, chance = self.sim, self.sim.random
        self.topics = ["flights", "delays", "gates"][: chance.randint(1, 2)]
        self.group = ShareGroup.of(chance, self.topics)
        self.watch = ShareWatch(
            self.group.lock_ms / 1000, self.group.delivery_limit, sim.now, lambda _: self.alarm.set()
        )
        self.seats = Seats(sim, self.calm, self._make_member, self._member_gone)

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        self.partitions = [
            TopicPartition(topic, index) for topic in self.topics for index in range(chance.randint(1, 3))
        ]
        for topic in self.topics:
            sim.broker.create_topic(topic, partitions=sum(one.topic == topic for one in self.partitions))
        # Brokers allow no session timeout as short as this.
        sim.broker._cluster.configs.replace(ConfigKind.GROUP, GROUP, self.group.configs())
        writes = write_in_transactions if self.group.is_transactional else write
        seats, before = chance.randint(1, 4), tasks()
        with wiretap(sim, self.watch, self._name_of):
            async with anyio.create_task_group() as members, anyio.create_task_group() as looking:
                looking.start_soon(self._look)
                for seat in range(seats):
                    members.start_soon(self.seats.sit, seat)
                every, lasting = chance.choice((1.0, 4.0, 10.0)), chance.choice((1.0, 5.0, 20.0))
                if not self.gentle:
                    sim.chaos(every=(0.2, every), lasting=(0.05, lasting))
                with anyio.move_on_after(chance.uniform(10, 60)):
                    async with anyio.create_task_group() as trouble:
                        trouble.start_soon(writes, sim, self.topics, self.history)
                        if not self.gentle:
                            async with refusing(sim, *_REFUSED):
                                await self._trouble()
                await self._end_faults()
                settled = await self._settle()
                looking.cancel_scope.cancel()
                self.seats.end()
            await anyio.sleep(LATE)
        check_nothing_is_left(sim, before)
        logs, due = logs_of(sim, self.partitions), self._due()
        self.history.extend(logs_found(logs))
        check_in_the_end(self.history)
        assert due is not None
        self.watch.check(logs, due)
        return Outcome(
            records=sum(map(len, logs.values())),
            members=self.seats.lives,
            deliveries=self.watch.deliveries,
            again=self.watch.again,
            commits=self.commits,
            outcomes=self.watch.outcomes(),
            group=self.group,
            faults=sim.trace.faults.total(),
            settled=settled,
        )

    def _make_member(self, seat: int, name: str) -> Any:
        return Member(self.sim, self.watch, self.group, name, self.calm, self.names.__setitem__)

    def _name_of(self, member_id: str) -> str:
        return self.names[member_id]

    def _member_gone(self, member: Any) -> None:
        self.commits += member.commits

    async def _look(self) -> NoReturn:
        """Go no further than to the first thing that is wrong."""
        await self.alarm.wait()
        raise AssertionError(self.watch.wrong)

    # --- trouble -------------------------------------------------------------------------------------------------

    async def _trouble(self) -> NoReturn:
        """The coordinator moves, and takes its time to read what was written; responses get lost, or are errors."""
        broker, every = self.sim.broker, self.sim.chance("trouble")
        longest = every.choice((2.0, 5.0, 20.0))
        while True:
            chance = await next_fault("trouble", every, (0.5, longest))
            roll = chance.random()
            if roll < 0.7:
                lost = chance.choice(_LOSABLE)
                self.sim.note(f"the next answer to {lost.name} is lost")
                broker.on(lost, drop=chance.choice(("before", "after")), times=chance.choice((1, 1, 3)))
                continue
            try:
                node, loading = chance.choice(broker.node_ids), chance.choice((0.0, 0.0, 2.0))
                broker.move_coordinator(GROUP, node, loading=loading)
                self.sim.note(f"broker {node} coordinates the group, in {loading} s")
            except ApiError:
                pass  # it is down, or not in sync

    # --- the end -------------------------------------------------------------------------------------------------

    async def _end_faults(self) -> None:
        self.sim.broker.clear_orders()
        await self.sim.calm()
        self.calm.set()
        self.sim.network.heal()  # who has lost power meanwhile

    async def _settle(self) -> float:
        """Wait until all records are finished, and the group stable; how long that took."""
        group = self.group
        waits_ms = group.session_timeout_ms + group.max_poll_interval_ms + group.delivery_limit * group.lock_ms
        limit = self.patience + waits_ms / 1000
        await anyio.sleep(LATE)
        return LATE + await until_settled(self.sim, self._state, limit=limit - LATE, wrong=self.watch.wrong)

    def _due(self) -> Logs | None:
        read_committed = self.group.is_transactional and self.group.isolation_level == "read_committed"
        return due_records(self.sim, self.partitions, read_committed=read_committed)

    async def _state(self) -> str:
        due = self._due()
        if due is None:
            return "a transaction is open"
        if unfinished := self.watch.unfinished(due):
            return f"{len(unfinished)} records are not finished, such as {unfinished[:3]}"
        coordinator = self.sim.broker.coordinator(GROUP)
        (at,) = (address for address, node in self.sim.broker.addresses.items() if node == coordinator)
        async with RawClient(await self.sim.network.connector("who looks at groups")(*at)) as client:
            state, members = await who_shares(client, GROUP)
        known = sorted(member.client_id for member in members)
        if state != "Stable" or known != sorted(member.name for member in self.seats.there.values()):
            return f"{state}, of {', '.join(known)}"
        return "settled"


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(value.outcomes.items()))
    return (
        f"seed {done.seed}: {value.records} records, {value.members} members, {value.deliveries} deliveries, "
        f"{value.again} of them again, {value.commits} commits, {outcomes}, {value.faults} faults, settled in "
        f"{value.settled:.0f} s, {done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
