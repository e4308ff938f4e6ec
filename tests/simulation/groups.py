"""A group of consumers on a cluster in trouble: members come, dawdle, go and die, and so do its coordinators."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NoReturn
from uuid import UUID

import anyio
import attrs
from histories.anomalies import require_none
from histories.checking import History
from histories.events import RecordSent
from histories.group_events import AssignmentSent, OffsetCommitted
from support.raw_client import RawClient

from aiokafkawire import KafkaError, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.consumer_protocol import decode_assignment
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from aiokafkawire.protocol.messages.group import SyncGroupRequest, SyncGroupResponse
from aiokafkawire.protocol.messages.group_offsets import OffsetCommitRequest, OffsetCommitResponse
from aiokafkawire.protocol.schema import Response
from aiokafkawire.testing.broker import ApiError
from aiokafkawire.testing.faults.request_log import LoggedRequest
from aiokafkawire.testing.faults.rules import FaultRule
from aiokafkawire.testing.simulation import Run, Simulation, simulate
from aiokafkawire.testing.virtual.study import current_study

from .checks import check_in_the_end, logs_found, no_task_fails_unheard
from .foreign_members import Common, ForeignMember
from .leftovers import check_nothing_is_left, tasks
from .members import GROUP, Group, Member
from .mixed import Company
from .protocols import COORDINATORS, Protocol, client_ids, who_takes_part
from .scenario import LATE
from .seats import Seats, until_settled
from .taking_part import client_of, logs_of, note_acknowledgement
from .trouble import next_fault, refusing

__all__ = ("Outcome", "run", "run_consumer_protocol", "run_mixed", "run_orderly", "told")

_PATIENCE = 60.0
"""Virtual seconds for the group to become stable and read all, beside those that it waits for the dead."""
_LOSABLE = (ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR)

_LOSABLE_HEARTBEATS = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR)
_REFUSED_TO_ALL = (
    *(ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT),
    *(ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA),
)
_REFUSED: Mapping[Protocol, tuple[ApiKey, ...]] = {
    "classic": (*_REFUSED_TO_ALL, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
    "consumer": (*_REFUSED_TO_ALL, ApiKey.CONSUMER_GROUP_HEARTBEAT),
}
_FENCED = (ErrorCode.FENCED_INSTANCE_ID,)
_FENCES: Mapping[Protocol, Mapping[ApiKey, tuple[ErrorCode, ...]]] = {
    "classic": dict.fromkeys(
        (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT), _FENCED
    ),
    "consumer": {ApiKey.CONSUMER_GROUP_HEARTBEAT: _FENCED},
}
"""The answer to a static member whose id another process has taken."""


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
    company: Company | None


def run(seed: int, *, keep: int = 2_000, releases: Sequence[str] = ()) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be.

    Brokers begin as the first of the releases of Kafka, and restart as any of them.
    """
    return _run(seed, keep, "classic", releases=releases)


def run_consumer_protocol(seed: int, *, keep: int = 2_000, releases: Sequence[str] = ()) -> Run[Outcome]:
    """One run of a group whose coordinator assigns (KIP-848)."""
    return _run(seed, keep, "consumer", releases=releases)


