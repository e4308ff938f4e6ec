"""Reads settings of other clients: Java's ``client.properties``, and dicts for librdkafka and confluent-kafka."""

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, cast, get_args

import attrs

from ..argument_checks import INT32
from ..errors import ConfigError
from ..event_log import EventLog
from ..types import OAuthBearerToken
from . import (
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    ShareConsumerConfig,
    ShareConsumerOptions,
    make_config,
)
from .compression_levels import CODECS, java_level, librdkafka_level
from .interceptor_classes import interceptors_of
from .jaas import parse_jaas
from .oauth import JWT_BEARER
from .properties_parser import parse_properties
from .property_names import (
    ALIASES,
    KEYTAB,
    MSK_OAUTH_HANDLER,
    REFUSED,
    SPECIAL,
    WITHOUT_CONSUMER,
    WITHOUT_EFFECT,
    why_without_effect,
)
from .property_values import converted, whole_number
from .security import TlsVersion

__all__ = ("KafkaSettings", "is_property", "settings_from")

_log = EventLog("aiokafkawire.config")

_CONFIGS: Final = {"client": ClientConfig, "producer": ProducerConfig, "consumer": ConsumerConfig}
"""The config classes. The client gets a setting that it has; others go to the producer, the consumer, or both. A share
consumer gets those of a consumer as well."""
_PARTS: Final = {**_CONFIGS, "share_consumer": ShareConsumerConfig}
_PARTITIONERS: Final = {"RoundRobinPartitioner": "round_robin", "DefaultPartitioner": "default"}
_TLS_VERSIONS: Final = get_args(TlsVersion)
_STORE_TYPES: Final = ("JKS", "PKCS12", "JCEKS", "PEM")
_RETRIEVERS: Final = {
    "DefaultJwtRetriever": "client_credentials",
    "ClientCredentialsJwtRetriever": "client_credentials",
    "JwtBearerJwtRetriever": JWT_BEARER,
}
"""Java's classes that request tokens, and the grant types that they use."""
_OAUTH_HANDLER: Final = "OAuthBearerLoginCallbackHandler"
_AZURE_IMDS: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_AWS_PROFILE: Final = (
    "name the profile in the environment as AWS_PROFILE, with botocore installed, or set sasl_aws_credentials to a "
    "function"
)
_AWS_ROLE: Final = (
    "let a profile of AWS's configuration assume the role, and name it in the environment as AWS_PROFILE, with "
    "botocore installed; or set sasl_aws_credentials to a function that assumes the role"
)
_AWS_OPTIONS: Final = {
    "awsProfileName": _AWS_PROFILE,
    "awsRoleArn": _AWS_ROLE,
    "awsRoleSessionName": _AWS_ROLE,
    "awsRoleExternalId": _AWS_ROLE,
    "awsRoleAccessKeyId": _AWS_ROLE,
    "awsRoleSecretAccessKey": _AWS_ROLE,
    "awsRoleSessionToken": _AWS_ROLE,
    "awsStsRegion": _AWS_ROLE,
    "awsDebugCreds": "leave it out, and compare with `aws sts get-caller-identity`",
    "awsMaxRetries": "leave it out, and set AWS_MAX_ATTEMPTS in the environment, with botocore installed",
    "awsMaxBackOffTimeMs": "leave it out: botocore has a backoff of its own",
}
"""The options of AWS's login modules for MSK, and what to do instead of each."""
_MODULES: Final = {
    "PlainLoginModule": {"username": "sasl_username", "password": "sasl_password"},
    "ScramLoginModule": {"username": "sasl_username", "password": "sasl_password", "tokenauth": "sasl_tokenauth"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl_oauthbearer_client_id",
        "clientSecret": "sasl_oauthbearer_client_secret",
        "scope": "sasl_oauthbearer_scope",
    },
    "Krb5LoginModule": {"serviceName": "sasl_kerberos_service_name"},
    "IAMLoginModule": {},
}
"""Java's login modules; for each, its options and the corresponding settings of this client."""


