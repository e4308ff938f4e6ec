"""A certificate for the Kafka that is booted, and the authority that clients are to trust."""

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


def certify(folder: Path) -> tuple[dict[str, str], Path]:
    """Make both in the folder: the lines of ``server.properties``, and the file that clients take as their CA.

    Kafka takes PEM as it is (KIP-651), but the key as PKCS #8 alone.
    """
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    certificate = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    store, trusted = folder / "server.pem", folder / "authority.pem"
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    store.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + chain)
    authority.cert_pem.write_to_path(str(trusted))
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}, trusted
