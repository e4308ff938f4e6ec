"""What users may rely on when they catch an error: one class for each code, flags, texts, and pickling."""

from __future__ import annotations

import pickle

import pytest
from support.rows import every_row

from aiokafkawire import errors
from aiokafkawire.errors import (
    AcknowledgementFailed,
    AdminError,
    BrokerError,
    CorruptMessage,
    DeliveryFailed,
    ErrorCode,
    KafkaError,
    NoBrokerReachable,
    NotCoordinator,
    NotLeaderOrFollower,
    ProducerFenced,
    Refresh,
    RequestTimeout,
    TransactionAbortable,
    UnknownBrokerError,
    UnsupportedVersion,
    UnsupportedVersionAnswered,
    broker_error,
)

CLASSES = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, KafkaError)]
ANSWERED = [cls for cls in CLASSES if issubclass(cls, BrokerError) and cls not in (BrokerError, UnknownBrokerError)]
HOLDING_OTHERS = (AcknowledgementFailed, AdminError, DeliveryFailed)
OWN = [cls for cls in CLASSES if not issubclass(cls, (BrokerError, *HOLDING_OTHERS))]
CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]
UNKNOWN_CODES = [137, 32767, -2, -32768]


def test_every_code_but_none_has_exactly_one_class() -> None:
    assert sorted(cls.code for cls in ANSWERED) == CODES


def test_codes_are_those_of_kafka_4_4_without_a_gap() -> None:
    assert list(ErrorCode) == list(range(-1, 137))


def test_a_class_has_the_name_of_its_code() -> None:
    names = {cls.code: cls.__name__ for cls in ANSWERED}
    expected = {code: "".join(word.capitalize() for word in code.name.split("_")) for code in CODES}
    # This name alone was taken: the client's own error is found before anything is sent.
    expected[ErrorCode.UNSUPPORTED_VERSION] = "UnsupportedVersionAnswered"
    assert names == expected


def test_what_the_client_finds_is_not_what_a_broker_answered() -> None:
    assert not issubclass(UnsupportedVersion, BrokerError)
    assert not issubclass(UnsupportedVersionAnswered, UnsupportedVersion)


@every_row("code", CODES)
def test_broker_error_gives_the_class_of_the_code_and_says_the_detail(code: ErrorCode) -> None:
    error = broker_error(int(code), "Produce to flights-3 at broker 1")
    assert type(error) in ANSWERED
    assert error.code is code
    assert str(error) == f"Produce to flights-3 at broker 1: {code.name}: {type(error).__doc__}"


def test_broker_error_without_a_detail_says_the_name_and_the_meaning() -> None:
    error = broker_error(ErrorCode.NOT_COORDINATOR)
    assert type(error) is NotCoordinator
    assert str(error) == f"NOT_COORDINATOR: {NotCoordinator.__doc__}"


@pytest.mark.parametrize("code", UNKNOWN_CODES)
def test_an_unknown_code_is_an_error_like_any_other(code: int) -> None:
    error = broker_error(code, "Fetch from broker 2")
    assert type(error) is UnknownBrokerError
    assert error.code == code
    assert str(error) == f"error code {code}, unknown to this release: Fetch from broker 2"
    assert str(broker_error(code)) == f"error code {code}, unknown to this release"
    assert (error.retriable, error.refresh, error.fatal, error.abortable) == (False, Refresh.NOTHING, False, False)


def test_a_second_class_for_a_code_is_refused() -> None:
    with pytest.raises(TypeError, match=r"CORRUPT_MESSAGE.* has a class already: CorruptMessage"):

        class Damaged(BrokerError, code=ErrorCode.CORRUPT_MESSAGE):
            """Never comes to be."""

    assert type(broker_error(ErrorCode.CORRUPT_MESSAGE)) is CorruptMessage


def test_a_subclass_without_a_code_takes_over_what_it_inherits() -> None:
    class Mine(NotLeaderOrFollower):
        """A user's own refinement."""

    assert (Mine.code, Mine.retriable, Mine.refresh) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, True, Refresh.METADATA)
    assert type(broker_error(ErrorCode.NOT_LEADER_OR_FOLLOWER)) is NotLeaderOrFollower


