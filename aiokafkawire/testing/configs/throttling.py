"""Throttling of clients by quotas: rates over a window of samples, as in Kafka (KIP-13)."""

from typing import Final

from .quotas import ClientQuotas, Limit

__all__ = ("REQUEST_TIME_MS", "Rate", "Throttles")

_SAMPLES: Final = 11  # quota.window.num
_SAMPLE_MS: Final = 1000  # quota.window.size.seconds
REQUEST_TIME_MS: Final = 1.0
"""The thread time that each request is assumed to take: measured times would differ between runs of a test."""


class Rate:
    """The usage per second that counts against a quota, over ten full seconds and the current one. Times are in ms."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: list[list[float]] = []  # each sample's start, last addition and amount

    def add(self, amount: float, now: float) -> None:
        """Add ``amount`` to the usage at the time ``now``."""
        if not self._samples or now - self._samples[-1][0] >= _SAMPLE_MS:
            self._samples.append([now, now, 0.0])
        self._samples[-1][1] = now
        self._samples[-1][2] += amount

    def excess_ms(self, limit: float, now: float) -> float:
        """Return how many ms a client must pause until its rate falls to ``limit``; 0 or less if it need not pause."""
        self._samples = [sample for sample in self._samples if now - sample[1] < _SAMPLES * _SAMPLE_MS]
        elapsed = now - (self._samples[0][0] if self._samples else now)
        # A shorter window counts as ten full samples, so that a burst at its start is not a high rate.
        elapsed += max(0, _SAMPLES - 1 - int(elapsed // _SAMPLE_MS)) * _SAMPLE_MS
        used = sum(sample[2] for sample in self._samples)
        return used * 1000 / limit - elapsed


class Throttles:
    """The throttle times of one broker's clients.

    ``forced`` has minimum throttle times that a test sets, in ms by client id; the key None is for all other clients.
    """

    def __init__(self, quotas: ClientQuotas) -> None:
        self.forced: dict[str | None, int] = {}
        self._quotas = quotas
        self._rates: dict[tuple[str, str, str], Rate] = {}

    def forget(self) -> None:
        """Forget what clients have used, as a broker does at a restart."""
        self._rates.clear()

    def produced(self, size: int, user: str, client_id: str, now: float) -> int:
        """Add the bytes of a Produce request to the client's usage and return the throttle time in ms."""
        return self._count("producer_byte_rate", size, user, client_id, now)

    def fetched(self, size: int, user: str, client_id: str, now: float) -> int:
        """Return a Fetch response's throttle time in ms; if it is 0, add the bytes to the client's usage (KIP-219)."""
        limit = self._quotas.limit("consumer_byte_rate", user, client_id)
        if limit is None:
            return 0
        rate = self._rate("consumer_byte_rate", limit)
        # A response counts as ten seconds at the limit at most; otherwise larger batches could never be read.
        counted = min(size, limit.value * (_SAMPLES - 1) * _SAMPLE_MS / 1000)
        rate.add(counted, now)
        pause = _whole(rate.excess_ms(limit.value, now))
        if pause > 0:
            rate.add(-counted, now)
        return pause

    def requested(self, user: str, client_id: str, now: float) -> int:
        """Add the thread time of a request to the client's usage; return the throttle time in ms, a second at most."""
        used = REQUEST_TIME_MS / 10  # percent of a second
        return min(_SAMPLE_MS, self._count("request_percentage", used, user, client_id, now))

    def connected(self, host: str, now: float) -> int:
        """Add a connection to those of an address; or, above its quota, return the time until it is closed, in ms."""
        limit = self._quotas.connection_rate(host)
        if limit is None:
            return 0
        rate = self._rate("connection_creation_rate", Limit(limit, host, ""))
        rate.add(1, now)
        pause = min(_SAMPLE_MS, _whole(rate.excess_ms(limit, now)))
        if pause > 0:
            rate.add(-1, now)
        return pause

    def _count(self, key: str, amount: float, user: str, client_id: str, now: float) -> int:
        limit = self._quotas.limit(key, user, client_id)
        if limit is None:
            return 0
        rate = self._rate(key, limit)
        rate.add(amount, now)
        return _whole(rate.excess_ms(limit.value, now))

    def _rate(self, key: str, limit: Limit) -> Rate:
        return self._rates.setdefault((key, limit.user, limit.client_id), Rate())


def _whole(pause: float) -> int:
    return max(0, int(pause + 0.5))
