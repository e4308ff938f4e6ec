"""Tokens for OAUTHBEARER that nobody has signed, and the first message that carries one."""

from __future__ import annotations

import base64
import json

__all__ = ("first", "jws", "part", "unsecured")


def part(fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def jws(claims: object, header: object = None, signature: str = "") -> str:
    return f"{part({'alg': 'none'} if header is None else header)}.{part(claims)}.{signature}"


def unsecured(now: float, *, user: str = "alice", ends_in: float = 3600, **more: object) -> str:
    """A token that is good at the time, in s since the epoch, and for so many seconds more."""
    return jws({"sub": user, "iat": now - 60, "exp": now + ends_in, **more})


def first(token: str, *, for_user: str = "", extensions: str = "", scheme: str = "Bearer") -> bytes:
    asked = f"a={for_user}" if for_user else ""
    return f"n,{asked},\x01auth={scheme} {token}\x01{extensions}\x01".encode()
