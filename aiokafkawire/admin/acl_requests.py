"""The admin's requests about ACLs, which any broker answers."""

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from ..cluster.cluster import Cluster
from ..cluster.request_variants import RequestVariant, in_newest_form
from ..cluster.retry import Deadline
from ..errors import AdminError, KafkaError, UnsupportedVersion
from ..protocol.acl_codes import PatternType, ResourceType
from ..protocol.messages.acls import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse
from ..protocol.schema import Request, Versions
from .acl_bindings import AclBinding, AclBindingFilter
from .acl_messages import (
    LITERAL_VERSIONS,
    create_request,
    created,
    delete_request,
    deleted,
    describe_request,
    described,
    versions_for,
)
from .outcomes import Outcomes, ask_for_each, results_of
from .response_errors import explain_unsupported

__all__ = ("create_acls", "delete_acls", "describe_acls")

_Found: TypeAlias = dict[AclBinding, KafkaError | None]
"""The ACLs that a filter found, each with the error if it is not deleted."""

_LITERAL = (PatternType.LITERAL, PatternType.ANY)
"""The types of patterns for which a request without types of patterns means the same."""
_NEEDS: Final = (
    "ACLs need brokers since 0.11 (KIP-140), prefixed and matching patterns 2.0 (KIP-290), users 3.3 (KIP-373)"
)


async def describe_acls(cluster: Cluster, wanted: AclBindingFilter, deadline: Deadline) -> list[AclBinding]:
    """Return the ACLs that a filter finds. Raise as :meth:`Admin.describe_acls`."""
    found: list[AclBinding] = []

    def check(response: DescribeAclsResponse) -> None:
        found[:] = described(response)

    async def ask(request: Request[DescribeAclsResponse], versions: Versions) -> DescribeAclsResponse:
        return await cluster.ask(cluster.least_loaded, request, deadline, lane="admin", wanted=versions, check=check)

    variants = [RequestVariant(describe_request(wanted, literal=False), versions_for([wanted.resource_type]))]
    if _has_old_form([wanted.resource_type], [wanted.pattern_type]):
        variants.append(RequestVariant(describe_request(wanted, literal=True), LITERAL_VERSIONS))
    with explain_unsupported(_NEEDS):
        await in_newest_form(variants, ask)
    return found


async def create_acls(cluster: Cluster, bindings: Collection[AclBinding], deadline: Deadline) -> None:
    """Create ACLs. Raise as :meth:`Admin.create_acls`."""
    pending: list[AclBinding] = []

    def request(asked: list[AclBinding]) -> Request[CreateAclsResponse]:
        pending[:] = asked
        return create_request(asked)

    def outcomes(response: CreateAclsResponse) -> Outcomes[AclBinding, None]:
        return created(pending, response)

    types = [binding.pattern.type for binding in bindings]
    is_literal = _has_old_form(types, [binding.pattern.pattern_type for binding in bindings])

    async def ask(versions: Versions) -> Outcomes[AclBinding, None]:
        return await ask_for_each(
            cluster, cluster.least_loaded, bindings, deadline, request=request, outcomes=outcomes, versions=versions
        )

    with explain_unsupported(_NEEDS):
        found = await ask(Versions.parse("0+") if is_literal else versions_for(types))
    results_of("creating ACLs", found)


async def delete_acls(
    cluster: Cluster, filters: Collection[AclBindingFilter], deadline: Deadline
) -> dict[AclBindingFilter, list[AclBinding]]:
    """Delete the ACLs that filters find, and return them. Raise as :meth:`Admin.delete_acls`."""
    pending: list[AclBindingFilter] = []

    def outcomes(response: DeleteAclsResponse) -> Outcomes[AclBindingFilter, _Found]:
        return deleted(pending, response)

    async def ask(*, literal: bool, versions: Versions) -> Outcomes[AclBindingFilter, _Found]:
        def request(asked: list[AclBindingFilter]) -> Request[DeleteAclsResponse]:
            pending[:] = asked
            return delete_request(asked, literal=literal)

        return await ask_for_each(
            cluster, cluster.least_loaded, filters, deadline, request=request, outcomes=outcomes, versions=versions
        )

    types = [wanted.resource_type for wanted in filters]
    with explain_unsupported(_NEEDS):
        try:
            found = await ask(literal=False, versions=versions_for(types))
        except UnsupportedVersion:
            if not _has_old_form(types, [wanted.pattern_type for wanted in filters]):
                raise
            found = await ask(literal=True, versions=LITERAL_VERSIONS)
    return _deleted_acls(found)


def _deleted_acls(found: Outcomes[AclBindingFilter, _Found]) -> dict[AclBindingFilter, list[AclBinding]]:
    """Return the ACLs that each filter has deleted. Raise as :meth:`Admin.delete_acls`."""
    acls = [acl for outcome in found.values() if isinstance(outcome, dict) for acl in outcome.items()]
    kept = {binding: error for binding, error in acls if error is not None}
    gone = {
        wanted: outcome if isinstance(outcome, KafkaError) else [acl for acl in outcome if acl not in kept]
        for wanted, outcome in found.items()
    }
    if not kept:
        return results_of("deleting ACLs", gone)
    refused = {wanted: outcome for wanted, outcome in gone.items() if isinstance(outcome, KafkaError)}
    results = {wanted: outcome for wanted, outcome in gone.items() if not isinstance(outcome, KafkaError)}
    what = f"deleting ACLs failed for {len(kept) + len(refused)} of {len(dict(acls)) + len(refused)}"
    raise AdminError(what, {**kept, **refused}, results)


def _has_old_form(types: Iterable[ResourceType], patterns: Iterable[PatternType]) -> bool:
    """Return whether the first version of the requests can ask for these types of resources and of patterns."""
    return ResourceType.USER not in types and all(pattern in _LITERAL for pattern in patterns)
