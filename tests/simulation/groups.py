"""A group of consumers on a cluster in trouble: members come, dawdle, go and die, and so do its coordinators."""

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import anyio
import attrs
from support.raw_client import RawClient

from aiokafkawire import Delivery, KafkaError, TopicPartition
from aiokafkawire.group.consumer_protocol import decode_assignment
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from aiokafkawire.protocol.messages.group import SyncGroupRequest, SyncGroupResponse
from aiokafkawire.protocol.messages.group_offsets import OffsetCommitRequest, OffsetCommitResponse
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.faults.request_log import LoggedRequest
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import Journal, Sent, check_origin, check_writing, no_task_fails_unheard
from .group_checks import Commit, Watch
from .leftovers import check_nothing_is_left, tasks
from .members import GROUP, Group, Member
from .protocols import COORDINATORS, Protocol, client_ids, who_takes_part
from .scenario import LATE
from .seats import Seats, until_settled
from .taking_part import client_of, logs_of

__all__ = ("Outcome", "run", "run_consumer_protocol", "told")

_PATIENCE = 60.0
"""Virtual seconds for the group to become stable and read all, beside those that it waits for the dead."""
_LOSABLE = (ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR)

_LOSABLE_HEARTBEATS = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR)


@attrs.frozen
class Outcome:
    """What one run came to."""

    records: int
    members: int
    """Those that there were, one after the other on each seat."""
    generations: int
    commits: int
    late: int
    group: Group
    faults: int
    settled: float
    """Virtual seconds from the end of all faults until all was read, and the group stable."""


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    return _run(seed, keep, "classic")


