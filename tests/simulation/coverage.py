"""The transitions of state machines and the error codes of responses that runs have met, and those that they missed."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

from aiokafkawire.errors import ErrorCode
from aiokafkawire.group import classic_membership, consumer_group_membership
from aiokafkawire.producer import transaction_state_machine
from aiokafkawire.testing.broker import Broker
from aiokafkawire.testing.faults.error_responses import error_places

from .expected_codes import EXPECTED

__all__ = ("Met", "codes_of", "missed_codes", "missed_transitions", "watching_transitions")

Met = Counter[tuple[str, str]]
"""How often what was met: of a machine a transition, of a request an error code."""

_NEXT: Mapping[str, Mapping[Any, tuple[Any, ...]]] = {
    "classic member": classic_membership.NEXT,
    "transactional producer": transaction_state_machine._NEXT,
}
_MACHINES: Mapping[str, type[Any]] = {
    "classic member": classic_membership.ClassicMembership,
    "consumer group member": consumer_group_membership.ConsumerGroupMembership,
    "transactional producer": transaction_state_machine.TransactionStateMachine,
}
_STATE = {"transactional producer": "phase"}


def codes_of(broker: Broker) -> Met:
    """Return which error codes the brokers have answered to which requests, of the requests that they remember."""
    found: Met = Counter()
    for asked in broker.requests:
        if asked.response is None:
            continue
        for place in error_places(asked.response, asked.version):
            code = getattr(place.struct, place.field)
            if code:
                with suppress(ValueError):
                    found[asked.api.name, ErrorCode(code).name] += 1
    return found


@contextmanager
def watching_transitions() -> Iterator[Met]:
    """Count the transitions of all machines while the context is open."""
    met: Met = Counter()
    before = {name: machine._enter for name, machine in _MACHINES.items()}
    for name, machine in _MACHINES.items():
        machine._enter = _noting(met, name, machine._enter)
    try:
        yield met
    finally:
        for name, machine in _MACHINES.items():
            machine._enter = before[name]


def _noting(met: Met, name: str, enter: Callable[[Any, Enum], None]) -> Callable[[Any, Enum], None]:
    attribute = _STATE.get(name, "state")

    def noting(self: Any, state: Enum) -> None:
        met[name, f"{getattr(self, attribute).name} to {state.name}"] += 1
        enter(self, state)

    return noting


def missed_transitions(met: Met) -> list[tuple[str, str]]:
    """Return the transitions that a machine allows and no run has made."""
    allowed = [
        (name, f"{before.name} to {after.name}")
        for name, following in _NEXT.items()
        for before, states in following.items()
        for after in states
    ]
    return [one for one in allowed if one not in met]


def missed_codes(met: Met) -> list[tuple[str, str]]:
    """Return the error codes that a broker may answer to a request and no run has met."""
    return [
        (api.name, code.name) for api, codes in EXPECTED.items() for code in codes if (api.name, code.name) not in met
    ]
