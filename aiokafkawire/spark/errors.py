"""What fails in a query that nothing else in this package raises."""

from ..errors import KafkaError

__all__ = ("DataLost",)


class DataLost(KafkaError):
    """Records that a query was to read are gone: deleted by retention, or with their topic.

    With the option ``failOnDataLoss`` set to false the query goes on without them.
    """
