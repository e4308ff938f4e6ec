"""Settings of topics, brokers and other resources (KIP-133, KIP-339).

What concerns one broker or its loggers goes to that broker, anything else to any. The codes:

- resource types, and what the name is: 0: unknown; 2: topic; 4: broker, by its id, or an empty name for the defaults of
  all brokers (KIP-226); 8: broker logger, by the broker's id (KIP-412); 16: client metrics, by the subscription's name
  (KIP-714); 32: group, by its id (KIP-848)
- config sources (KIP-226): 0: unknown; 1: the topic; 2: one broker, set by request; 3: all brokers, set by request;
  4: the broker's file; 5: Kafka's default; 6: the broker's logger; 7: the client metrics; 8: the group
"""

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
    """One of the places that a setting may take its value from (KIP-226)."""

    name: String = field("1+")
    value: String | None = field("1+", nullable="1+")
    source: Int8 = field("1+")


@nested
class DescribeConfigsResourceResult:
    """A setting and its value, which is null where it is sensitive."""

    name: String = field("0+")
    value: String | None = field("0+", nullable="0+")
    read_only: Bool = field("0+")  # True: no request can change it
    is_default: Bool = field("0", default=False)
    config_source: Int8 = field("1+", default=-1, ignorable=True)  # KIP-226; -1: not told (v0)
    is_sensitive: Bool = field("0+")
    # KIP-226; the one in effect first; empty unless asked for
    synonyms: Array[DescribeConfigsSynonym] = field("1+", default=list, ignorable=True)
    # KIP-569; 0: unknown; 1: boolean; 2: string; 3: int; 4: short; 5: long; 6: double; 7: list; 8: class;
    # 9: password
    config_type: Int8 = field("3+", default=0, ignorable=True)
    # KIP-569; null unless asked for
    documentation: String | None = field("3+", nullable="3+", default="", ignorable=True)


@nested
class DescribeConfigsResult:
    """The settings of one resource, or why they are not told."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: Array[DescribeConfigsResourceResult] = field("0+")


@message(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Response):
    """The settings of each resource."""

    throttle_time_ms: Int32 = field("0+", default=0)
    results: Array[DescribeConfigsResult] = field("0+")


@nested
class DescribeConfigsResource:
    """A resource and the names of the settings asked for; null is all of them."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configuration_keys: Array[String] | None = field("0+", nullable="0+")


@message(ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    """What are the settings of these resources? Brokers of 4.0 and later serve v1 and up."""

    resources: Array[DescribeConfigsResource] = field("0+")
    include_synonyms: Bool = field("1+", default=False)  # KIP-226
    include_documentation: Bool = field("3+", default=False)  # KIP-569


@nested
class AlterConfigsResourceResponse:
    """Whether the settings of one resource were changed; IncrementalAlterConfigs answers with it, too."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+")
    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")


@message(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsResponse(Response):
    """How the changes of each resource went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    responses: Array[AlterConfigsResourceResponse] = field("0+")


@nested
class AlterConfigsRequestAlterableConfig:
    """A setting with its new value; null is refused."""

    name: String = field("0+")
    value: String | None = field("0+", nullable="0+", secret=True)  # perhaps a password


@nested
class AlterConfigsRequestAlterConfigsResource:
    """A resource and all settings it is to have."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: Array[AlterConfigsRequestAlterableConfig] = field("0+")


@message(ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsRequest(Request[AlterConfigsResponse]):
    """Settings that replace all others of their resource: what is left out goes back to its default.

    Deprecated since 2.3, where IncrementalAlterConfigs came to change single settings (KIP-339).
    """

    resources: Array[AlterConfigsRequestAlterConfigsResource] = field("0+")
    validate_only: Bool = field("0+")  # True: check the request and change nothing


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Response):
    """How the changes of each resource went; a resource takes all of its changes or none."""

    throttle_time_ms: Int32 = field("0+", default=0)
    responses: Array[AlterConfigsResourceResponse] = field("0+")


@nested
class IncrementalAlterConfigsRequestAlterableConfig:
    """One change of a setting."""

    name: String = field("0+")
    config_operation: Int8 = field("0+")  # 0: set; 1: delete, back to the default; 2: append and 3: subtract, for lists
    value: String | None = field("0+", nullable="0+", secret=True)  # perhaps a password; null is for delete alone


@nested
class IncrementalAlterConfigsRequestAlterConfigsResource:
    """A resource and the changes of its settings."""

    resource_type: Int8 = field("0+")
    resource_name: String = field("0+")
    configs: Array[IncrementalAlterConfigsRequestAlterableConfig] = field("0+")


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse]):
    """Changes of single settings; the others stay (KIP-339)."""

    resources: Array[IncrementalAlterConfigsRequestAlterConfigsResource] = field("0+")
    validate_only: Bool = field("0+")  # True: check the request and change nothing


@nested
class ConfigResource:
    """A resource that can have settings."""

    resource_name: String = field("0+")
    resource_type: Int8 = field("1+", default=16, ignorable=True)  # KIP-1142


@message(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Response):
    """The resources of the types asked for; with v0, client metrics."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    config_resources: Array[ConfigResource] = field("0+")


@message(ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Request[ListConfigResourcesResponse]):
    """Which resources can have settings? With v0, only client metrics are listed.

    v0 is the API that was named ListClientMetricsResources before 4.1 (KIP-1000); v1 is KIP-1142.
    """

    resource_types: Array[Int8] = field("1+", default=list)  # KIP-1142; empty: all that the broker knows
