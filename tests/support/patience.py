"""How long tests wait, in real time, for what has to happen, before they say that it never does.

No test proves by these how long anything takes: a machine that is busy with ten other processes meets them too. What is
about durations runs in virtual time (:mod:`support.virtual_time`).
"""

from __future__ import annotations

from typing import Final

__all__ = ("PATIENCE", "SOON")

SOON: Final = 25.0
"""Seconds for what this process does by itself: below the 30 s of ``request_timeout_ms``, so that what happens only
because a request is given up fails the test."""

PATIENCE: Final = 100.0
"""Seconds for what needs another process or a server: Apache Kafka, Java, a command, a terminal."""
