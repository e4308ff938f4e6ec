"""Sends a member's heartbeats on another thread's event loop, over a connection of that event loop."""

from collections.abc import Callable
from copy import copy
from typing import Any

import anyio
import attrs

from ..config import ClientConfig
from ..config.network import parse_proxy
from ..errors import ErrorCode, InvalidMessage, UnsupportedVersion, as_kafka_error
from ..network.connection import Connection
from ..network.connector import Connector, connect_tcp
from ..protocol.pre_api_versions import BrokerVersion
from ..runtime import Owner, Runtime
from ..types import Address
from .background_heartbeat_schedule import HeartbeatAction, HeartbeatMember, HeartbeatReport, HeartbeatSchedule

__all__ = ("HeartbeatSender",)


class HeartbeatSender:
    """A task that sends heartbeats while the member's loop is blocked.

    The rules are those of :mod:`.background_heartbeat_schedule`. Call all methods on the event loop that runs the task.

    Args:
        config: the client's settings.
        address_of: maps the address that a broker advertises to the one to dial.
        report: is called with each report of the schedule.
        max_poll_interval: for how long heartbeats are sent without a poll, in seconds (KIP-62).
        connector: opens byte streams to brokers.
        backoff: the wait after a failure, in seconds; it doubles up to ``backoff_max``.
        runtime: the clock.
    """

    def __init__(
        self,
        config: ClientConfig,
        address_of: Callable[[Address], Address],
        report: Callable[[HeartbeatReport], None],
        *,
        max_poll_interval: float,
        connector: Connector = connect_tcp,
        backoff: float = 0.05,
        backoff_max: float = 1.0,
        runtime: Runtime | None = None,
    ) -> None:
        if config.proxy is not None:
            from ..network.proxy_connector import proxied

            connector = proxied(parse_proxy(config.proxy), connector)
        self._config, self._address_of, self._report, self._connector = config, address_of, report, connector
        self._schedule = HeartbeatSchedule(
            max_poll_interval=max_poll_interval, backoff=backoff, backoff_max=backoff_max
        )
        self._runtime = runtime or Runtime()
        self._now = self._runtime.now
        self._owner = Owner()
        self._broker: Address | None = None
        self._connection: Connection | None = None
        self._sending: anyio.CancelScope | None = None
        self._changed = anyio.Event()
        # The member epoch in the last response, for the member that it was sent to.
        self._advanced: tuple[HeartbeatMember | None, int | None] = (None, None)

    async def run(self) -> None:
        """Send the heartbeats that are due until cancelled, then close the connection."""
        await self._owner.open()
        try:
            while True:
                self._changed = anyio.Event()
                await self._step()
        finally:
            with anyio.CancelScope(shield=True):
                await self._disconnect()
                await self._owner.close()

    def set_member(self, member: HeartbeatMember | None) -> None:
        """Set the member to send heartbeats for, whose membership was just confirmed; None for no heartbeats."""
        if self._schedule.set_member(member, self._now()):
            if self._sending is not None and member is not None and member.broker != self._broker:
                self._sending.cancel()  # the previous coordinator may be dead
            self._changed.set()

    def record_heartbeat(self) -> None:
        """Record that the coordinator has answered a heartbeat that the member itself sent, from its event loop."""
        self._schedule.record_heartbeat(self._now())

    def record_poll(self) -> None:
        """Record that the user has polled."""
        self._schedule.record_poll(self._now())
        self._changed.set()

    async def _step(self) -> None:
        now, member = self._now(), self._schedule.member
        action, wait = self._schedule.step(now)
        if action is HeartbeatAction.SEND and member is not None:
            with anyio.CancelScope() as self._sending:
                report = await self._send(member, now)
                if report is not None:
                    self._report(report)
            self._sending = None
        elif action is HeartbeatAction.DISCONNECT:
            await self._disconnect()
        else:
            with anyio.move_on_after(wait):
                await self._changed.wait()

    async def _send(self, member: HeartbeatMember, sent_at: float) -> HeartbeatReport | None:
        try:
            response = await self._request(member)
        except (UnsupportedVersion, InvalidMessage) as refusal:
            return self._schedule.refused(member, refusal, self._now())
        except Exception as failure:  # callbacks in the settings may raise any exception
            await self._disconnect()
            error = as_kafka_error(failure, f"sending a heartbeat to {member.broker}")
            return self._schedule.failed(member, error, self._now())
        report = self._schedule.answered(member, response.error_code, sent_at, self._now())
        return attrs.evolve(report, epoch=_epoch_in(response)) if report is not None else None

    async def _request(self, member: HeartbeatMember) -> Any:
        deadline = self._now() + member.request_timeout
        connection = await self._connect(member)
        request = member.request
        advanced, epoch = self._advanced
        if advanced is member and epoch is not None:
            request = copy(request)
            request.member_epoch = epoch  # type: ignore[attr-defined]  # a heartbeat of a consumer group
        response = await connection.request(request, timeout=deadline - self._now())
        self._advanced = (member, _epoch_in(response))
        return response

    async def _connect(self, member: HeartbeatMember) -> Connection:
        if self._connection is None or self._connection.failure is not None or self._broker != member.broker:
            await self._disconnect()
            self._broker = member.broker
            self._connection = await Connection.open(
                self._connector,
                *member.broker,
                config=self._config,
                owner=self._owner,
                runtime=self._runtime,
                within=member.request_timeout,
                known=BrokerVersion(member.release) if member.release is not None else None,
                dialled=self._address_of(member.broker),
            )
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _epoch_in(response: Any) -> int | None:
    """Return the member epoch in a response without an error; None if the group protocol has none."""
    return getattr(response, "member_epoch", None) if response.error_code == ErrorCode.NONE else None