def run_orderly(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run in which nothing fails, of a group of one of the protocols: members only come, and leave in order."""
    return _run(seed, keep, "consumer" if seed % 2 else "classic", is_orderly=True)


def run_mixed(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run of a group with members and producers of other clients, on brokers of one of several releases."""
    company = Company.of(seed)
    return _run(seed, keep, "classic", releases=(company.release,), company=company)


def _run(
    seed: int,
    keep: int,
    protocol: Protocol,
    *,
    is_orderly: bool = False,
    releases: Sequence[str] = (),
    company: Company | None = None,
) -> Run[Outcome]:
    with no_task_fails_unheard():
        return simulate(
            lambda sim: _Play(sim, protocol, is_orderly, releases, company).main(),
            seed=seed,
            keep=keep,
            min_insync_replicas=2,
            max_versions=next(iter(releases), None),
            **COORDINATORS,
        )


@attrs.define
class _Play:
    """One run, and what came of it."""

    sim: Simulation
    protocol: Protocol
    is_orderly: bool
    releases: Sequence[str] = ()
    company: Company | None = None
    """The other clients that take part, if any."""
    history: History = attrs.field(init=False)
    group: Group = attrs.field(init=False)
    partitions: list[TopicPartition] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)
    """What is wrong besides the anomalies of the history."""
    calm: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once all faults are over."""
    alarm: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once something is wrong."""
    listening: list[FaultRule] = attrs.field(factory=list)
    seats: Seats[Member | ForeignMember] = attrs.field(init=False)
    topic_ids: dict[str, UUID] = attrs.field(factory=dict)
    commits: int = 0

    def __attrs_post_init__(self) -> None:
        self.history = History(lambda _: self.alarm.set())
        self.seats = Seats(self.sim, self.calm, self._make_member)
        if self.is_orderly:
            self.seats.ends = ("leaves",)

    async def main(self) -> Outcome:
        """The run, and its checks."""
        sim, chance = self.sim, self.sim.random
        topics = ["flights", "delays", "gates"][: chance.randint(1, 3)]
        self.group = attrs.evolve(Group.of(chance, topics, self.protocol), is_orderly=self.is_orderly)
        if self.company:
            self.group = attrs.evolve(self.group, strategies=self.company.ours)
        self.partitions = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 4))]
        for topic in topics:
            configs = self.company.topic_configs if self.company else None
            partitions = sum(where.topic == topic for where in self.partitions)
            self.topic_ids[topic] = sim.broker.create_topic(topic, partitions, configs=configs).topic_id
        self._listen()
        seats, before = chance.randint(2, 5), tasks()
        async with anyio.create_task_group() as members, anyio.create_task_group() as looking:
            looking.start_soon(self._look)
            for seat in range(seats):
                members.start_soon(self.seats.sit, seat)
            every, lasting = chance.choice((1.0, 4.0, 10.0)), chance.choice((1.0, 5.0, 20.0))
            if not self.is_orderly:
                sim.chaos(every=(0.2, every), lasting=(0.05, lasting), releases=self.releases)
            with anyio.move_on_after(chance.uniform(10, 90)):
                async with anyio.create_task_group() as trouble:
                    trouble.start_soon(self._write, topics)
                    for producer in self.company.producers(sim, self.history, self.partitions) if self.company else ():
                        trouble.start_soon(producer.write)
                    if not self.is_orderly:
                        final = _FENCES[self.protocol] if self.group.static else None
                        async with refusing(sim, *_REFUSED[self.protocol], final=final, listen=self._listen):
                            await self._trouble_coordinators()
            await self._end_faults()
            settled = await self._settle()
            looking.cancel_scope.cancel()
            self.seats.end()
        await anyio.sleep(LATE)
        check_nothing_is_left(sim, before)
        logs = logs_of(sim, self.partitions)
        self.history.extend(logs_found(logs))
        check_in_the_end(self.history)
        assert not self.wrong, self.wrong
        watch, records, faults = self.history.group, sum(map(len, logs.values())), sim.trace.faults.total()
        generations = len(watch.generations)
        lives, commits, late = self.seats.lives, self.commits, watch.late
        return Outcome(records, lives, generations, commits, late, self.group, faults, settled, self.company)

    def _make_member(self, seat: int, name: str) -> Member | ForeignMember:
        company = self.company
        if company is None or seat not in company.seats:
            return Member(self.sim, self.history, self.wrong, self.group, seat, name, self.calm, self._listen)
        client, common = company.seats[seat], Common(company.release, company.strategy, self.partitions, self.topic_ids)
        name = f"{client.name}-{name}"
        return ForeignMember(self.sim, self.history, self.wrong, self.group, common, client, name, self.calm)

    async def _look(self) -> NoReturn:
        """Go no further than to the first thing that is wrong."""
        await self.alarm.wait()
        require_none(self.history.anomalies)
        raise AssertionError("the alarm was false")

    # --- what the coordinator says -----------------------------------------------------------------------------

    def _listen(self) -> None:
        """Hear of all assignments and commits, and lose some of the answers."""
        sim, chance = self.sim, self.sim.chance("lost answers")

        def synced(request: SyncGroupRequest, answer: SyncGroupResponse) -> SyncGroupResponse:
            if answer.error_code == 0:
                owner = request.group_instance_id or (self._asked(request).client_id or "")
                for where in decode_assignment(bytes(answer.assignment)).partitions if answer.assignment else ():
                    self.history.add(AssignmentSent(where, request.generation_id, owner))
            self._lose(chance.random())
            return answer

        def beaten(
            request: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse
        ) -> ConsumerGroupHeartbeatResponse:
            if answer.error_code == 0 and answer.assignment is not None:
                asked = self._asked(request)
                client, owner = asked.client_id or "", request.instance_id or (asked.client_id or "")
                members = frozenset(client_ids(sim.broker, GROUP))
                for topic in answer.assignment.topic_partitions:
                    name = asked.name_of(topic.topic_id)
                    assert name is not None
                    for index in topic.partitions:
                        where = TopicPartition(name, index)
                        self.history.add(AssignmentSent(where, answer.member_epoch, owner, client, members))
            self._lose(chance.random())
            return answer

        def committed(request: OffsetCommitRequest, answer: OffsetCommitResponse) -> OffsetCommitResponse:
            for commit in _commits(self._asked(request), answer):
                self.commits += 1
                self.history.add(commit)
            self._lose(chance.random())
            return answer

        for rule in self.listening:
            rule.remove()
        heard: dict[ApiKey, Callable[[Any, Any], Response]] = {
            ApiKey.SYNC_GROUP: synced,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: beaten,
            ApiKey.OFFSET_COMMIT: committed,
        }
        self.listening = [sim.broker.on(api, answer=answer, times=None) for api, answer in heard.items()]

    def _lose(self, chance: float) -> None:
        coordinator = self.sim.broker.coordinator(GROUP)
        is_due = chance < 0.02 and not self.is_orderly and not self.calm.is_set() and coordinator > 0
        if is_due and current_study().admits("cut"):
            self.sim.network.cut(coordinator)

    def _asked(self, request: Any) -> LoggedRequest:
        """What the journal has of a request that is being answered: of the latest, one."""
        journal = self.sim.broker.requests
        return next(asked for back in range(1, len(journal) + 1) if (asked := journal[-back]).request is request)

    async def _trouble_coordinators(self) -> NoReturn:
        """They move, take their time to read what was written, and their answers get lost."""
        broker, every = self.sim.broker, self.sim.chance("coordinators")
        longest = every.choice((5.0, 20.0, 60.0))
        while True:
            chance = await next_fault("coordinators", every, (0.5, longest))
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
        async with client, client.producer() as producer:
            for number in count():
                self.history.add(RecordSent("writer", value := b"%d" % number))
                try:
                    delivery = await producer.enqueue(chance.choice(topics), value)
                    note_acknowledgement(self.history, delivery, value)
                except KafkaError as error:
                    sim.note(f"the writer could not hand over {number}: {error}")
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
        return late + await until_settled(self.sim, self._state, limit=limit - late, wrong=self.wrong)

    async def _state(self) -> str:
        for where, log in logs_of(self.sim, self.partitions).items():
            if (done := self.history.group.of(where).done) < len(log):
                return f"{done} of {len(log)} records of {where} are finished"
        coordinator = self.sim.broker.coordinator(GROUP)
        (at,) = (address for address, node in self.sim.broker.addresses.items() if node == coordinator)
        async with RawClient(await self.sim.network.connector("who looks at groups")(*at)) as client:
            state, members = await who_takes_part(client, GROUP, self.protocol)
        known = sorted(member.instance_id or member.client_id for member in members)
        idle = sorted(member.name for member in self.seats.there.values() if not member.has)
        largest = max(Counter(where.topic for where in self.partitions).values())
        if state != "Stable" or known != sorted(member.owner for member in self.seats.there.values()):
            return f"{state}, of {', '.join(known)}"
        if idle and len(known) <= largest:
            return f"{', '.join(idle)} have no partition"
        return f"settled, in generation {max(self.history.group.generations)}"