def run_consumer_protocol(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run of a group whose coordinator assigns (KIP-848)."""
    return _run(seed, keep, "consumer")


def _run(seed: int, keep: int, protocol: Protocol) -> Run[Outcome]:
    with no_task_fails_unheard():
        return simulate(
            lambda sim: _Play(sim, protocol).main(),
            seed=seed,
            keep=keep,
            min_insync_replicas=2,
            **COORDINATORS,
        )


@attrs.define
class _Play:
    """One run, and what came of it."""

    sim: Simulation
    protocol: Protocol
    watch: Watch = attrs.field(init=False)
    group: Group = attrs.field(init=False)
    partitions: list[TopicPartition] = attrs.field(factory=list)
    journal: Journal = attrs.field(factory=Journal)
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once all faults are over."""
    alarm: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once something is wrong."""
    seats: Seats[Member] = attrs.field(init=False)
    commits: int = 0

    def __attrs_post_init__(self) -> None:
        self.watch = Watch(lambda _: self.alarm.set())
        self.seats = Seats(self.sim, self.calm, self._make_member)

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        topics = ["flights", "delays", "gates"][: chance.randint(1, 3)]
        self.group = Group.of(chance, topics, self.protocol)
        self.partitions = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 4))]
        for topic in topics:
            sim.broker.create_topic(topic, partitions=sum(where.topic == topic for where in self.partitions))
        self._listen()
        seats, before = chance.randint(2, 5), tasks()
        async with anyio.create_task_group() as members, anyio.create_task_group() as looking:
            looking.start_soon(self._look)
            for seat in range(seats):
                members.start_soon(self.seats.sit, seat)
            sim.chaos(every=(0.2, chance.choice((1.0, 4.0, 10.0))), lasting=(0.05, chance.choice((1.0, 5.0, 20.0))))
            with anyio.move_on_after(chance.uniform(10, 90)):
                async with anyio.create_task_group() as trouble:
                    trouble.start_soon(self._write, topics)
                    trouble.start_soon(self._trouble_coordinators)
            await self._end_faults()
            settled = await self._settle()
            looking.cancel_scope.cancel()
            self.seats.end()
        await anyio.sleep(LATE)
        check_nothing_is_left(sim, before)
        logs = logs_of(sim, self.partitions)
        check_origin([self.journal], logs)
        check_writing(self.journal, logs)
        self.watch.check(logs)
        records, generations = sum(map(len, logs.values())), len(self.watch.generations)
        faults = sim.trace.faults.total()
        return Outcome(
            records, self.seats.lives, generations, self.commits, self.watch.late, self.group, faults, settled
        )

    def _make_member(self, seat: int, name: str) -> Member:
        return Member(self.sim, self.watch, self.group, seat, name, self.calm)

    async def _look(self) -> NoReturn:
        """Go no further than to the first thing that is wrong."""
        await self.alarm.wait()
        raise AssertionError(self.watch.wrong)

    # --- what the coordinator says -----------------------------------------------------------------------------

    def _listen(self) -> None:
        """Hear of all assignments and commits, and lose some of the answers."""
        sim, chance = self.sim, self.sim.chance("lost answers")

        def synced(request: SyncGroupRequest, answer: SyncGroupResponse) -> SyncGroupResponse:
            if answer.error_code == 0:
                owner = request.group_instance_id or (self._asked(request).client_id or "")
                for where in decode_assignment(bytes(answer.assignment)).partitions if answer.assignment else ():
                    self.watch.claim(request.generation_id, where, owner, "is assigned")
            self._lose(chance.random())
            return answer

        def beaten(
            request: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse
        ) -> ConsumerGroupHeartbeatResponse:
            if answer.error_code == 0 and answer.assignment is not None:
                asked = self._asked(request)
                client, owner = asked.client_id or "", request.instance_id or (asked.client_id or "")
                members = client_ids(sim.broker, GROUP)
                for topic in answer.assignment.topic_partitions:
                    name = asked.name_of(topic.topic_id)
                    assert name is not None
                    for index in topic.partitions:
                        where = TopicPartition(name, index)
                        self.watch.claim(answer.member_epoch, where, owner, "is assigned")
                        self.watch.hand_over(where, client, members)
            self._lose(chance.random())
            return answer

        def committed(request: OffsetCommitRequest, answer: OffsetCommitResponse) -> OffsetCommitResponse:
            for where, commit in _commits(self._asked(request), answer, sim):
                self.commits += 1
                self.watch.commit(where, commit, request.group_instance_id or commit.by)
            self._lose(chance.random())
            return answer

        sim.broker.on(ApiKey.SYNC_GROUP, answer=synced, times=None)
        sim.broker.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer=beaten, times=None)
        sim.broker.on(ApiKey.OFFSET_COMMIT, answer=committed, times=None)

    def _lose(self, chance: float) -> None:
        coordinator = self.sim.broker.coordinator(GROUP)
        if chance < 0.02 and not self.calm.is_set() and coordinator > 0:
            self.sim.network.cut(coordinator)

    def _asked(self, request: Any) -> LoggedRequest:
        """What the journal has of a request that is being answered: of the latest, one."""
        journal = self.sim.broker.requests
        return next(asked for back in range(1, len(journal) + 1) if (asked := journal[-back]).request is request)

    async def _trouble_coordinators(self) -> NoReturn:
        """They move, take their time to read what was written, and their answers get lost."""
        broker, chance = self.sim.broker, self.sim.chance("coordinators")
        longest = chance.choice((5.0, 20.0, 60.0))
        while True:
            await anyio.sleep(chance.uniform(0.5, longest))
            if chance.random() < 0.1:
                await self._remove_members()
                continue
            node, loading = chance.choice(broker.node_ids), chance.choice((0.0, 0.0, 2.0))
            if chance.random() < 0.5:
                lost = chance.choice(_LOSABLE if self.protocol == "classic" else _LOSABLE_HEARTBEATS)
                self.sim.note(f"the next answer to {lost.name} is lost")
                broker.on(lost, drop="after", times=chance.choice((1, 1, 3)))
                continue
            try:
                broker.move_coordinator(GROUP, node, loading=loading)
                self.sim.note(f"broker {node} coordinates the group, in {loading} s")
            except ApiError:
                pass  # it is down, or not in sync

    async def _remove_members(self) -> None:
        """Remove all members from the group, as an operator may: each of them finds that out from its coordinator."""
        with anyio.move_on_after(5):
            async with client_of(self.sim, "operator") as client:
                try:
                    await client.admin.remove_members(GROUP)
                    self.sim.note("all members are removed")
                except KafkaError as error:
                    self.sim.note(f"nobody is removed: {error}")

    # --- who takes part ------------------------------------------------------------------------------------------

    async def _write(self, topics: Sequence[str]) -> None:
        """Records with numbers, until it is cancelled."""
        sim, chance = self.sim, self.sim.chance("writer")
        slowest = chance.choice((0.05, 0.2, 0.5))
        client = client_of(sim, "writer")
        async with client, client.producer() as producer, anyio.create_task_group() as waiting:
            while True:
                sent = Sent(b"%d" % len(self.journal.sent))
                self.journal.sent.append(sent)
                try:
                    waiting.start_soon(_await, await producer.enqueue(chance.choice(topics), sent.value), sent)
                except KafkaError as error:
                    sim.note(f"the writer could not hand over {sent}: {error}")
                await anyio.sleep(chance.uniform(0, slowest))

    # --- the end -------------------------------------------------------------------------------------------------

    async def _end_faults(self) -> None:
        self.sim.broker.clear_orders()
        self._listen()
        await self.sim.calm()
        self.calm.set()
        self.sim.network.heal()  # who has lost power meanwhile

    async def _settle(self) -> float:
        """Wait until all is read, and the group stable; how long that took."""
        group = self.group
        limit = _PATIENCE + (2 * group.session_timeout_ms + 2 * group.max_poll_interval_ms) / 1000
        # Of a static member that was replaced before it had its part, Kafka waits for the old id all the same.
        late = LATE + (group.max_poll_interval_ms / 1000 if group.static else 0)
        await anyio.sleep(late)
        return late + await until_settled(self.sim, self._state, limit=limit - late, wrong=self.watch.wrong)

    async def _state(self) -> str:
        for where, log in logs_of(self.sim, self.partitions).items():
            if self.watch.done(where) < len(log):
                return f"{self.watch.done(where)} of {len(log)} records of {where} are finished"
        coordinator = self.sim.broker.coordinator(GROUP)
        (at,) = (address for address, node in self.sim.broker.addresses.items() if node == coordinator)
        async with RawClient(await self.sim.network.connector("who looks at groups")(*at)) as client:
            state, members = await who_takes_part(client, GROUP, self.protocol)
        known = sorted(member.instance_id or member.client_id for member in members)
        if state != "Stable" or known != sorted(member.owner for member in self.seats.there.values()):
            return f"{state}, of {', '.join(known)}"
        return f"settled, in generation {max(self.watch.generations)}"


def _commits(
    asked: LoggedRequest, answer: OffsetCommitResponse, sim: Simulation
) -> Iterator[tuple[TopicPartition, Commit]]:
    """The offsets that were taken."""
    request: OffsetCommitRequest = asked.request
    for topic, answered in zip(request.topics, answer.topics, strict=True):
        name = topic.name or asked.name_of(topic.topic_id)
        assert name is not None
        taken = {one.partition_index for one in answered.partitions if one.error_code == 0}
        for one in topic.partitions:
            if one.partition_index in taken:
                yield (
                    TopicPartition(name, one.partition_index),
                    Commit(
                        by=asked.client_id or "",
                        generation=request.generation_id_or_member_epoch,
                        member_id=request.member_id,
                        connection=asked.connection,
                        offset=one.committed_offset,
                    ),
                )


async def _await(delivery: Delivery, sent: Sent) -> None:
    try:
        written = await delivery
    except KafkaError:
        return
    sent.where, sent.offset = TopicPartition(written.topic, written.partition), written.offset


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value, group = done.value, done.value.group
    assignors = " and ".join(group.strategies) or "assigned by the coordinator"
    return (
        f"seed {done.seed}: {value.records} records, {value.members} {'static ' if group.static else ''}members, "
        f"{assignors}, {value.generations} generations, {value.commits} commits, {value.late} "
        f"late, {value.faults} faults, settled in {value.settled:.0f} s, {done.seconds:.0f} s of virtual time, "
        f"trace {done.trace.digest}"
    )
