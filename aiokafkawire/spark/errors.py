"""The errors of Spark queries."""

from ..errors import KafkaError

__all__ = ("DataLost",)


class DataLost(KafkaError):
    """Records that a query was to read were deleted, by retention or with their topic.

    With the option ``failOnDataLoss`` set to false the query continues without these records.
    """
