"""The headers that tell where a record in a dead-letter or retry topic came from, and why it has failed."""

from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.processing.failures import PREFIX, Failure, failure_of, with_failure
from aiokafkawire.types import Header

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4)
FAILURES = st.builds(
    Failure,
    topic=st.text(),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    timestamp_ms=st.integers(-1, 2**63 - 1),
    group=st.text(),
    attempts=st.integers(1, 2**31),
    error=st.text(),
    message=st.text(),
    stack=st.text(),
    not_before_ms=st.integers(0, 2**63 - 1),
)


@given(HEADERS, FAILURES, FAILURES)
def test_the_last_failure_is_read_and_the_headers_of_the_record_stay(
    headers: list[Header], before: Failure, failure: Failure
) -> None:
    sent = with_failure(with_failure(headers, before), failure)
    assert failure_of(sent) == failure
    assert sent[: len(headers)] == headers
    assert len({name for name, _ in sent[len(headers) :]}) == len(sent) - len(headers)


@given(st.dictionaries(st.sampled_from([name for name, _ in with_failure([], Failure("", 0, 0, 0, "", 1, "", ""))]),
                       st.none() | st.binary(max_size=20)))  # fmt: skip
def test_broken_headers_are_no_failure_or_a_whole_one(headers: dict[str, bytes | None]) -> None:
    found = failure_of(headers.items())
    assert found is None or None not in headers.values()


def test_a_long_stack_keeps_its_end() -> None:
    sent = dict(with_failure([], Failure("t", 0, 0, 0, "g", 1, "E", "m", stack="x" * 20_000 + "end")))
    stack = sent[PREFIX + "stack"]
    assert stack is not None
    assert stack.endswith(b"end")
    assert len(stack) == 8192