@attrs.frozen(kw_only=True)
class KafkaSettings:
    """The settings that :func:`settings_from` returns: arguments for ``Client``, its producers and its consumers.

    Use them as in ``Client(settings.bootstrap_servers, **settings.client)``. The repr shows no values of options, since
    some are secret.
    """

    bootstrap_servers: str
    """The bootstrap servers; empty if the properties have none."""
    client: ClientOptions = attrs.field(repr=lambda options: f"<{', '.join(options)}>")
    producer: ProducerOptions = attrs.field(repr=lambda options: f"<{', '.join(options)}>")
    consumer: ConsumerOptions = attrs.field(repr=lambda options: f"<{', '.join(options)}>")
    ignored: tuple[str, ...] = ()
    """The given keys that mean nothing to this client, or nothing beside the others, or nothing to a consumer."""
    producer_interceptors: tuple[Any, ...] = ()
    """The interceptors that ``interceptor.classes`` names for producers: the argument ``interceptors``."""
    consumer_interceptors: tuple[Any, ...] = ()
    """The interceptors that ``interceptor.classes`` names for consumers: the argument ``interceptors``."""
    share_consumer: ShareConsumerOptions = attrs.field(
        factory=lambda: ShareConsumerOptions(), repr=lambda options: f"<{', '.join(options)}>"
    )


def settings_from(properties: str | Mapping[str, Any]) -> KafkaSettings:
    """Read settings under Kafka's names: every name that Java's clients 4.4 and librdkafka 2.16 document.

    Settings that mean nothing here are ignored, with a line in the log at DEBUG; it has the reason where that depends
    on the other settings.

    Args:
        properties: the text of a Java ``client.properties``, or a mapping with keys such as ``security.protocol``;
            the values are strings, or numbers, booleans and functions as for confluent-kafka.

    Raises:
        ConfigError: a key is unknown (the message suggests a known key), or asks for something that this client does
            not do, or a value is invalid. The message names the key that was given. Secret values are not shown.
    """
    given = parse_properties(properties) if isinstance(properties, str) else dict(properties)
    reader = _Reader()
    for key in given:
        if not isinstance(key, str):
            raise ConfigError(f"the names of properties are text, not {type(key).__name__}")
    for key, value in given.items():
        if ALIASES.get(key) not in given:
            reader.take(ALIASES.get(key, key), value, key)
    return reader.settings()


def is_property(name: str) -> bool:
    """Return whether :func:`settings_from` knows a property of that name."""
    return (
        any(name in names for names in (ALIASES, SPECIAL, REFUSED, _own_names()))
        or why_without_effect(name) is not None
    )


