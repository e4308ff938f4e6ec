"""How often and when a handler is called again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire import ConfigError, Retry

TIMES = st.integers(0, 100_000)


@given(TIMES, TIMES, st.integers(1, 2_000), st.floats(0, 1))
def test_waits_double_up_to_the_longest(first: int, longest: int, attempts: int, chance: float) -> None:
    retry = Retry(attempts=3_000, backoff_ms=first, max_backoff_ms=longest)
    wait = retry.delay(ValueError(), attempts, chance)
    assert wait is not None
    expected = min(first * 2 ** (attempts - 1), longest) / 1000
    assert expected * 0.79 <= wait <= expected * 1.21


def test_after_the_last_attempt_or_another_error_there_is_none() -> None:
    retry = Retry(attempts=2, on=(OSError,))
    assert retry.delay(FileNotFoundError(), 1, 0.5) == 0.1
    assert retry.delay(FileNotFoundError(), 2, 0.5) is None
    assert retry.delay(ValueError(), 1, 0.5) is None
    assert Retry(attempts=1).delay(ValueError(), 1, 0.5) is None


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"attempts": True}, {"backoff_ms": -1}, {"max_backoff_ms": 1.5}, {"on": ("x",)}, {"on": (int,)}],
)
def test_wrong_values_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Retry(**wrong)
