"""Reads the endpoints of controllers as users write them, and as ``cluster quorum`` prints them."""

from urllib.parse import urlsplit

from ...admin.cluster_descriptions import RaftVoterEndpoint
from ..exit_status import MISSING, CommandFailed

__all__ = ("parse_endpoint",)


def parse_endpoint(text: str) -> RaftVoterEndpoint:
    """Return the endpoint that a text such as ``CONTROLLER://host:9093`` means.

    Raises:
        CommandFailed: the text is no endpoint (exit status 2).
    """
    wrong = f"--endpoint takes LISTENER://HOST:PORT, got {text!r}"
    listener, separator, address = text.partition("://")
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise CommandFailed(wrong, MISSING) from None
    if not separator or not listener or not host or not port or "@" in address or parts.netloc != address:
        raise CommandFailed(wrong, MISSING)
    return RaftVoterEndpoint(listener, host, port)
