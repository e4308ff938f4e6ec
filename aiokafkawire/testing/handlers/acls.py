"""DescribeAcls, CreateAcls and DeleteAcls (KIP-140)."""

from collections.abc import Iterable
from typing import Final

from ...errors import ErrorCode
from ...protocol.acl_codes import AclOperation, AclPermissionType, PatternType, ResourceType
from ...protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ..cluster.api_error import ApiError, Disconnect
from ..security.acls import CLUSTER_NAME, AclFilter, StoredAcl
from ..serving.call import ServerCall

__all__ = ("create_acls", "delete_acls", "describe_acls")

_DISABLED: Final = "No Authorizer is configured."
_DISABLED_DESCRIBING: Final = "No Authorizer is configured on the broker"


async def describe_acls(call: ServerCall, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the ACLs that the filter finds, by resource."""
    authorizer = call.cluster.authorizer
    if authorizer is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=_DISABLED_DESCRIBING, resources=[]
        )
    _check_codes([_filter_codes(request)])
    resources: dict[tuple[ResourceType, str, PatternType], DescribeAclsResource] = {}
    for acl in authorizer.found(_filter(request)):
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        described = resources.setdefault(
            key,
            DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                acls=[],
            ),
        )
        described.acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
        )
    return DescribeAclsResponse(error_code=ErrorCode.NONE, error_message=None, resources=list(resources.values()))


async def create_acls(call: ServerCall, request: CreateAclsRequest) -> CreateAclsResponse:
    """Create each ACL; one that exists counts as created, and an invalid one does not affect others."""
    _check_codes(_codes(asked) for asked in request.creations)
    has_any = any(1 in _codes(asked) or asked.resource_pattern_type == PatternType.MATCH for asked in request.creations)
    if has_any and call.cluster.authorizer is not None:
        failed = AclCreationResult(
            error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None
        )  # as Apache Kafka does
        return CreateAclsResponse(results=[failed] * len(request.creations))
    results = []
    for asked in request.creations:
        error, message = ErrorCode.NONE, None
        try:
            _create(call, asked)
        except ApiError as refused:
            error, message = refused.code, refused.message
        results.append(AclCreationResult(error_code=error, error_message=message))
    return CreateAclsResponse(results=results)


def _codes(asked: AclCreation) -> tuple[int, ...]:
    return asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type


def _check_codes(codes: Iterable[tuple[int, ...]]) -> None:
    """Raise Disconnect for a request with a code 0 ("unknown"), which Apache Kafka cannot parse."""
    if any(0 in each for each in codes):
        raise Disconnect("a request about ACLs with an unknown element")


def _create(call: ServerCall, asked: AclCreation) -> None:
    authorizer = call.cluster.authorizer
    if authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, _DISABLED)
    acl = StoredAcl(
        ResourceType(asked.resource_type),
        asked.resource_name,
        PatternType(asked.resource_pattern_type),
        asked.principal,
        asked.host,
        AclOperation(asked.operation),
        AclPermissionType(asked.permission_type),
    )
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    for field, given in (
        ("resourceType", acl.resource_type),
        ("patternType", acl.pattern_type),
        ("operation", acl.operation),
        ("permissionType", acl.permission_type),
    ):
        if not given:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid {field} UNKNOWN")
    if ":" not in acl.principal:
        fault = f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{fault} from the principal name)")
    authorizer.add(acl)


async def delete_acls(call: ServerCall, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Delete the ACLs that the filters find; one that several filters find is in the result of each."""
    _check_codes(_filter_codes(asked) for asked in request.filters)
    authorizer = call.cluster.authorizer
    results, gone = [], list[StoredAcl]()
    for asked in request.filters:
        wanted = _filter(asked)
        if authorizer is None:
            results.append(_refused(ErrorCode.SECURITY_DISABLED, _DISABLED))
        elif wanted.is_unknown:
            field = "patternFilter" if 0 in (wanted.resource_type, wanted.pattern_type) else "entryFilter"
            results.append(_refused(ErrorCode.INVALID_REQUEST, f"Unknown {field}."))
        else:
            found = authorizer.found(wanted)
            gone += found
            results.append(
                DeleteAclsFilterResult(
                    error_code=ErrorCode.NONE, error_message=None, matching_acls=[_deleted(acl) for acl in found]
                )
            )
    for acl in gone:
        assert authorizer is not None
        authorizer.remove(acl)
    return DeleteAclsResponse(filter_results=results)


def _filter_codes(asked: DeleteAclsFilter | DescribeAclsRequest) -> tuple[int, ...]:
    return asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type


def _filter(asked: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    return AclFilter(
        ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        PatternType(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        AclOperation(asked.operation),
        AclPermissionType(asked.permission_type),
    )


def _refused(error: ErrorCode, message: str) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error, error_message=message, matching_acls=[])


def _deleted(acl: StoredAcl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
