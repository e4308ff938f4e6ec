"""The requests about ACLs, and the ACLs and errors in their responses."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..errors import KafkaError, WireError
from ..protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
from ..protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from ..protocol.schema import Versions
from .acl_bindings import AclBinding, AclBindingFilter, ResourcePattern
from .response_errors import error_of, raise_for

__all__ = (
    "LITERAL_VERSIONS",
    "create_request",
    "created",
    "delete_request",
    "deleted",
    "describe_request",
    "described",
    "versions_for",
)

LITERAL_VERSIONS: Final = Versions.parse("0")
"""The versions without types of patterns, in which all names are literal."""
_PATTERNS_SINCE: Final = Versions.parse("1+")  # KIP-290
_USERS_SINCE: Final = Versions.parse("3+")  # KIP-373


def versions_for(types: Iterable[ResourceType]) -> Versions:
    """Return the versions, of those with types of patterns, that know these types of resources."""
    return _USERS_SINCE if ResourceType.USER in types else _PATTERNS_SINCE


def describe_request(wanted: AclBindingFilter, *, literal: bool) -> DescribeAclsRequest:
    """Return the request for the ACLs that a filter finds; ``literal`` is for versions without types of patterns."""
    return DescribeAclsRequest(**_filter_fields(wanted, literal=literal))


def described(response: DescribeAclsResponse) -> list[AclBinding]:
    """Return the ACLs in a response, sorted by resource, principal, host, operation and permission.

    Raises:
        BrokerError: the response has an error.
    """
    raise_for(response.error_code, "describing ACLs", response.error_message)
    found = [
        _binding(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    ]
    return _sorted(found)


def create_request(bindings: Iterable[AclBinding]) -> CreateAclsRequest:
    """Return the request that creates ACLs."""
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=binding.pattern.type,
                resource_name=binding.pattern.name,
                resource_pattern_type=binding.pattern.pattern_type,
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission_type,
            )
            for binding in bindings
        ]
    )


def created(bindings: Sequence[AclBinding], response: CreateAclsResponse) -> dict[AclBinding, KafkaError | None]:
    """Return the error of each requested ACL in a response, None for success.

    Raises:
        WireError: the response has another number of results.
    """
    _check_number(len(bindings), len(response.results), "CreateAcls")
    return {
        binding: error_of(result.error_code, f"creating the ACL {binding}", result.error_message)
        for binding, result in zip(bindings, response.results, strict=True)
    }


def delete_request(filters: Iterable[AclBindingFilter], *, literal: bool) -> DeleteAclsRequest:
    """Return the request that deletes the ACLs that filters find; ``literal`` as in :func:`describe_request`."""
    return DeleteAclsRequest(
        filters=[DeleteAclsFilter(**_filter_fields(wanted, literal=literal)) for wanted in filters]
    )


def _filter_fields(wanted: AclBindingFilter, *, literal: bool) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": PatternType.LITERAL if literal else wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def deleted(
    filters: Sequence[AclBindingFilter], response: DeleteAclsResponse
) -> dict[AclBindingFilter, dict[AclBinding, KafkaError | None] | KafkaError]:
    """Return the ACLs that each requested filter found, sorted, or the filter's error.

    An ACL has an error if it is not deleted; that of the only ACL is the filter's.

    Raises:
        WireError: the response has another number of results.
    """
    _check_number(len(filters), len(response.filter_results), "DeleteAcls")
    return {wanted: _deleted(wanted, result) for wanted, result in zip(filters, response.filter_results, strict=True)}


def _deleted(
    wanted: AclBindingFilter, result: DeleteAclsFilterResult
) -> dict[AclBinding, KafkaError | None] | KafkaError:
    error = error_of(result.error_code, f"deleting {wanted}", result.error_message)
    if error is not None:
        return error
    found = {
        binding: error_of(acl.error_code, f"deleting the ACL {binding}", acl.error_message)
        for acl in result.matching_acls
        for binding in [_matched(acl)]
    }
    errors = list(found.values())
    if len(errors) == 1 and errors[0] is not None:
        return errors[0]
    return {binding: found[binding] for binding in _sorted(found)}


def _matched(acl: DeleteAclsMatchingAcl) -> AclBinding:
    return _binding(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _binding(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission_type: int
) -> AclBinding:
    pattern = ResourcePattern(ResourceType(resource_type), name, PatternType(pattern_type))
    return AclBinding(pattern, principal, AclOperation(operation), AclPermissionType(permission_type), host)


def _sorted(bindings: Iterable[AclBinding]) -> list[AclBinding]:
    return sorted(
        bindings,
        key=lambda acl: (
            acl.pattern.type,
            acl.pattern.name,
            acl.pattern.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        ),
    )


def _check_number(asked: int, answered: int, api: str) -> None:
    if asked != answered:
        raise WireError(f"the {api} response has {answered} results for {asked} requested")
