"""The settings of a client that logs in."""

from typing import Any

__all__ = ("login",)


def login(mechanism: str, user: str, password: str, **more: Any) -> dict[str, Any]:
    """Settings of a client that logs in with a password."""
    known = {"sasl_mechanism": mechanism, "sasl_username": user, "sasl_password": password}
    return {"security_protocol": "SASL_PLAINTEXT", **known, **more}
