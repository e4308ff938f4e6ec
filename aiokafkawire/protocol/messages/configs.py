"""Settings of topics, brokers and other resources."""

from ..api import ApiKey
from ..primitives import Array, Bool, Int8, Int16, Int32, String
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AlterConfigsRequest",
    "AlterConfigsRequestAlterConfigsResource",
    "AlterConfigsRequestAlterableConfig",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "ConfigResource",
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsRequestAlterConfigsResource",
    "IncrementalAlterConfigsRequestAlterableConfig",
    "IncrementalAlterConfigsResponse",
    "ListConfigResourcesRequest",
    "ListConfigResourcesResponse",
)


@nested
class DescribeConfigsSynonym:
    """DOC(DescribeConfigsResponse.Synonyms)."""

    name: String = field("1+")
    value: String | None = field("1+", nullable="1+")
    source: Int8 = field("1+")


@nested
class DescribeConfigsResourceResult:
    """DOC(DescribeConfigsResponse.Configs)."""

    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")
    read_only: Bool = field("0+")
    is_default: Bool = field("0", default=False)
    config_source: Int8 = field("1+", default=-1, ignorable=True)
    is_sensitive: Bool = field("0+")
    synonyms: Array[DescribeConfigsSynonym] = field("1+", default=list, ignorable=True)
    config_type: Int8 = field("3+", default=0, ignorable=True)
    documentation: String | None = field("3+", nullable="3+", default="", ignorable=True)


@nested
class DescribeConfigsResult:
    """DOC(DescribeConfigsResponse.Results)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: Array[DescribeConfigsResourceResult] = field("0+")


@message(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[DescribeConfigsResult] = field("0+")


@nested
class DescribeConfigsResource:
    """DOC(DescribeConfigsRequest.Resources)."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configuration_keys: Array[String] | None = field("0+", nullable="0+")


@message(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    """DOC."""

    resources: Array[DescribeConfigsResource] = field("0+")
    include_synonyms: Bool = field("1+", default=False)
    include_documentation: Bool = field("3+", default=False)


@nested
class AlterConfigsResourceResponse:
    """DOC(AlterConfigsResponse.Responses)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")


@message(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    responses: Array[AlterConfigsResourceResponse] = field("0+")


@nested
class AlterConfigsRequestAlterableConfig:
    """DOC(AlterConfigsRequest.Configs)."""

    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")


@nested
class AlterConfigsRequestAlterConfigsResource:
    """DOC(AlterConfigsRequest.Resources)."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: Array[AlterConfigsRequestAlterableConfig] = field("0+")


@message(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsRequest(Request[AlterConfigsResponse]):
    """DOC."""

    resources: Array[AlterConfigsRequestAlterConfigsResource] = field("0+")
    validate_only: Bool = field("0+")


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    responses: Array[AlterConfigsResourceResponse] = field("0+")


@nested
class IncrementalAlterConfigsRequestAlterableConfig:
    """DOC(IncrementalAlterConfigsRequest.Configs)."""

    name: String = field("0+")
    config_operation: Int8 = field("0+")
    value: String | None = field("0+", nullable="0+")


@nested
class IncrementalAlterConfigsRequestAlterConfigsResource:
    """DOC(IncrementalAlterConfigsRequest.Resources)."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: Array[IncrementalAlterConfigsRequestAlterableConfig] = field("0+")


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse]):
    """DOC."""

    resources: Array[IncrementalAlterConfigsRequestAlterConfigsResource] = field("0+")
    validate_only: Bool = field("0+")


@nested
class ConfigResource:
    """DOC(ListConfigResourcesResponse.ConfigResources)."""

    resource_name: String = field("0+")
    resource_type: Int8 = field("1+", default=16, ignorable=True)


@message(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    config_resources: Array[ConfigResource] = field("0+")


@message(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Request[ListConfigResourcesResponse]):
    """DOC."""

    resource_types: Array[Int8] = field("1+", default=list)