def _commits(asked: LoggedRequest, answer: OffsetCommitResponse) -> Iterator[OffsetCommitted]:
    """The offsets that were taken."""
    request: OffsetCommitRequest = asked.request
    for topic, answered in zip(request.topics, answer.topics, strict=True):
        name = topic.name or asked.name_of(topic.topic_id)
        assert name is not None
        taken = {one.partition_index for one in answered.partitions if one.error_code == 0}
        for one in topic.partitions:
            if one.partition_index in taken:
                yield OffsetCommitted(
                    asked.client_id or "",
                    TopicPartition(name, one.partition_index),
                    one.committed_offset,
                    generation=request.generation_id_or_member_epoch,
                    member_id=request.member_id,
                    owner=request.group_instance_id or asked.client_id or "",
                    connection=asked.connection,
                )


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value, group = done.value, done.value.group
    assignors = " and ".join(group.strategies) or "assigned by the coordinator"
    clients = ", ".join(["ours", *(value.company.names if value.company else ())])
    return (
        f"seed {done.seed}: {value.records} records, {value.members} {'static ' if group.static else ''}members, "
        f"{clients}, {assignors}, {value.generations} generations, {value.commits} commits, {value.late} late, "
        f"{value.faults} faults, settled in {value.settled:.0f} s, {done.seconds:.0f} s of virtual time, "
        f"trace {done.trace.digest}"
    )
