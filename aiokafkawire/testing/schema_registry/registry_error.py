"""The refusals of the schema registry, with Confluent's HTTP statuses and error codes."""

__all__ = ("RegistryRefusal",)


class RegistryRefusal(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code: int = code
        self.message: str = message

    @property
    def status(self) -> int:
        """The HTTP status: the first three digits of the code."""
        return int(str(self.code)[:3])
