"""Tables whose rows are checked in one test."""

import pytest
from support.rows import every_row


@pytest.fixture
def offset() -> int:
    return 10


@every_row(("number", "doubled"), [(1, 12), (2, 14)])
def test_each_row_is_checked_with_the_fixtures_of_the_test(offset: int, number: int, doubled: int) -> None:
    assert 2 * number + offset == doubled


def test_every_row_that_fails_is_named() -> None:
    seen = []

    @every_row("number", range(30))
    def check(number: int) -> None:
        seen.append(number)
        assert number % 10

    with pytest.raises(ExceptionGroup, match="3 of 30 rows failed") as raised:
        check()
    assert seen == list(range(30))
    assert [one.__notes__ for one in raised.value.exceptions] == [
        ["row: number=0"],
        ["row: number=10"],
        ["row: number=20"],
    ]


def test_a_row_may_have_a_name() -> None:
    @every_row(("key", "value"), [pytest.param(b"k", None, id="no value")])
    def check(key: bytes, value: bytes | None) -> None:
        assert value is not None

    with pytest.raises(ExceptionGroup) as raised:
        check()
    assert raised.value.exceptions[0].__notes__ == ["row: no value"]


def test_a_table_without_rows_fails() -> None:
    @every_row("number", [])
    def check(number: int) -> None:
        raise NotImplementedError

    with pytest.raises(AssertionError, match="no rows"):
        check()


def test_a_column_that_the_test_does_not_take_is_refused() -> None:
    with pytest.raises(TypeError, match="check has no parameter numer"):

        @every_row("numer", [1])
        def check(number: int) -> None:
            raise NotImplementedError
