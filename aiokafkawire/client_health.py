"""A client's health: whether it may take work, whether a restart is needed, and why; with that of all its parts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from .consumer.health import ConsumerHealth
from .group.member_health import MemberHealth
from .plain_values import as_plain, sentence
from .processing.health import ProcessingHealth
from .producer.health import ProducerHealth
from .share.health import ShareConsumerHealth
from .types import Address

__all__ = ("BrokerHealth", "ClientHealth", "HealthSource", "client_health")

_NO_BROKER: Final = "NoBrokerReachable: no broker reachable: "
"""How the error of a refresh begins that no broker has answered."""


@attrs.frozen
class BrokerHealth:
    """The health of the connections to one broker."""

    address: Address
    node_id: int | None
    """The broker's id; None for a bootstrap address that is no broker's."""
    connections: int
    """The number of open connections."""
    failing: float | None
    """For how many seconds attempts to connect have failed; None if the last one has not."""
    error: str | None
    """Why the last attempt to connect has failed; None if it has not."""


@attrs.frozen
class ClientHealth:
    """A client's health at one moment, with that of its open producers and consumers, by their names."""

    ready: bool
    """Whether the program may be given work now: the client is open, a broker is reachable, every consumer of a group
    has joined it, and no producer or consumer has failed or blocks its callers."""
    live: bool
    """Whether the program can go on. False only where a restart is the remedy: a producer or consumer has failed for
    good, a consumer has not polled for ``max_poll_interval_ms``, or a background task or a worker of a KafkaLifespan
    has failed. Brokers that are unreachable do not count, since a restart would not bring them back."""
    why: str | None
    """Why the client is not ready or not live, or what is stalled otherwise; None if all is well."""
    state: str
    """``"new"``, ``"open"`` or ``"closed"``."""
    metadata_age: float | None
    """How long ago a broker last sent metadata, in seconds; None if none has."""
    metadata_error: str | None
    """Why the last refresh of the metadata has failed: no broker has answered. None if one has."""
    brokers: tuple[BrokerHealth, ...]
    """The brokers of the cluster, and the bootstrap addresses in use."""
    producers: Mapping[str, ProducerHealth]
    consumers: Mapping[str, ConsumerHealth]
    share_consumers: Mapping[str, ShareConsumerHealth]
    processing: Mapping[str, ProcessingHealth] = attrs.field(factory=dict)
    """The health of each call of ``process`` that runs, by the name of its consumer."""

    def to_dict(self) -> dict[str, Any]:
        """Return the health as a dict that JSON can encode; partitions are texts such as ``"orders-0"``."""
        own: dict[str, Any] = as_plain(
            attrs.evolve(self, producers={}, consumers={}, share_consumers={}, processing={})
        )
        return own | {
            "producers": {name: health.to_dict() for name, health in self.producers.items()},
            "consumers": {name: health.to_dict() for name, health in self.consumers.items()},
            "share_consumers": {name: health.to_dict() for name, health in self.share_consumers.items()},
            "processing": {name: health.to_dict() for name, health in self.processing.items()},
        }


class HealthSource:
    """The base class of objects that have a client, and its health."""

    def health(self) -> ClientHealth:
        """Return the health of the client."""
        raise NotImplementedError


def client_health(
    state: str,
    *,
    metadata_age: float | None = None,
    metadata_error: str | None = None,
    fault: str | None = None,
    failures: Iterable[str] = (),
    brokers: Iterable[BrokerHealth] = (),
    producers: Mapping[str, ProducerHealth] | None = None,
    consumers: Mapping[str, ConsumerHealth] | None = None,
    share_consumers: Mapping[str, ShareConsumerHealth] | None = None,
    processing: Mapping[str, ProcessingHealth] | None = None,
) -> ClientHealth:
    """Return the health of a client whose parts are in these states.

    Args:
        state: whether the client is open, as in :attr:`ClientHealth.state`.
        metadata_age, metadata_error, brokers: as in :class:`ClientHealth`.
        fault: the error of a background task that has ended, or another reason why the client cannot go on.
        failures: what else has failed for good that the program needs, such as its own background tasks.
        producers, consumers, share_consumers: the open ones, by their names.
        processing: the calls of ``process`` that run, by the names of their consumers.
    """
    brokers, producers, consumers, shares = tuple(brokers), producers or {}, consumers or {}, share_consumers or {}
    dead = [*([] if fault is None else [fault]), *failures]
    dead += [f"{name} has failed: {one.failed}" for name, one in producers.items() if one.failed is not None]
    unready: list[str] = []
    stalled: list[str] = []
    members: list[tuple[str, ConsumerHealth | ShareConsumerHealth]] = [*consumers.items(), *shares.items()]
    for name, reader in members:
        reasons = list(_why_not_ready(reader.membership)) if reader.membership is not None else []
        if reader.failed is not None:
            dead.append(f"{name} has failed: {reader.failed}")
        elif reader.membership is not None and reader.membership.overdue:
            group = reader.membership.group.group_id
            dead.append(f"{name} has left {group!r}, since poll() was not called in time (max_poll_interval_ms)")
        elif reasons:
            unready += [f"{name} {reason}" for reason in reasons]
        elif reader.stalled:
            stalled.append(f"{name}: {reader.why_idle}")
    if metadata_error is not None and state != "closed" and not any(broker.connections for broker in brokers):
        unready.insert(0, f"no broker is reachable: {metadata_error.removeprefix(_NO_BROKER)}")
    if state != "open":
        unready.insert(0, "the client is closed" if state == "closed" else "the client is not open yet")
    for name, producer in producers.items():
        if producer.failed is None and producer.stalled:
            waiting = unready if producer.blocked else stalled
            waiting.append(f"{name}: {producer.why}")
    stalled += [f"{name}: {calls.why}" for name, calls in (processing or {}).items() if calls.stalled]
    return ClientHealth(
        ready=not dead and not unready,
        live=not dead,
        why=sentence([*dead, *unready, *stalled]),
        state=state,
        metadata_age=metadata_age,
        metadata_error=metadata_error,
        brokers=brokers,
        producers=producers,
        consumers=consumers,
        share_consumers=shares,
        processing=processing or {},
    )


def _why_not_ready(member: MemberHealth) -> Iterator[str]:
    if member.subscribed and not member.joined:
        yield f"is not in {member.group.group_id!r} yet: it is {member.state.value}"
        if member.trouble is not None:
            yield f"has trouble with its coordinator: {member.trouble}"
