"""The judge of processing under fault sees what is lost, doubled, or out of order."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.process_faults.judge import check_copied, check_handled, events_of

IN_ORDER = ["1 began 0 5 a", "2 began 0 6 b", "3 done 0 5 a", "4 began 0 7 a", "5 done 0 6 b", "6 done 0 7 a"]
ACKNOWLEDGED = [(0, 5), (0, 6), (0, 7)]


def test_nothing_is_wrong_with_records_in_order() -> None:
    figures = check_handled(ACKNOWLEDGED, events_of(IN_ORDER), ordered=True)
    assert figures == {"handled": 3, "repeated": 0, "lost": 0, "early": 0}


def test_a_record_that_was_begun_only_is_lost() -> None:
    assert check_handled(ACKNOWLEDGED, events_of(IN_ORDER[:-1]), ordered=True)["lost"] == 1


def test_a_record_that_begins_before_an_earlier_one_of_its_key_is_early() -> None:
    lines = [line.replace("4 began", "0 began") for line in IN_ORDER]
    assert check_handled(ACKNOWLEDGED, events_of(lines), ordered=True)["early"] == 1
    assert check_handled(ACKNOWLEDGED, events_of(lines), ordered=False)["early"] == 0


def test_what_is_handled_again_is_repeated_and_not_early() -> None:
    lines = [*IN_ORDER, "7 lost -1 -1 -", "8 began 0 5 a", "9 done 0 5 a"]
    figures = check_handled(ACKNOWLEDGED, events_of(lines), ordered=True)
    assert figures == {"handled": 3, "repeated": 1, "lost": 0, "early": 0}


def test_copies_count_once_in_the_order_of_their_keys() -> None:
    sent = {0: (0, 0), 1: (0, 1), 2: (1, 0)}
    good = {0: [("a", 0), ("b", 1)], 1: [("a", 2)]}
    assert check_copied(sent, good, []) == {"handled": 3, "repeated": 0, "lost": 0, "early": 0, "doubled": 0}
    doubled = check_copied(sent, {0: [("a", 0), ("a", 1), ("a", 0)]}, [])
    assert (doubled["doubled"], doubled["early"], doubled["lost"]) == (1, 1, 1)
