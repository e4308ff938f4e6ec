"""Settings: Kafka's property names with underscores, checked when a client is made.

Each ``...Options`` names the keyword arguments for type checkers; the frozen class beside it holds their defaults
and bounds. A test keeps the two alike.
"""

from .client import ClientConfig, ClientOptions, parse_servers
from .consumer import AssignmentStrategy, AutoOffsetReset, ConsumerConfig, ConsumerOptions, duration_ms
from .making import make_config
from .producer import CompressionType, Partitioner, PartitionerName, ProducerConfig, ProducerOptions

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
    "duration_ms",
    "make_config",
    "parse_servers",
)
