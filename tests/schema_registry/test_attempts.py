"""Which registry gets a request next, and when."""

from __future__ import annotations

from aiokafkawire.errors import SchemaRegistryError
from aiokafkawire.schema_registry.attempts import RequestAttempts


def failed(text: str = "down", status: int | None = None) -> SchemaRegistryError:
    return SchemaRegistryError(text, status)


def test_every_url_is_tried_before_a_pause_and_pauses_double_up_to_the_longest() -> None:
    attempts = RequestAttempts(["a", "b"], 1, 4, 100, 350)
    urls, pauses = [], []
    while True:
        urls.append(attempts.url)
        pause = attempts.fail(failed(), 1.0)
        pauses.append(pause)
        if pause is None:
            break
    assert urls == ["b", "a"] * 5
    assert pauses == [0, 0.1, 0, 0.2, 0, 0.35, 0, 0.35, 0, None]


def test_chance_shortens_a_pause_by_up_to_half() -> None:
    assert RequestAttempts(["a"], 0, 1, 100, 1000).fail(failed(), 0.0) == 0.05


def test_without_retries_every_url_is_tried_once() -> None:
    attempts = RequestAttempts(["a", "b"], 0, 0, 100, 100)
    assert attempts.fail(failed(), 0.5) == 0
    assert attempts.fail(failed(), 0.5) is None


def test_the_error_names_each_url_once_and_has_the_last_status() -> None:
    attempts = RequestAttempts(["a", "b"], 0, 1, 1, 1)
    assert attempts.error() is None
    for text, status in (("a: 1", None), ("b: 1", 500), ("a: 2", None), ("b: 2", 503)):
        attempts.fail(failed(text, status), 0.5)
    error = attempts.error()
    assert error is not None
    assert str(error) == "a: 2; b: 2 (4 attempts)"
    assert error.status == 503


def test_the_error_is_that_of_the_last_attempt_also_where_time_ends_between_the_urls() -> None:
    attempts = RequestAttempts(["a", "b"], 0, 1, 1, 1)
    for text, status in (("a: 1", 500), ("b: 1", None), ("a: 2", 503)):
        attempts.fail(failed(text, status), 0.5)
    error = attempts.error()
    assert error is not None
    assert str(error) == "b: 1; a: 2 (3 attempts)"
    assert error.status == 503


def test_an_index_beyond_the_urls_begins_again() -> None:
    assert RequestAttempts(["a", "b"], 2, 0, 1, 1).url == "a"
