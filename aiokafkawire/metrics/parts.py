"""The parts of a client, which are clients of their own in Java: producers, consumers and the admin."""

from typing import Final

__all__ = ("ADMIN", "CONSUMER", "FETCHES", "HEARTBEATS", "PARTS", "PRODUCER", "part_of", "part_of_request")

ADMIN: Final = "admin-client"
CONSUMER: Final = "consumer"
PRODUCER: Final = "producer"
PARTS: Final = (PRODUCER, CONSUMER, ADMIN)

FETCHES: Final = frozenset({"Fetch", "ShareFetch"})
HEARTBEATS: Final = frozenset({"ConsumerGroupHeartbeat", "Heartbeat", "ShareGroupHeartbeat"})

_LANES: Final = {
    "produce": PRODUCER,
    "fetch": CONSUMER,
    "commit": CONSUMER,
    "group": CONSUMER,
    "join": CONSUMER,
    "share": CONSUMER,
}
_ON_SHARED_LANES: Final = {
    "InitProducerId": PRODUCER,
    "AddPartitionsToTxn": PRODUCER,
    "AddOffsetsToTxn": PRODUCER,
    "TxnOffsetCommit": PRODUCER,
    "EndTxn": PRODUCER,
    "OffsetFetch": CONSUMER,
    "OffsetForLeaderEpoch": CONSUMER,
}


def part_of(lane: str) -> str:
    """Return the part that a lane's connections belong to; shared ones belong to the admin."""
    return _LANES.get(lane.partition("-")[0], ADMIN)


def part_of_request(lane: str, api: str) -> str:
    """Return the part that a request belongs to; metadata and lookups on shared connections belong to the admin."""
    part = _LANES.get(lane.partition("-")[0])
    if part is not None:
        return part
    return _ON_SHARED_LANES.get(api, ADMIN) if lane == "control" else ADMIN
