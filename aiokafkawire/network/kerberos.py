"""GSSAPI on the client's side: Kerberos (RFC 4752), by the library ``gssapi`` over the system's."""

from typing import Any, Final

from ..errors import AuthenticationFailed, ConfigError
from .sasl import Exchange, RunInThread

__all__ = ("kerberos",)

_NO_LAYER: Final = 1
"""The security layer that Kafka knows: none, since TLS is there for that."""


def kerberos(service: str, host: str) -> Exchange:
    """A login as whoever the system's ticket cache, or its keytab for clients, is for.

    Args:
        service: the first part of the broker's principal, ``kafka``.
        host: the second part.

    Raises:
        ConfigError: the library is not there.
        AuthenticationFailed: there is no ticket, or the broker's answer makes no sense.
    """
    context = yield RunInThread(lambda: _begin(service, host))
    said: bytes | None = None
    while True:
        token = yield RunInThread(lambda heard=said: _guarded(context.step, heard))  # type: ignore[misc]
        if token is None and context.complete:
            token = b""  # it is the broker's turn to offer its layers
        said = yield bytes(token or b"")
        if context.complete:
            break
    yield RunInThread(lambda: _check_mutual(context))
    offered = yield RunInThread(lambda: _guarded(context.unwrap, said))
    layers = bytes(offered.message)
    if len(layers) != 4 or not layers[0] & _NO_LAYER:
        raise AuthenticationFailed("GSSAPI: the broker offers no login without a security layer of SASL's own")
    chosen = yield RunInThread(lambda: _guarded(context.wrap, bytes((_NO_LAYER, 0, 0, 0)), False))
    yield bytes(chosen.message)


def _begin(service: str, host: str) -> Any:
    try:
        import gssapi
    except ImportError:
        raise ConfigError(
            "sasl_mechanism GSSAPI needs the library gssapi, and the system's Kerberos: "
            "pip install 'aiokafkawire[kerberos]'"
        ) from None
    return _guarded(_new_context, gssapi, service, host)


def _new_context(gssapi: Any, service: str, host: str) -> Any:
    name = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
    mutual = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
    # Kerberos alone: RFC 4752 knows nothing else, whatever the system's library may.
    return gssapi.SecurityContext(name=name, usage="initiate", flags=mutual, mech=gssapi.MechType.kerberos)


def _check_mutual(context: Any) -> None:
    import gssapi

    if not _guarded(lambda: context.actual_flags & gssapi.RequirementFlag.mutual_authentication):
        raise AuthenticationFailed("GSSAPI: the broker did not prove that it is the service it says it is")


def _guarded(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # the library's errors are not known without it
        told = str(error) or type(error).__name__
        raise AuthenticationFailed(f"GSSAPI: {told} (is there a ticket? klist shows)") from error
