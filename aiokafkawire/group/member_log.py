"""Logs how a member joins its group, leaves it, and loses its membership."""

import logging

from ..errors import FencedInstanceId
from .membership import GroupState, Membership

__all__ = ("MemberLog",)

_log = logging.getLogger("aiokafkawire.group")


class MemberLog:
    """The log of one member: one line for each change of its membership, not for each request or retry."""

    def __init__(self, machine: Membership) -> None:
        self._machine = machine
        self._generation = -1
        self._last = self._refusal = ""
        machine.on_enter = self.entered

    def entered(self, before: GroupState) -> None:
        """Log the change from the state ``before`` to the current one, if it changes the membership."""
        machine, state = self._machine, self._machine.state
        named = machine.settings.named
        if state is GroupState.PREPARING:
            self._joining(before)
        elif state is GroupState.STABLE:
            group = machine.group
            self._generation, self._last, self._refusal = group.generation_id, "", ""
            leads = ", as its leader" if machine.leads else ""
            protocol = f", protocol {machine.protocol!r}" if machine.protocol else ""
            message = "joined %s%s: %s %d%s, member id %r"
            _log.info(message, named, leads, machine.generation_name, group.generation_id, protocol, group.member_id)
        elif state is GroupState.OUTSIDE:
            self._left(before)
        elif state is GroupState.FAILED:
            self._generation = -1
            what = "fenced by another member of" if isinstance(machine.error, FencedInstanceId) else "refused by"
            line = f"{what} {named}: {machine.error}"
            _log.log(logging.DEBUG if line == self._refusal else logging.WARNING, "%s", line)
            self._refusal = line

    def _joining(self, before: GroupState) -> None:
        machine = self._machine
        named, reason = machine.settings.named, machine.reason
        if machine.is_member:
            line = f"rejoining {named}, {machine.generation_name} {machine.group.generation_id}: {reason}"
        elif self._generation >= 0:
            line = f"lost the membership in {named}, {machine.generation_name} {self._generation}: {reason}; rejoining"
            self._generation = -1
        elif before in (GroupState.OUTSIDE, GroupState.FAILED):
            line = f"joining {named}: {reason}"
        else:
            line = f"joining {named} again: {reason}"
        _log.log(logging.DEBUG if line == self._last else logging.INFO, "%s", line)
        self._last = line

    def _left(self, before: GroupState) -> None:
        settings, generation = self._machine.settings, self._generation
        self._generation, self._last = -1, ""
        if generation < 0 and before is not GroupState.LEAVING:
            return
        if settings.group_instance_id is not None:
            keeps = f"its partitions stay assigned for {_session_timeout(self._machine)}"
            name = settings.group_instance_id
            _log.info("static member %r of %s stops: %s; %s", name, settings.named, self._machine.reason, keeps)
        else:
            _log.info("left %s: %s", settings.named, self._machine.reason)

    def stopped(self) -> None:
        """Log that the member stops before the coordinator has responded to its LeaveGroup."""
        if self._machine.state is GroupState.LEAVING:
            settings = self._machine.settings
            when = f"at the latest after {_session_timeout(self._machine)}"
            message = "stopping before the coordinator of %s has answered LeaveGroup; it removes the member %s"
            _log.info(message, settings.named, when)


def _session_timeout(machine: Membership) -> str:
    if machine.generation_name != "generation":
        return "the session timeout of the group's coordinator"
    return f"{machine.settings.session_timeout_ms / 1000:g} s (session_timeout_ms)"
