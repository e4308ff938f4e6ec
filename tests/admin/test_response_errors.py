"""The errors of the admin's requests."""

from __future__ import annotations

import pytest

from aiokafkawire.admin.response_errors import error_of, explain_unsupported, raise_for
from aiokafkawire.errors import ErrorCode, GroupIdNotFound, UnsupportedVersion, UsageError


def test_an_error_names_what_was_requested_and_the_brokers_message() -> None:
    error = error_of(ErrorCode.GROUP_ID_NOT_FOUND, "DeleteGroups of group 'g'", "it is gone")
    assert isinstance(error, GroupIdNotFound)
    assert str(error).startswith("DeleteGroups of group 'g': it is gone: GROUP_ID_NOT_FOUND: ")
    with pytest.raises(GroupIdNotFound, match=r"^DeleteGroups of group 'g': GROUP_ID_NOT_FOUND: "):
        raise_for(ErrorCode.GROUP_ID_NOT_FOUND, "DeleteGroups of group 'g'", "")


def test_success_is_no_error() -> None:
    assert error_of(ErrorCode.NONE, "DeleteGroups of group 'g'", "a message all the same") is None
    raise_for(ErrorCode.NONE, "DeleteGroups of group 'g'")


def test_brokers_that_are_too_old_are_told_with_the_release_that_is_needed() -> None:
    told = r"^this needs brokers since 2\.0: v1 is unknown$"
    with pytest.raises(UnsupportedVersion, match=told), explain_unsupported("this needs brokers since 2.0"):
        raise UnsupportedVersion("v1 is unknown")
    with pytest.raises(UsageError, match=r"^another$"), explain_unsupported("this needs brokers since 2.0"):
        raise UsageError("another")
