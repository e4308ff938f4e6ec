"""The content of topics: record batches and their compression. No I/O, no clock."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .arrow import SCHEMA, record_batch
    from .batch import IMPLEMENTATION, BatchBuilder, ConsumerRecord, Delivery, RecordBatch, RecordReader
    from .compression import Codec, compress, decompress
    from .header import BatchHeader
    from .message_set import MessageSet

__all__ = (
    "BatchBuilder",
    "BatchHeader",
    "Codec",
    "ConsumerRecord",
    "Delivery",
    "IMPLEMENTATION",
    "MessageSet",
    "RecordBatch",
    "RecordReader",
    "SCHEMA",
    "compress",
    "decompress",
    "record_batch",
)

_MODULES = {
    "BatchBuilder": ".batch",
    "BatchHeader": ".header",
    "Codec": ".compression",
    "ConsumerRecord": ".batch",
    "Delivery": ".batch",
    "IMPLEMENTATION": ".batch",
    "MessageSet": ".message_set",
    "RecordBatch": ".batch",
    "RecordReader": ".batch",
    "SCHEMA": ".arrow",
    "compress": ".compression",
    "decompress": ".compression",
    "record_batch": ".arrow",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