class _Reader:
    def __init__(self) -> None:
        self.options: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
        self.special: dict[str, Any] = {}
        self.ignored: dict[str, str] = {}
        """The given keys without effect; for each, the reason if it depends on the other settings, or an empty text."""
        self.keys: dict[str, str] = {}
        """The options that the given keys set, and these keys."""

    def take(self, key: str, value: Any, named: str) -> None:
        refused = REFUSED.get(key)
        if refused is not None and not refused.accepts(value):
            raise ConfigError(f"{named} {refused.why}")
        if refused is not None or why_without_effect(key) is not None:
            self.ignored[named] = ""
        elif key in SPECIAL:
            self.special[key] = value
        elif not self._apply(key.replace(".", "_"), value, named):
            near = get_close_matches(named, [*_own_names(), *SPECIAL, *ALIASES, *WITHOUT_EFFECT, *REFUSED], n=1)
            hint = f"did you mean {near[0]}?" if near else "no known property is similar"
            raise ConfigError(f"unknown property {named!r}: {hint}")
        if key in WITHOUT_CONSUMER:
            self.ignored[named] = WITHOUT_CONSUMER[key]

    def _apply(self, name: str, value: Any, named: str) -> bool:
        """Set the option of that name; return whether there is one."""
        owners = [part for part, config in _CONFIGS.items() if name in attrs.fields_dict(config)]
        if "client" in owners:
            owners = ["client"]
        if name in attrs.fields_dict(ShareConsumerConfig):
            owners.append("share_consumer")
        for part in owners:
            self.options[part][name] = converted(_PARTS[part], name, value, named)
        self.keys[name] = named
        return bool(owners)

    def settings(self) -> KafkaSettings:
        client = self.options["client"]
        self._bootstrap(client)
        self._tls(client)
        self._login(client)
        self._compression(self.options["producer"])
        self._producer(self.options["producer"])
        for part, config in _PARTS.items():
            try:
                make_config(config, self.options[part])  # raises ConfigError now if a setting is invalid
            except ConfigError as error:
                raise ConfigError(_with_given_keys(str(error), self.keys), setting=error.setting) from None
        for_producers, for_consumers = interceptors_of(self.special.get("interceptor.classes", ()))
        if self.ignored:
            shown = (f"{key} ({why})" if why else key for key, why in self.ignored.items())
            _log.debug("settings without effect in this client: %(keys)s", text={"keys": ", ".join(shown)})
        return KafkaSettings(
            bootstrap_servers=_servers(self.special.get("bootstrap.servers")),
            client=cast("ClientOptions", client),
            producer=cast("ProducerOptions", self.options["producer"]),
            consumer=cast("ConsumerOptions", self.options["consumer"]),
            share_consumer=cast("ShareConsumerOptions", self.options["share_consumer"]),
            ignored=tuple(self.ignored),
            producer_interceptors=for_producers,
            consumer_interceptors=for_consumers,
        )

    def _bootstrap(self, client: dict[str, Any]) -> None:
        key = "bootstrap.resolve.timeout.ms"
        value = self.special.get(key)
        if value is None or "bootstrap_timeout_ms" in client:
            return
        limit = converted(ClientConfig, "bootstrap_timeout_ms", value, key)
        if limit == 0:
            self.ignored[key] = "without a limit of its own the client has bootstrap_timeout_ms"
        else:
            client["bootstrap_timeout_ms"] = limit
            self.keys["bootstrap_timeout_ms"] = key

    def _compression(self, producer: dict[str, Any]) -> None:
        codec = str(producer.get("compression_type", "none"))
        key = "compression.level"
        if key in self.special:
            level = None if self.special[key] is None else librdkafka_level(codec, self.special[key], key)
            if level is None or codec in CODECS:
                producer["compression_level"] = level
            else:
                self.ignored[key] = f"compression.type is {codec}, which has no levels"
        for name in CODECS:
            key = f"compression.{name}.level"
            if self.special.get(key) is None:
                continue
            level = java_level(name, self.special[key], key)
            if name == codec:
                producer.setdefault("compression_level", level)
            else:
                self.ignored[key] = f"compression.type is {codec}"

    def _producer(self, producer: dict[str, Any]) -> None:
        special = self.special
        key = "queue.buffering.max.kbytes"
        if special.get(key) is not None and "buffer_memory" not in producer:
            size = whole_number(special[key], key)
            producer["buffer_memory"] = min(size * 1024, INT32) if size > 0 else size
            self.keys["buffer_memory"] = key
        chosen = str(special.get("partitioner.class") or "").rpartition(".")[2]
        if chosen and chosen not in _PARTITIONERS:
            known = " and ".join(_PARTITIONERS)
            raise ConfigError(
                f"partitioner.class {chosen!r:.200} cannot be used: known are Java's {known}; for others, "
                "set partitioner to a function"
            )
        if chosen:
            producer.setdefault("partitioner", _PARTITIONERS[chosen])

    def _tls(self, client: dict[str, Any]) -> None:
        special = self.special
        if _store_type(special, "ssl.truststore.type") == "PEM" and "ssl_truststore_location" in client:
            self._rename(client, "ssl_truststore_location", "ssl_ca_location")
            self._drop(client, "ssl_truststore_password", "ssl.truststore.type is PEM, which has no password")
        if "ssl_truststore_location" not in client:
            self._drop(client, "ssl_truststore_password", "there is no ssl.truststore.location")
        if not client.get("ssl_cipher_suites", ""):
            client.pop("ssl_cipher_suites", None)
        if _is_default(client.get("ssl_enabled_protocols")):
            client.pop("ssl_enabled_protocols", None)  # which Java's files may name without TLS
        if _store_type(special, "ssl.keystore.type") == "PEM" and "ssl_keystore_location" in client:
            self._rename(client, "ssl_keystore_location", "ssl_certificate_location")
            self._drop(client, "ssl_keystore_password", "ssl.keystore.type is PEM: ssl.key.password is the key's")

    def _rename(self, client: dict[str, Any], option: str, other: str) -> None:
        """Give the option another name. Raise ConfigError if that one is given, too, and so would be lost."""
        if client.get(other) is not None:
            raise ConfigError(
                f"{self.keys[option]} and {self.keys[other]} are two sources of the same: set one of them",
                setting=other,
            )
        client[other] = client.pop(option)
        self.keys[other] = self.keys[option]

    def _drop(self, client: dict[str, Any], option: str, why: str) -> None:
        """Remove an option that has no effect beside the others, if it is given."""
        if client.pop(option, None) is not None:
            self.ignored[self.keys[option]] = why

    def _login(self, client: dict[str, Any]) -> None:
        jaas, callback = self.special.get("sasl.jaas.config"), self.special.get("oauth_cb")
        if jaas is not None:
            _take_jaas(client, str(jaas))
        self._take_token_source(client)
        if "sasl_oauthbearer_token_endpoint_url" in client:
            client.setdefault("sasl_oauthbearer_method", "oidc")
        self._take_handler(client)
        config = str(self.special.get("sasl.oauthbearer.config") or "")
        if callback is not None:
            if not callable(callback):
                raise ConfigError(f"oauth_cb must be a function, not {type(callback).__name__}")
            client["sasl_oauthbearer_token"] = _provider(callback, config)
        elif config and "sasl_oauthbearer_metadata_authentication_type" not in client:
            self.ignored["sasl.oauthbearer.config"] = "it is the argument of oauth_cb, and there is none"

    def _take_handler(self, client: dict[str, Any]) -> None:
        key = "sasl.login.callback.handler.class"
        handler = str(self.special.get(key) or "").strip()
        uses_oauth = str(client.get("sasl_mechanism")).upper() == "OAUTHBEARER"
        has_endpoint = "sasl_oauthbearer_token_endpoint_url" in client
        if handler == MSK_OAUTH_HANDLER and uses_oauth:
            client["sasl_mechanism"] = "AWS_MSK_IAM"
        elif handler.rpartition(".")[2] == _OAUTH_HANDLER:
            if not has_endpoint:
                raise ConfigError(f"{key} needs sasl.oauthbearer.token.endpoint.url")
            if not uses_oauth:
                self.ignored[key] = "sasl.mechanism is not OAUTHBEARER"
        elif handler:
            functions = self.special.get("oauth_cb") or client.get("sasl_oauthbearer_token")
            if uses_oauth and not has_endpoint and functions is None:
                raise ConfigError(
                    f"{key} {handler!r:.200} cannot be used: known are Java's {_OAUTH_HANDLER} and AWS's "
                    f"{MSK_OAUTH_HANDLER.rpartition('.')[2]}; for others, set sasl_oauthbearer_token to a function"
                )
            self.ignored[key] = "Java classes cannot be used"

    def _take_token_source(self, client: dict[str, Any]) -> None:
        retriever = str(self.special.get("sasl.oauthbearer.jwt.retriever.class") or "")
        name = retriever.rpartition(".")[2]
        if name and name not in _RETRIEVERS:
            known = ", ".join(_RETRIEVERS)
            raise ConfigError(
                f"sasl.oauthbearer.jwt.retriever.class {retriever!r:.200} cannot be used: known are Java's {known}; "
                "for others, set sasl_oauthbearer_token to a function"
            )
        if name:
            client.setdefault("sasl_oauthbearer_grant_type", _RETRIEVERS[name])
        source = str(self.special.get("sasl.oauthbearer.metadata.authentication.type") or "none").lower()
        if source not in ("none", "azure_imds"):
            raise ConfigError(
                f"sasl.oauthbearer.metadata.authentication.type {source!r:.200} cannot be used: known is azure_imds; "
                "for others, set sasl_oauthbearer_token to a function, or sasl_mechanism to AWS_MSK_IAM"
            )
        if source == "azure_imds":
            client["sasl_oauthbearer_metadata_authentication_type"] = source
            url = client.get("sasl_oauthbearer_token_endpoint_url") or _AZURE_IMDS
            config = str(self.special.get("sasl.oauthbearer.config") or "")
            client["sasl_oauthbearer_token_endpoint_url"] = _with_query(url, config)


