"""Members of a group that are other clients, each from its beginning to its end."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final, TypeVar
from uuid import UUID

import anyio
import attrs
from histories.checking import History
from histories.events import RecordRead
from histories.group_events import (
    CommitAcknowledged,
    CommitRequested,
    MemberEnded,
    PartitionAssigned,
    PartitionRevoked,
    RecordFinished,
)
from support.raw_client import records_of

from aiokafkawire import ConsumerRecord, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.consumer_protocol import Assignment, by_topic, decode_assignment
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.group import HeartbeatRequest
from aiokafkawire.protocol.schema import Request, Response
from aiokafkawire.testing.simulation import Simulation

from .foreign_assignments import assignments
from .foreign_clients import COOPERATIVE, ForeignClient, Held
from .foreign_connections import UNREACHABLE, ForeignConnections
from .foreign_requests import (
    committed_offsets,
    join_request,
    leave_request,
    offset_commit_request,
    offset_fetch_request,
    sync_request,
)
from .members import CLOSES_WITHIN, GROUP, Group

__all__ = ("Common", "ForeignMember")

R = TypeVar("R", bound=Response)

_IS_LOST: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
"""The answers to a member that the group no longer has: it joins again as another one."""
_TOPIC_IDS_SINCE: Final = 13  # of Fetch


@attrs.frozen
class Common:
    """What the members of other clients have in common."""

    release: str
    """The release of Kafka that the brokers are."""
    strategy: str
    """An assignor that all members of the group have."""
    partitions: Sequence[TopicPartition]
    topic_ids: Mapping[str, UUID]


@attrs.define(eq=False)
class ForeignMember:
    """One member. Its heartbeats go on while it uses records; once it is done with them, it commits and joins again."""

    sim: Simulation
    history: History
    wrong: list[str]
    """What is wrong besides the anomalies of the history."""
    group: Group
    common: Common
    client: ForeignClient
    name: str
    calm: anyio.Event
    has: dict[TopicPartition, int | None] = attrs.field(factory=dict)
    """The partitions that it reads, and the offset of the next record; None if it does not know that yet."""
    chance: Random = attrs.field(init=False)
    _connections: ForeignConnections = attrs.field(init=False)
    _member_id: str = ""
    _generation: int = -1
    _held: Held = attrs.field(factory=Held)
    _rejoining: anyio.Event = attrs.field(factory=anyio.Event)
    """Set once it has to join again."""
    _is_lost: bool = False
    _committed: dict[TopicPartition, int] = attrs.field(factory=dict)
    _timeout: float = attrs.field(init=False)
    _interval: float = attrs.field(init=False)
    _pace: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)
        self._connections = ForeignConnections(self.sim, self.name)
        self._timeout = self.chance.choice((1.0, 5.0, 30.0))
        self._interval = self.chance.choice((0.5, 1.0, 2.0))
        self._pace = self.chance.choice((0.0, 0.0, 0.01, 0.1))

    @property
    def owner(self) -> str:
        """Whose the partitions are: none of these members is static."""
        return self.name

    @property
    def _strategies(self) -> Sequence[str]:
        return self.client.offers(self.common.strategy)

    @property
    def _is_cooperative(self) -> bool:
        return list(self._strategies) == [COOPERATIVE]

    # --- its life --------------------------------------------------------------------------------------------------

    async def live(self, scope: anyio.CancelScope) -> None:
        """Read until the scope is cancelled, then leave in order."""
        try:
            async with self._connections:
                with scope:
                    await self._take_part()
                with anyio.move_on_after(CLOSES_WITHIN):
                    await self._commit(self.has)
                    await self._leave()
        finally:
            self.history.add(MemberEnded(self.name))
            self.sim.note(f"{self.name} is gone")

    async def _take_part(self) -> None:
        while True:
            await self._join()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_heartbeats)
                await self._read()
                tasks.cancel_scope.cancel()

    async def _leave(self) -> None:
        if not self._member_id:
            return
        await self._ask(leave_request(self.client, self._member_id, self._version(ApiKey.LEAVE_GROUP)))

    # --- membership ------------------------------------------------------------------------------------------------

    async def _join(self) -> None:
        """Join, again and again, until there is an assignment."""
        if not self._is_cooperative:
            await self._commit(self.has)  # which may tell it that it is lost
        if self._is_lost:
            self._forget()
        elif not self._is_cooperative:
            self._give_up(list(self.has))
        self._rejoining = anyio.Event()
        while not await self._is_assigned():  # noqa: ASYNC110  # a client waits between two attempts
            await anyio.sleep(self.chance.uniform(0.01, 0.5))

    async def _is_assigned(self) -> bool:
        """Send JoinGroup and SyncGroup once; return whether there is an assignment."""
        slow = self.group.max_poll_interval_ms / 1000 + 5
        held = attrs.evolve(self._held, owned=tuple(self.has))
        request = join_request(self.client, self.group, self._strategies, self._member_id, held)
        joined = await self._ask(request, within=slow)
        if joined is None:
            return False
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
        elif joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            self.wrong.append(f"{self.name} may not join with {self._strategies}")
        if joined.error_code in _IS_LOST:
            self._forget()
        if joined.error_code:
            return False
        self._member_id, self._generation = joined.member_id, joined.generation_id
        leads = joined.leader == joined.member_id
        parts = assignments(self.client, joined, self.common.partitions, self.chance) if leads else []
        synced = await self._ask(sync_request(joined, parts, self._version(ApiKey.SYNC_GROUP)), within=slow)
        if synced is None or synced.error_code:
            if synced is not None and synced.error_code in _IS_LOST:
                self._forget()
            return False
        await self._take(decode_assignment(bytes(synced.assignment)) if synced.assignment else Assignment(()))
        return True

    async def _take(self, assignment: Assignment) -> None:
        """Give up what the assignment lacks, which makes a cooperative member join again, and take what it has."""
        assigned = assignment.partitions
        self._held = Held((), self._generation, assigned, assignment.user_data)
        revoked = [where for where in self.has if where not in assigned]
        if revoked:
            await self._commit(revoked)
            self._give_up(revoked)
            self._rejoining.set()
        for where in assigned:
            if where not in self.has:
                self.history.add(PartitionAssigned(self.name, where))
                self.has[where] = None

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        for where in partitions:
            self.history.add(PartitionRevoked(self.name, where))
            self._committed.pop(where, None)
            del self.has[where]

    def _forget(self) -> None:
        self._give_up(list(self.has))
        self._member_id, self._generation, self._is_lost = "", -1, False

    async def _send_heartbeats(self) -> None:
        while not self._is_lost:
            await anyio.sleep(self._interval)
            request = HeartbeatRequest(group_id=GROUP, generation_id=self._generation, member_id=self._member_id)
            answer = await self._ask(request)
            if answer is not None:
                self._hear(answer.error_code)

    def _hear(self, code: int) -> None:
        """Take in what a heartbeat or commit was answered."""
        if code in _IS_LOST:
            self._is_lost = True
        if self._is_lost or code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoining.set()

    # --- reading ---------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read and commit until it has to join again."""
        while not self._rejoining.is_set():
            await self._find_positions()
            is_idle = True
            for where, position in list(self.has.items()):
                records = [] if position is None else await self._fetch(where, position)
                if records:
                    is_idle = False
                    await self._use(where, records)
                if self._rejoining.is_set():
                    return
            if self.chance.random() < 0.3:
                await self._commit(self.has)
            if is_idle:
                with anyio.move_on_after(self.chance.uniform(0.1, 0.5)):
                    await self._rejoining.wait()

    async def _fetch(self, where: TopicPartition, position: int) -> Sequence[ConsumerRecord[bytes, bytes]]:
        leader, version = self.sim.broker.leader(*where), self._version(ApiKey.FETCH)
        topic = self.common.topic_ids[where.topic] if version >= _TOPIC_IDS_SINCE else where.topic
        limit = self.chance.choice((500, 1 << 20))
        try:
            data = await self._connections.ask(
                leader,
                "records",
                lambda client: client.fetch(
                    topic, position, partition=where.partition, partition_max_bytes=limit, version=version
                ),
                within=self._timeout,
            )
        except UNREACHABLE:
            return ()
        # A compressed batch, or message, has records before the offset that was asked for.
        return [] if data.error_code else [record for record in records_of(data) if record.offset >= position]

    async def _use(self, where: TopicPartition, records: Sequence[ConsumerRecord[bytes, bytes]]) -> None:
        for record in records:
            generation = self._held.generation
            self.history.add(RecordRead(self.name, where, record.offset, record.value, generation, self.name))
        for record in records:
            await self._dawdle()
            self.history.add(RecordFinished(where, record.offset))
            self.has[where] = record.offset + 1

    async def _dawdle(self) -> None:
        chance = self.chance.random()
        if self.calm.is_set():
            return
        if chance < 0.0005:
            self.sim.note(f"{self.name} asks for nothing")
            with anyio.move_on_after(self.group.max_poll_interval_ms / 1000 + self.chance.uniform(-1, 10)):
                await self.calm.wait()
        elif chance < 0.005:
            await anyio.sleep(self.chance.uniform(0, 4))
        elif self._pace:
            await anyio.sleep(self.chance.uniform(0, self._pace))

    # --- offsets ---------------------------------------------------------------------------------------------------

    async def _find_positions(self) -> None:
        """Ask for the committed offsets of new partitions; without one, it begins at 0."""
        unknown = by_topic(where for where, position in self.has.items() if position is None)
        if not unknown:
            return
        answer = await self._ask(offset_fetch_request(unknown, self._version(ApiKey.OFFSET_FETCH)))
        for where, offset in () if answer is None else committed_offsets(answer):
            if where in self.has:
                self.has[where] = max(offset, 0)

    async def _commit(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit what is finished of these partitions."""
        due = {
            where: position
            for where in partitions
            if (position := self.has[where]) is not None and position != self._committed.get(where, 0)
        }
        if not due or self._is_lost:
            return
        request = offset_commit_request(self.client, self._member_id, self._generation, due)
        for where, offset in due.items():
            self.history.add(CommitRequested(self.name, where, offset))
        answer = await self._ask(request)
        for topic in () if answer is None else answer.topics:
            for one in topic.partitions:
                where = TopicPartition(topic.name, one.partition_index)
                self._hear(one.error_code)
                if not one.error_code:
                    self._committed[where] = due[where]
                    self.history.add(CommitAcknowledged(self.name, where, due[where]))

    # --- asking ----------------------------------------------------------------------------------------------------

    def _version(self, api: ApiKey) -> int:
        return self.client.version(api, self.common.release)

    async def _ask(self, request: Request[R], *, within: float | None = None) -> R | None:
        """Ask the coordinator; None if there is no answer."""
        api = ApiKey(request.api_key)
        version = self._version(api)
        try:
            return await self._connections.ask(
                self.sim.broker.coordinator(GROUP),
                "group",
                lambda client: client.ask(request, version),
                within=self._timeout if within is None else within,
            )
        except UNREACHABLE as error:
            self.sim.note(f"{self.name} gets no answer to {api.name}: {type(error).__name__}")
            return None
