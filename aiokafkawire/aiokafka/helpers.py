"""aiokafka's helper for TLS."""

import ssl
from collections.abc import Callable
from os import PathLike
from typing import TypeAlias

__all__ = ("create_ssl_context",)

_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
_Secret: TypeAlias = str | bytes | bytearray


def create_ssl_context(
    *,
    cafile: _Path | None = None,
    capath: _Path | None = None,
    cadata: "str | bytes | bytearray | memoryview | None" = None,
    certfile: _Path | None = None,
    keyfile: _Path | None = None,
    password: Callable[[], _Secret] | _Secret | None = None,
) -> ssl.SSLContext:
    """Return an SSL context that checks the broker's certificate and its host name.

    Args:
        cafile: a PEM file with the certificates of trusted authorities; by default the system's.
        capath: a directory of such files.
        cadata: such certificates as PEM text or DER bytes.
        certfile: a PEM file with the client's certificate.
        keyfile: a PEM file with the private key of the client's certificate, unless ``certfile`` has it.
        password: the password of the private key, or a function that returns it.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=cafile, capath=capath, cadata=cadata)
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    return context
