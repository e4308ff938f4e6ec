"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554)."""

from collections import Counter
from collections.abc import Iterable

from ...errors import ErrorCode
from ...protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ..cluster.api_error import ApiError
from ..security.credentials import LEAST_ITERATIONS, MOST_ITERATIONS, Credentials, ScramAlgorithm, ScramCredential
from ..serving.call import ServerCall

__all__ = ("alter_user_scram_credentials", "describe_user_scram_credentials")


async def describe_user_scram_credentials(
    call: ServerCall, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms and iterations of each requested user, or of all users."""
    credentials = call.cluster.credentials
    named = Counter(user.name for user in request.users or ())
    results = []
    for user in dict.fromkeys(named or credentials.scram_users()):
        result = DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.NONE, error_message="", credential_infos=[]
        )
        try:
            result.credential_infos = _described(credentials, user, named[user])
        except ApiError as refused:
            result.error_code, result.error_message = refused.code, refused.message
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_code=ErrorCode.NONE, error_message="", results=results)


async def alter_user_scram_credentials(
    call: ServerCall, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Set and delete credentials; a user whom the request names twice gets an error and no change."""
    credentials = call.cluster.credentials
    changes: dict[str, ScramCredentialDeletion | ScramCredentialUpsertion] = {}
    errors: dict[str, ApiError] = {}
    asked: Iterable[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    for change in asked:
        if change.name in errors:
            continue
        try:
            if changes.pop(change.name, None) is not None:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            _check(credentials, change)
            changes[change.name] = change
        except ApiError as refused:
            errors[change.name] = refused
    for change in changes.values():
        _apply(credentials, change)
    done = [
        AlterUserScramCredentialsResult(user=user, error_code=ErrorCode.NONE, error_message=None) for user in changes
    ]
    failed = [
        AlterUserScramCredentialsResult(user=user, error_code=error.code, error_message=error.message)
        for user, error in errors.items()
    ]
    return AlterUserScramCredentialsResponse(results=done + failed)


def _described(credentials: Credentials, user: str, times: int) -> list[CredentialInfo]:
    if times > 1:
        raise ApiError(
            ErrorCode.DUPLICATE_RESOURCE,
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    found = [(mechanism, credentials.scram(mechanism, user)) for mechanism in ScramAlgorithm]
    infos = [
        CredentialInfo(mechanism=mechanism.code, iterations=credential.iterations)
        for mechanism, credential in found
        if credential is not None
    ]
    if not infos:
        raise ApiError(
            ErrorCode.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {user}"
        )
    return infos


def _check(credentials: Credentials, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> None:
    if not change.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = _mechanism(change.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if credentials.scram(mechanism, change.name) is None:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif change.iterations < LEAST_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > MOST_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _apply(credentials: Credentials, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> None:
    mechanism = _mechanism(change.mechanism)
    assert mechanism is not None
    if isinstance(change, ScramCredentialDeletion):
        credentials.remove(mechanism, change.name)
    else:
        salted, salt = bytes(change.salted_password), bytes(change.salt)
        credentials.put(mechanism, change.name, ScramCredential.made_of(mechanism, salted, salt, change.iterations))


def _mechanism(code: int) -> ScramAlgorithm | None:
    return next((mechanism for mechanism in ScramAlgorithm if mechanism.code == code), None)