def _with_given_keys(message: str, keys: Mapping[str, str]) -> str:
    """Return an error's message with the given keys for the options that they set, except in the value it shows."""
    told, got, value = message.partition(", got ")
    return re.sub(r"\w+", lambda word: keys.get(word[0], word[0]), told) + got + value


def _servers(given: object) -> str:
    """Return the bootstrap servers as one string, which is empty without servers."""
    if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
        return ",".join(given)
    if given is not None and not isinstance(given, str):
        raise ConfigError("bootstrap.servers must be 'host:port,host:port' or a list of 'host:port'")
    return given or ""


def _is_default(versions: object) -> bool:
    """Return whether versions of TLS are those that are offered by default, or none."""
    if not isinstance(versions, Collection):
        return not versions
    return not versions or (
        all(version in _TLS_VERSIONS for version in versions) and len({*versions}) == len(_TLS_VERSIONS)
    )


def _with_query(url: str, config: str) -> str:
    """Return the URL with the ``query`` of librdkafka's ``sasl.oauthbearer.config`` behind it, if there is one."""
    given = dict(part.split("=", 1) for part in config.split(",") if "=" in part)
    query = given.get("query", "")
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def _store_type(special: Mapping[str, Any], key: str) -> str:
    """Return the type of a keystore or truststore; if it is not PEM, the content shows it."""
    named = str(special.get(key) or "JKS").upper()
    if named not in _STORE_TYPES:
        known = ", ".join(_STORE_TYPES)
        raise ConfigError(f"{key} {named!r:.200} cannot be read: known are {known}; convert it by keytool")
    return named