def test_what_is_looked_up_again_is_then_tried_again() -> None:
    assert all(cls.retriable for cls in ANSWERED if cls.refresh is not Refresh.NOTHING)


def test_these_codes_ask_for_a_new_look_at_the_coordinator() -> None:
    assert {cls.code for cls in ANSWERED if cls.refresh is Refresh.COORDINATOR} == {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }


def test_these_codes_ask_for_a_new_look_at_the_metadata() -> None:
    assert {cls.code for cls in ANSWERED if cls.refresh is Refresh.METADATA} == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }


def test_these_codes_are_retried_as_they_are() -> None:
    assert {cls.code for cls in ANSWERED if cls.retriable and cls.refresh is Refresh.NOTHING} == {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }


def test_a_producer_either_retries_or_aborts_or_ends() -> None:
    assert all(cls.retriable + cls.abortable + cls.fatal <= 1 for cls in ANSWERED)
    assert ProducerFenced.fatal
    assert TransactionAbortable.abortable


@every_row("cls", CLASSES)
def test_every_class_says_in_a_sentence_what_it_means(cls: type[KafkaError]) -> None:
    doc = cls.__dict__.get("__doc__") or ""
    assert len(doc.split()) > 3
    assert doc.rstrip().endswith(".")


def test_all_public_names_are_listed_in_order() -> None:
    defined = {name for name, thing in vars(errors).items() if getattr(thing, "__module__", None) == errors.__name__}
    public = {name for name in defined if not name.startswith("_")}
    assert errors.__all__ == tuple(sorted(public | {"ErrorCode"}))


def pickled(error: KafkaError) -> KafkaError:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    return copy


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__name__)
def test_an_error_of_the_client_can_be_pickled(cls: type[KafkaError]) -> None:
    pickled(cls("no answer from localhost:9092 within 30 s"))


@every_row("code", [*CODES, *UNKNOWN_CODES])
@pytest.mark.parametrize("detail", ["", "Fetch from broker 2"], ids=["bare", "detailed"])
def test_an_error_of_a_broker_can_be_pickled(code: int, detail: str) -> None:
    copy = pickled(broker_error(code, detail))
    assert isinstance(copy, BrokerError)
    assert copy.code == code


def test_failed_acknowledgements_are_pickled_with_their_causes() -> None:
    causes = {("orders", 3): broker_error(ErrorCode.INVALID_RECORD_STATE, "orders-3")}
    copy = pickled(AcknowledgementFailed(causes, {("orders", 0): 5}))
    assert isinstance(copy, AcknowledgementFailed)
    assert str(copy) == f"records were not acknowledged, and may be delivered again: orders-3: {causes['orders', 3]}"
    assert copy.acknowledged == {("orders", 0): 5}


def test_an_admin_error_is_pickled_with_errors_and_results() -> None:
    errors = {"orders": broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleting topic 'orders'")}
    copy = pickled(AdminError("deleting topics failed for 1 of 2", errors, {"flights": None}))
    assert isinstance(copy, AdminError)
    assert str(copy) == f"deleting topics failed for 1 of 2: {errors['orders']}"
    assert copy.results == {"flights": None}


def test_a_failed_delivery_is_pickled_with_its_causes() -> None:
    causes = [RequestTimeout("no acknowledgement within 120 s"), broker_error(ErrorCode.MESSAGE_TOO_LARGE, "flights-3")]
    copy = pickled(DeliveryFailed(causes, 5))
    assert isinstance(copy, DeliveryFailed)
    assert [(type(error), str(error)) for error in copy.errors] == [(type(error), str(error)) for error in causes]


def test_a_failed_delivery_says_how_many_and_the_first_cause() -> None:
    first = RequestTimeout("no acknowledgement within 120 s")
    assert str(DeliveryFailed([first], 1)) == f"1 record not delivered, the first because of RequestTimeout: {first}"
    assert str(DeliveryFailed([first], 7)) == f"7 records not delivered, the first because of RequestTimeout: {first}"


def test_builtin_handlers_catch_what_they_should() -> None:
    assert issubclass(RequestTimeout, TimeoutError)
    assert issubclass(errors.ConfigError, ValueError)
    assert issubclass(NoBrokerReachable, errors.ConnectionLost)
    assert all(issubclass(cls, KafkaError) for cls in [*OWN, *ANSWERED])
