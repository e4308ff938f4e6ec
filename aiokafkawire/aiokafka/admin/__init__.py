"""aiokafka's admin client, and what its calls take."""

from .client import AIOKafkaAdminClient
from .new_partitions import NewPartitions
from .new_topic import NewTopic
from .records_to_delete import RecordsToDelete

__all__ = ("AIOKafkaAdminClient", "NewPartitions", "NewTopic", "RecordsToDelete")