def _take_jaas(client: dict[str, Any], text: str) -> None:
    name, options = parse_jaas(text)
    known = _MODULES.get(name)
    if known is None:
        raise ConfigError(f"sasl.jaas.config: unknown login module {name}; known: {', '.join(_MODULES)}")
    if any(option.startswith("unsecuredLogin") for option in options):
        raise ConfigError("sasl.jaas.config: unsecured tokens are for tests; set sasl_oauthbearer_token to a function")
    extensions = {}
    for option, value in options.items():
        if option in known:
            setting, wanted = known[option], value if option != "tokenauth" else value.lower() == "true"
            # Of OAUTHBEARER, Java takes the property before the option.
            if client.setdefault(setting, wanted) != wanted and not setting.startswith("sasl_oauthbearer"):
                raise ConfigError(
                    f"{setting.replace('_', '.')} is another than {option} in sasl.jaas.config: remove one of them "
                    "(values are not shown)",
                    setting=setting,
                )
        elif option.startswith("extension_"):
            extensions[option.removeprefix("extension_")] = value
        elif option in _AWS_OPTIONS:
            raise ConfigError(f"sasl.jaas.config: {option} cannot be used: {_AWS_OPTIONS[option]}")
        elif name == "Krb5LoginModule":
            # The other options say where Java finds the ticket, which the system's Kerberos finds by itself.
            if option == "keyTab" or (option == "useKeyTab" and value.lower() == "true"):
                raise ConfigError(f"sasl.jaas.config: {option} cannot be used: {KEYTAB}")
        else:
            near = get_close_matches(option, known or _AWS_OPTIONS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known) or 'none'}"
            raise ConfigError(f"sasl.jaas.config: unknown option {option!r} of {name}: {hint}")
    if extensions:
        client.setdefault("sasl_oauthbearer_extensions", extensions)


def _provider(callback: Callable[[str], Any], config: str) -> Callable[[], OAuthBearerToken]:
    """Wrap confluent-kafka's ``oauth_cb``; it is called with ``config``, the value of ``sasl.oauthbearer.config``.

    It returns a token, its expiry in s and, optionally, a principal and extensions.
    """

    def provide() -> OAuthBearerToken:
        value, ends, *more = callback(config)
        return OAuthBearerToken(value, int(ends * 1000), dict(more[1]) if len(more) > 1 and more[1] else {})

    return provide


@cache
def _own_names() -> list[str]:
    """Return the names of our settings, written as properties."""
    return [name.replace("_", ".") for config in _PARTS.values() for name in attrs.fields_dict(config)]
