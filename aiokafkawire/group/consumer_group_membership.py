"""The state machine of a consumer group's member: ConsumerGroupHeartbeat (KIP-848).

The rules:

1. One heartbeat is in flight at a time. It joins with epoch 0, and leaves with epoch -1, or -2 if the member stays.
2. A heartbeat has the subscription and the partitions only if they have changed. After a heartbeat without a response
   the next one has all fields, since the coordinator may have handled the last one.
3. When a response has an assignment, the member revokes the partitions that are missing in it, and reads the added ones
   (:class:`Reconcile`). Then it acknowledges at once. The coordinator gives a partition to another member only after
   that, so the members never wait for one another.
4. A newer assignment replaces the one that is being applied.
5. A member keeps its partitions until the coordinator ends the membership, even if the coordinator is unreachable. Then
   it loses them at once, and rejoins with epoch 0 under the same id.
6. A static member whose join is refused, since its instance id is in use, first releases the id with epoch -2: the
   coordinator may still count its own last membership. It refuses that too if the id is another member's, or that of a
   process that has crashed, until its session ends. The user gets the error, and the next poll joins again.
7. After a refused commit the member sends a heartbeat at once: the epoch may have changed, or the membership ended.

Share groups (KIP-932) have the same heartbeats, without what members own: they share partitions.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import attrs

from ..errors import BrokerError, ErrorCode, FencedInstanceId, KafkaError, RequestTimeout, WireError, broker_error
from ..protocol.schema import Request
from ..types import GroupMetadata
from .consumer_group_requests import (
    CONSUMER_GROUP,
    DEFAULT_HEARTBEAT_INTERVAL,
    JOIN_EPOCH,
    THEN,
    HeartbeatErrorAction,
    HeartbeatRequests,
    ServerSubscription,
    as_request,
    request_timeout,
)
from .membership import (
    CoordinatorRequest,
    GroupState,
    LosePartitions,
    MemberSettings,
    PrepareRejoin,
    Reconcile,
    RequestKind,
    Task,
    TopicIdPartitions,
)

__all__ = ("ConsumerGroupMembership",)

_OUTSIDE, _PREPARING, _ENTERING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.ENTERING
_STABLE, _LEAVING, _FAILED = GroupState.STABLE, GroupState.LEAVING, GroupState.FAILED

_AT_ONCE: Final = float("-inf")


class ConsumerGroupMembership:
    """The :class:`~.membership.Membership` of one member in a consumer group or a share group.

    The executor of a :attr:`task` reports its result by :meth:`prepared`, :meth:`reconciled` or :meth:`task_done`.

    Args:
        settings: the member's settings. The coordinator decides on the session timeout and the heartbeat interval.
        member_id: a random id, the member's for as long as its process lives (KIP-1082).
        requests: the heartbeats of the kind of group.
    """

    def __init__(self, settings: MemberSettings, member_id: str, requests: HeartbeatRequests = CONSUMER_GROUP) -> None:
        self._requests = requests
        self.settings: MemberSettings = settings
        self.member_id: str = member_id
        self.epoch: int = JOIN_EPOCH
        """The member epoch; 0 outside the group."""
        self.subscription: ServerSubscription = ServerSubscription()
        self.owned: TopicIdPartitions = {}
        """The partitions that the member has, as far as the coordinator may know."""
        self.state: GroupState = _OUTSIDE
        self.error: KafkaError | None = None
        self.task: Task | None = None
        self.last_group: GroupMetadata | None = None
        self.confirmed_at: float | None = None
        self.rebalances: int = 0
        self.reason: str = ""
        self.protocol: str = settings.remote_assignor or ""
        self.leads: bool = False
        self.heartbeat_interval: float = DEFAULT_HEARTBEAT_INTERVAL
        """The interval that the coordinator has told, in seconds; before its first response Kafka's default."""
        self.is_in_consumer_group: bool = True
        self.generation_name: str = "member epoch"
        self.on_enter: Callable[[GroupState], None] = lambda before: None
        self._assignment: TopicIdPartitions = {}
        self._request: CoordinatorRequest | None = None
        self._stays = False
        self._rejoin_reason: str | None = None
        # The subscription and partitions that the coordinator knows; None if that is uncertain.
        self._known: tuple[ServerSubscription, TopicIdPartitions] | None = None
        # Those that it will know once it has answered the heartbeat in flight.
        self._sending: tuple[ServerSubscription, TopicIdPartitions] | None = None
        self._heartbeat_at = _AT_ONCE
        self._back_off_until = 0.0
        # Whether the coordinator has accepted a heartbeat since the join.
        self._is_accepted = False
        # Whether a commit was refused, so that the next heartbeat decides.
        self._in_doubt = False
        # The error of a join, while the member releases its instance id; and whether it has done so.
        self._unreleased: BrokerError | None = None
        self._has_released = False

    @property
    def group(self) -> GroupMetadata:
        """The membership under which offsets are committed now; its generation id is the member epoch."""
        settings, epoch = self.settings, self.epoch if self.is_member else -1
        member_id = self.member_id if self.is_member else ""
        return GroupMetadata(settings.group_id, epoch, member_id, settings.group_instance_id)

    @property
    def is_member(self) -> bool:
        """Whether the member has an epoch that has not ended, as far as this client knows."""
        return self.epoch > JOIN_EPOCH

    @property
    def is_rebalancing(self) -> bool:
        """Whether the membership is uncertain: the member is joining, or a commit was refused."""
        return self.state in (_PREPARING, _ENTERING) or self._in_doubt

    @property
    def sends_heartbeats(self) -> bool:
        """Whether the member sends heartbeats at intervals."""
        return self.state is _STABLE

    @property
    def request_timeout(self) -> float:
        """The seconds that the coordinator may take to respond: see :func:`request_timeout`."""
        return request_timeout(self.heartbeat_interval)

    # --- requests of the user -----------------------------------------------------------------------------

    def subscribe(self, subscription: ServerSubscription) -> None:
        """Set the subscription to send, with the join or with the next heartbeat."""
        if subscription.pattern is None and self.subscription.pattern is not None:
            subscription = attrs.evolve(subscription, pattern="")
        self.subscription = subscription

    def request_rejoin(self, reason: str) -> None:
        """Join, now or after the leave in progress; a member sends a heartbeat with its subscription instead."""
        is_refused = self.state is _FAILED and not isinstance(self.error, FencedInstanceId)
        if is_refused or (self.state is _OUTSIDE and self.task is None):
            self._prepare(reason)
        elif self.state in (_ENTERING, _STABLE):
            self.reason, self._heartbeat_at = reason, _AT_ONCE
        elif self.state in (_OUTSIDE, _LEAVING):
            self._rejoin_reason = reason

    def back_off(self, now: float, seconds: float | None = None) -> None:
        """Back off: send no request for this time, by default ``retry_backoff``."""
        self._back_off_until = now + (self.settings.retry_backoff if seconds is None else seconds)

    def leave(self, reason: str, *, stays: bool | None = None) -> None:
        """Leave the group. A dynamic member that ``stays`` sends no request; its session then times out (KIP-1092)."""
        self._rejoin_reason = None
        if self.state in (_OUTSIDE, _LEAVING):
            return
        self.reason, self.task = reason, None
        is_static = self.settings.group_instance_id is not None
        self._stays = is_static if stays is None else stays
        # A join that is in flight may make the member one.
        if (self.is_member or self._request is not None) and (is_static or not self._stays):
            self._enter(_LEAVING)
        else:
            self._enter(_OUTSIDE)
            self._reset()

    def poll_timeout(self, reason: str) -> None:
        """Leave the group because poll() was not called in time, and lose all partitions."""
        self.leave(reason)
        self.task = LosePartitions(reason)

    # --- results of the tasks ----------------------------------------------------------------------------

    def prepared(self, task: Task) -> None:
        """Send the heartbeat that joins, now that :class:`PrepareRejoin` is done."""
        if task is self.task:
            self.task = None
            self._enter(_ENTERING)

    def taking(self, task: Task, partitions: TopicIdPartitions) -> None:
        """Report these partitions of the assignment until :meth:`reconciled`, since the member takes them now.

        If a newer assignment lacks some of them, the coordinator must not give them to others before they are revoked.
        """
        if task is self.task:
            self.owned = _union(self.owned, partitions)

    def reconciled(self, task: Task, owned: TopicIdPartitions) -> None:
        """Acknowledge the assignment: the member has the partitions ``owned`` now.

        They are fewer than assigned if the metadata of a topic is missing; see :meth:`reconcile_again`.
        """
        if not self.is_member:
            return
        self.owned = _normalized(owned)
        if task is self.task:
            self.task = None
        if self._known is None or self._known[1] != self._reported():
            self._heartbeat_at = _AT_ONCE

    def reconcile_again(self, *, has_lost: bool = False) -> None:
        """Apply the assignment again if the member lacks or ``has_lost`` partitions of it, as newer metadata shows."""
        if self.state is _STABLE and self.task is None and (has_lost or self.owned != self._assignment):
            self.task = Reconcile(self.epoch, self._assignment)

    def task_done(self, task: Task) -> None:
        """End a :class:`LosePartitions`."""
        if task is self.task:
            self.task = None
            self._rejoin_if_requested()

    def task_failed(self, task: Task, error: KafkaError) -> None:
        """End the membership with this error, since the task has failed with it."""
        if task is self.task:
            self._fail(error)

    # --- the requests ------------------------------------------------------------------------------------

    def due(self, now: float) -> list[CoordinatorRequest]:
        """Return the request to send now, if any; the next one is returned only after its result was reported."""
        if self._request is None and self._due_at is not None and now >= self._due_at:
            if self.state is _LEAVING:
                self._request = self._requests.leave(self.settings, self.member_id, stays=self._stays)
            elif self._unreleased is not None:
                self._request = self._requests.leave(self.settings, self.member_id, stays=True)
            else:
                self._request = self._heartbeat()
                self._heartbeat_at = now + self.heartbeat_interval
            return [self._request]
        return []

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next request is due; None if only a call of another method makes one due."""
        return None if self._request is not None or self._due_at is None else max(0.0, self._due_at - now)

    @property
    def _due_at(self) -> float | None:
        if self.state is _STABLE:
            return max(self._heartbeat_at, self._back_off_until)
        return self._back_off_until if self.state in (_ENTERING, _LEAVING) else None

    def _heartbeat(self) -> CoordinatorRequest:
        reported = self._reported()
        self._sending = (self.subscription, reported)
        again = self.thread_heartbeat()
        first = again
        if self._known is not None:
            subscription, owned = self._known
            changed = self.subscription if subscription != self.subscription else None
            first = self._requests.heartbeat(
                self.settings, self.member_id, self.epoch, changed, reported if owned != reported else None
            )
        return as_request(first, again, self._requests.versions, with_pattern=self.subscription.pattern is not None)

    def thread_heartbeat(self) -> Request[Any]:
        """Build a heartbeat with all fields, which the coordinator accepts under the last two epochs."""
        return self._requests.heartbeat(self.settings, self.member_id, self.epoch, self.subscription, self._reported())

    def _reported(self) -> TopicIdPartitions:
        """Return the partitions that the member has or may take before the response; others may get the rest."""
        if not self._requests.reports_partitions:
            return {}
        return _union(self.owned, self._assignment)

    def is_current(self, request: CoordinatorRequest) -> bool:
        """Return whether the response to this request still counts."""
        return request is self._request

    # --- the results ------------------------------------------------------------------------------------

    def answered(self, request: CoordinatorRequest, response: Any, now: float) -> None:
        """Handle the coordinator's response, with or without an error."""
        if not self.is_current(request):
            return
        self._request = None
        if request.kind is RequestKind.LEAVE:
            self._left(released=response.error_code == ErrorCode.NONE)
        elif response.error_code == ErrorCode.NONE:
            self._confirmed(response, now)
        else:
            message = f"{self._requests.name} of {self.settings.named}"
            if response.error_message:
                message += f" ({response.error_message})"
            self._handle_error(broker_error(response.error_code, message), now)

    def refused(self, request: CoordinatorRequest, error: KafkaError, now: float) -> None:
        """Handle a request that failed, after all its retries."""
        if not self.is_current(request):
            return
        self._request, self._known = None, None
        if request.kind is RequestKind.LEAVE:
            self._left(released=False)
        elif isinstance(error, RequestTimeout):
            self._heartbeat_at = now
        elif isinstance(error, BrokerError):
            self._handle_error(error, now)
        else:
            self._fail(error)

    def commit_refused(self, group: GroupMetadata, error: BrokerError, now: float) -> None:
        """Handle the error of a commit under ``group``: its epoch may be outdated, or the membership may have ended."""
        if group.member_id == self.member_id and self.state is _STABLE and (RequestKind.COMMIT, error.code) in THEN:
            # The heartbeat in flight, if any, may have been answered before the commit was refused.
            self._in_doubt, self._heartbeat_at = True, _AT_ONCE

    def on_thread_heartbeat(self, group: GroupMetadata, code: int, now: float, epoch: int | None = None) -> None:
        """Handle the result of a heartbeat that the heartbeat thread has sent for this member."""
        if group.member_id != self.member_id or not self.sends_heartbeats:
            return
        # The response may have had an assignment, which a heartbeat with all fields returns again. The response to the
        # heartbeat in flight may be older, with an epoch that the coordinator no longer accepts.
        self._request, self._known, self._heartbeat_at = None, None, _AT_ONCE
        if code != ErrorCode.NONE:
            self._handle_error(broker_error(code, f"{self._requests.name} of {self.settings.named}"), now)
            return
        self._confirm(now)
        if epoch is not None and epoch > self.epoch:
            self._set_epoch(epoch)
            if isinstance(self.task, Reconcile):
                self.task = None  # the assignment may be outdated, and other members may have the added partitions

    def _confirmed(self, response: Any, now: float) -> None:
        if response.member_epoch <= JOIN_EPOCH:
            message = f"{self._requests.name} of {self.settings.named} returned member epoch {response.member_epoch}"
            self._fail(WireError(f"{message}, expected a positive one"))
            return
        self._confirm(now)
        self._known, self._in_doubt = self._sending, False
        self._set_epoch(response.member_epoch)
        if response.heartbeat_interval_ms > 0:
            self.heartbeat_interval = response.heartbeat_interval_ms / 1000
            self._heartbeat_at = min(self._heartbeat_at, now + self.heartbeat_interval)
        self._is_accepted = self.state is _STABLE
        if self.state is _ENTERING:
            self._has_released = False
            self._enter(_STABLE)
        if response.assignment is not None:
            assigned = response.assignment.topic_partitions
            self._assign(_normalized({topic.topic_id: topic.partitions for topic in assigned}))

    def _assign(self, assignment: TopicIdPartitions) -> None:
        is_new = assignment != self._assignment
        self.rebalances += is_new
        self._assignment = assignment
        # A heartbeat with all fields returns the assignment that is being applied once more.
        if is_new or (self.task is None and self.owned != assignment):
            self.task = Reconcile(self.epoch, assignment)

    def _confirm(self, now: float) -> None:
        self.confirmed_at = now if self.confirmed_at is None else max(now, self.confirmed_at)

    def _set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.last_group = self.group

    def _handle_error(self, error: BrokerError, now: float) -> None:
        action = THEN.get((RequestKind.HEARTBEAT, error.code), HeartbeatErrorAction.FAIL)
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND and self.is_member:
            action = HeartbeatErrorAction.LOSE  # the group has expired, since its members were gone
        if action is HeartbeatErrorAction.LOSE and self.is_member:
            if not self._is_accepted:
                self.back_off(now)  # else it might join and be removed in a loop
            self._reset()
            self._prepare(
                f"the coordinator refused the membership with {type(error).__name__}: no heartbeat reached it within "
                "the session timeout, revoking took longer than max_poll_interval_ms, or the member was removed"
            )
        elif action is HeartbeatErrorAction.LOSE:
            self._known = None
            self.back_off(now)
        elif error.code == ErrorCode.UNRELEASED_INSTANCE_ID and self.state is _ENTERING and not self._has_released:
            self._unreleased = error
        else:
            self._fail(error)

    def _prepare(self, reason: str) -> None:
        lost = self.state is _STABLE or isinstance(self.task, LosePartitions)
        self.error, self.reason, self._rejoin_reason = None, reason, None
        self._enter(_PREPARING)
        self.task = PrepareRejoin(lost=lost, reason=reason)

    def _left(self, *, released: bool) -> None:
        if self._unreleased is not None and self.state is _ENTERING:
            error, self._unreleased, self._has_released = self._unreleased, None, True
            if not released:
                self._fail(error)
            return
        self._enter(_OUTSIDE)
        self._reset()
        if self.task is None:
            self._rejoin_if_requested()

    def _rejoin_if_requested(self) -> None:
        reason, self._rejoin_reason = self._rejoin_reason, None
        if reason is not None:
            self.request_rejoin(reason)

    def _fail(self, error: KafkaError) -> None:
        self.error = self._requests.explained(self.settings, error, with_pattern=self.subscription.pattern is not None)
        self._has_released = False
        self._enter(_FAILED)
        self._reset()
        self.task = LosePartitions(str(self.error))

    def _reset(self) -> None:
        self.epoch, self.owned, self._assignment = JOIN_EPOCH, {}, {}
        self._known, self._in_doubt, self._unreleased = None, False, None

    def _enter(self, state: GroupState) -> None:
        before, self.state = self.state, state
        # A request of the previous state no longer counts.
        self._request = None
        self.on_enter(before)


def _normalized(partitions: Mapping[UUID, Iterable[int]]) -> dict[UUID, list[int]]:
    ordered = ((topic_id, sorted(indexes)) for topic_id, indexes in partitions.items())
    return {topic_id: indexes for topic_id, indexes in ordered if indexes}


def _union(one: TopicIdPartitions, other: TopicIdPartitions) -> dict[UUID, list[int]]:
    return _normalized({topic: {*one.get(topic, ()), *other.get(topic, ())} for topic in {*one, *other}})
