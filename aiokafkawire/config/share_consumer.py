"""The settings of a share consumer."""

from typing import Literal, TypedDict

from .._lazy_classes import frozen
from .fields import choice, integer, optional_text, text

__all__ = ("ShareConsumerConfig", "ShareConsumerOptions")


class ShareConsumerOptions(TypedDict, total=False):
    """Keyword arguments of ``Client.share_consumer``; :class:`ShareConsumerConfig` describes them."""

    group_id: str
    share_acknowledgement_mode: Literal["explicit", "implicit"]
    share_acquire_mode: Literal["batch_optimized", "record_limit"]
    max_poll_records: int
    client_rack: str
    max_poll_interval_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    check_crcs: bool
    on_error: Literal["raise", "skip", "dead_letter"]
    dead_letter_topic: str | None


@frozen(kw_only=True)
class ShareConsumerConfig:
    """The settings of a share consumer. Sizes are in bytes, times in ms.

    The group's own settings are with the brokers: ``share.auto.offset.reset``, ``share.isolation.level`` and others are
    configs of the group, which ``kafka.admin.incremental_alter_configs`` changes.
    """

    group_id: str | None = optional_text()
    """The share group, whose members share the records of the topics."""
    share_acknowledgement_mode: Literal["explicit", "implicit"] = choice("explicit", "explicit", "implicit")
    """How records are acknowledged: ``"explicit"``, each by ``async with record`` or ``acknowledge()``; or
    ``"implicit"``, all records handed out are accepted once the user takes the next ones or calls ``commit()``."""
    share_acquire_mode: Literal["batch_optimized", "record_limit"] = choice(
        "batch_optimized", "batch_optimized", "record_limit"
    )
    """How many records a broker may acquire for a fetch (KIP-1206): ``"batch_optimized"``, up to the end of a batch; or
    ``"record_limit"``, as many as requested at the most, on Kafka 4.2 and later."""
    max_poll_records: int = integer(500, minimum=1)
    """How many records one fetch may request. A fetch requests fewer as long as the user takes them slowly, since
    every record that waits here is locked for the other members."""
    client_rack: str = text("")
    """The rack of this consumer, shown in descriptions of the group."""
    max_poll_interval_ms: int = integer(300_000, minimum=1)
    """How long a member may process records between two polls before it leaves the group (KIP-62)."""
    fetch_min_bytes: int = integer(1, minimum=0)
    """How much data a broker waits for, up to ``fetch_max_wait_ms``, before it answers a fetch."""
    fetch_max_bytes: int = integer(52_428_800, minimum=1)
    """How much data one fetch may return."""
    fetch_max_wait_ms: int = integer(500)
    """How long a broker may wait for ``fetch_min_bytes`` before it answers a fetch. Acknowledgements wait as well."""
    check_crcs: bool = choice(True, True, False)
    """Whether the checksum of every batch is verified."""
    on_error: Literal["raise", "skip", "dead_letter"] = choice("raise", "raise", "skip", "dead_letter")
    """The treatment of a record that cannot be deserialized: ``"raise"`` releases the record and raises
    DeserializationError; ``"skip"`` logs and rejects the record; ``"dead_letter"`` writes the record to
    ``dead_letter_topic`` and rejects it. No member gets a rejected record again."""
    dead_letter_topic: str | None = optional_text(empty=False)
    """The topic that gets the raw records which cannot be deserialized, with their origin and error in headers."""
