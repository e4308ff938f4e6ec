"""The client's side of GSSAPI with Kerberos (RFC 4752), by the package ``gssapi`` and the system's library."""

from typing import Any, Final

from ..errors import AuthenticationFailed, ConfigError
from .sasl import Exchange, RunInThread

__all__ = ("kerberos",)

_NO_LAYER: Final = 1
"""The only choice of a SASL security layer that Kafka supports: no layer, since TLS encrypts the connection."""


def kerberos(service: str, host: str) -> Exchange:
    """Authenticate as the principal of the system's ticket cache or client keytab.

    Args:
        service: the first part of the broker's principal, such as ``kafka``.
        host: the second part of the broker's principal.

    Raises:
        ConfigError: the package ``gssapi`` is not installed.
        AuthenticationFailed: there is no ticket, or the broker's response is invalid.
    """
    context = yield RunInThread(lambda: _begin(service, host))
    answer: bytes | None = None
    while True:
        token = yield RunInThread(lambda received=answer: _guarded(context.step, received))  # type: ignore[misc]
        if token is None and context.complete:
            token = b""  # next the broker offers its security layers
        answer = yield bytes(token or b"")
        if context.complete:
            break
    yield RunInThread(lambda: _check_mutual(context))
    offered = yield RunInThread(lambda: _guarded(context.unwrap, answer))
    layers = bytes(offered.message)
    if len(layers) != 4 or not layers[0] & _NO_LAYER:
        raise AuthenticationFailed("GSSAPI: the broker requires a SASL security layer, which is not supported")
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
    # Kerberos only: RFC 4752 allows no other mechanism, although the system's library may have others.
    return gssapi.SecurityContext(name=name, usage="initiate", flags=mutual, mech=gssapi.MechType.kerberos)


def _check_mutual(context: Any) -> None:
    import gssapi

    if not _guarded(lambda: context.actual_flags & gssapi.RequirementFlag.mutual_authentication):
        raise AuthenticationFailed("GSSAPI: the broker did not prove its identity (mutual authentication)")


def _guarded(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # the library's error classes cannot be imported without it
        message = str(error) or type(error).__name__
        raise AuthenticationFailed(f"GSSAPI: {message} (is there a ticket? see klist)") from error
