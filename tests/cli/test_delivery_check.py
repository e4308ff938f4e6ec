"""The ledger finds every way in which records can fail to come back as they were sent."""

from aiokafkawire.cli.delivery_check import Ledger

RECORDS = [(b"UA1", 0, b"a"), (b"UA1", 1, b"b"), (b"AA7", 0, b"c"), (b"UA1", 2, b"d")]


def ledger(records: list[tuple[bytes, int, bytes]]) -> Ledger:
    made = Ledger()
    for record in records:
        made.enter(*record)
    return made


def differences(*received: tuple[bytes, int, bytes]) -> str:
    return "; ".join(ledger(list(received)).differences(ledger(RECORDS)))


def test_the_same_records_in_the_same_order_agree() -> None:
    assert differences(*RECORDS) == ""


def test_the_order_of_different_keys_is_free() -> None:
    assert differences(RECORDS[2], RECORDS[0], RECORDS[1], RECORDS[3]) == ""


def test_a_last_record_that_is_missing_is_found() -> None:
    found = differences(*RECORDS[:3])
    assert "3 records came back, 4 were sent" in found
    assert "UA1 has 2 instead of 3" in found


def test_a_missing_key_is_found() -> None:
    assert "AA7 has 0 instead of 1" in differences(RECORDS[0], RECORDS[1], RECORDS[3])


def test_a_gap_is_found() -> None:
    assert "UA1 had 2 where 1 was due" in differences(RECORDS[0], RECORDS[2], RECORDS[3])


def test_a_record_that_comes_twice_is_found() -> None:
    found = differences(*RECORDS, RECORDS[1])
    assert "5 records came back, 4 were sent" in found
    assert "UA1 had 1 where 3 was due" in found


def test_one_lost_and_another_doubled_does_not_cancel_out() -> None:
    assert "UA1 had 0 where 1 was due" in differences(RECORDS[0], RECORDS[0], RECORDS[2], RECORDS[3])


def test_swapped_records_are_found_though_all_came() -> None:
    found = differences(RECORDS[0], RECORDS[3], RECORDS[2], RECORDS[1])
    assert "UA1 had 2 where 1 was due" in found
    assert "UA1 had 1 where 3 was due" in found


def test_a_changed_value_is_found() -> None:
    assert "values have changed: 1 (first: AA7)" in differences(RECORDS[0], RECORDS[1], (b"AA7", 0, b"C"), RECORDS[3])


def test_a_key_that_was_never_sent_is_found() -> None:
    assert "XX9 has 1 instead of 0" in differences(*RECORDS, (b"XX9", 0, b"x"))


def test_an_unreadable_record_is_found() -> None:
    received = ledger(RECORDS)
    received.enter_unreadable()
    assert "unreadable: 1" in "; ".join(received.differences(ledger(RECORDS)))
