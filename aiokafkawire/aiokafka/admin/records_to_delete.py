"""The records of a partition to delete, with aiokafka's names."""

__all__ = ("RecordsToDelete",)


class RecordsToDelete:
    """All records of a partition before an offset; -1 means all that are there."""

    def __init__(self, before_offset: int) -> None:
        self.before_offset = before_offset
