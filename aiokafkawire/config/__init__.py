"""Settings: Kafka's property names with underscores, checked when a client is made.

Each ``...Options`` class declares the keyword arguments for type checkers; the frozen ``...Config`` class of the same
prefix has their defaults and bounds.
"""

from .client import ClientConfig, ClientOptions, parse_servers
from .consumer import AssignmentStrategy, AutoOffsetReset, ConsumerConfig, ConsumerOptions, duration_ms
from .making import make_config
from .producer import CompressionType, Partitioner, PartitionerName, ProducerConfig, ProducerOptions
from .share_consumer import ShareConsumerConfig, ShareConsumerOptions

__all__ = (
    "AssignmentStrategy",
    "AutoOffsetReset",
    "ClientConfig",
    "ClientOptions",
    "CompressionType",
    "ConsumerConfig",
    "ConsumerOptions",
    "Partitioner",
    "PartitionerName",
    "ProducerConfig",
    "ProducerOptions",
    "ShareConsumerConfig",
    "ShareConsumerOptions",
    "duration_ms",
    "make_config",
    "parse_servers",
)
