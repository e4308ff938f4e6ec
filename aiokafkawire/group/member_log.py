"""Logs how a member joins its group, leaves it, and loses its membership."""

import logging
from collections.abc import Callable

from ..errors import FencedInstanceId
from ..event_log import EventLog, TroubleLog
from .membership import GroupState, Membership

__all__ = ("MemberLog",)

_log = EventLog("aiokafkawire.group")


class MemberLog:
    """The log of one member: one line for each change of its membership, not for each request or retry.

    Args:
        machine: the member.
        now: the runtime's clock, in seconds.
        client_id: the client's id, for the records.
    """

    def __init__(self, machine: Membership, now: Callable[[], float], client_id: str) -> None:
        self._machine, self._client_id = machine, client_id
        self._generation = -1
        # The line that was logged last: if it comes again, it is a retry.
        self._last: tuple[object, ...] = ()
        self._refusal = ""
        self._retries = TroubleLog(_log, now, first=logging.DEBUG)
        machine.on_enter = self.entered

    def entered(self, before: GroupState) -> None:
        """Log the change from the state ``before`` to the current one, if it changes the membership."""
        state = self._machine.state
        if state is GroupState.PREPARING:
            self._joining(before)
        elif state is GroupState.STABLE:
            self._joined()
        elif state is GroupState.OUTSIDE:
            self._left(before)
        elif state is GroupState.FAILED:
            self._refused()

    def _joined(self) -> None:
        machine, group = self._machine, self._machine.group
        self._generation, self._last, self._refusal = group.generation_id, (), ""
        message = "joined group %(group)r%(leads)s: %(unit)s %(generation)d%(assigned_by)s, member id %(member_id)r"
        text = {
            "leads": ", as its leader" if machine.leads else "",
            "unit": machine.generation_name,
            "assigned_by": f", protocol {machine.protocol!r}" if machine.protocol else "",
        }
        fields: dict[str, object] = {
            "group": group.group_id,
            "generation": group.generation_id,
            "member_id": group.member_id,
            "instance": machine.settings.group_instance_id,
            "protocol": machine.protocol or None,
            "client_id": self._client_id,
        }
        if not self._retries.ended("join", message, text=text, **fields):
            _log.info(message, text=text, **fields)

    def _refused(self) -> None:
        machine = self._machine
        self._generation = -1
        is_fenced = isinstance(machine.error, FencedInstanceId)
        message = "fenced by another member of group %(group)r: %(error)s"
        if not is_fenced:
            message = "refused by group %(group)r, the next poll tries again: %(error)s"
        group, refusal = machine.settings.group_id, str(machine.error)
        if refusal == self._refusal:
            self._retries.failed("join", message, group=group, error=machine.error)
        else:
            _log.warning(message, group=group, instance=machine.settings.group_instance_id, error=machine.error)
        self._refusal = refusal

    def _joining(self, before: GroupState) -> None:
        machine, generation = self._machine, self._generation
        if machine.is_member:
            message = "rejoining group %(group)r, %(unit)s %(generation)d: %(reason)s"
            generation = machine.group.generation_id
        elif generation >= 0:
            message = "lost the membership in group %(group)r, %(unit)s %(generation)d: %(reason)s; rejoining"
            self._generation = -1
        elif before in (GroupState.OUTSIDE, GroupState.FAILED):
            message = "joining group %(group)r: %(reason)s"
        else:
            message = "joining group %(group)r again: %(reason)s"
        text = {"unit": machine.generation_name}
        fields: dict[str, object] = {
            "group": machine.settings.group_id,
            "reason": machine.reason,
            "generation": generation if generation >= 0 else None,
            "client_id": self._client_id,
        }
        said = (message, generation, machine.reason)
        if said == self._last:
            self._retries.failed("join", message, text=text, **fields)
        else:
            _log.info(message, text=text, **fields)
        self._last = said

    def _left(self, before: GroupState) -> None:
        settings, generation = self._machine.settings, self._generation
        self._generation, self._last = -1, ()
        if generation < 0 and before is not GroupState.LEAVING:
            return
        group, reason = settings.group_id, self._machine.reason
        if settings.group_instance_id is not None:
            _log.info(
                "static member %(instance)r of group %(group)r stops: %(reason)s; its partitions stay assigned for "
                "%(timeout)s",
                text={"timeout": _session_timeout(self._machine)},
                instance=settings.group_instance_id,
                group=group,
                reason=reason,
            )
        else:
            _log.info("left group %(group)r: %(reason)s", group=group, reason=reason, client_id=self._client_id)

    def stopped(self) -> None:
        """Log that the member stops before the coordinator has responded to its LeaveGroup."""
        if self._machine.state is GroupState.LEAVING:
            _log.info(
                "stopping before the coordinator of group %(group)r has answered LeaveGroup; it removes the member at "
                "the latest after %(timeout)s",
                text={"timeout": _session_timeout(self._machine)},
                group=self._machine.settings.group_id,
            )


def _session_timeout(machine: Membership) -> str:
    if machine.generation_name != "generation":
        return "the session timeout of the group's coordinator"
    return f"{machine.settings.session_timeout_ms / 1000:g} s (session_timeout_ms)"
