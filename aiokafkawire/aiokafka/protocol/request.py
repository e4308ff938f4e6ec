"""The base class of requests with aiokafka's names and arguments."""

from typing import Any

from ...protocol.schema import Request

__all__ = ("TheirRequest",)


class TheirRequest:
    """A request with aiokafka's name and arguments, for :meth:`.AIOKafkaClient.send`.

    Attributes:
        message: the request of this client that is sent.
    """

    message: Request[Any]

    def answer(self, response: Any) -> Any:
        """Return the response with the fields that aiokafka's has, as far as they are used."""
        return response
