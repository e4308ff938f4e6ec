"""The settings of TLS and SASL: Kafka's property names with underscores. Contradictory settings raise ConfigError.
Files are read when the client opens. No repr or error shows a secret.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from .._lazy_classes import frozen
from ..errors import ConfigError
from ..types import AwsCredentials
from .fields import FilePath, choice, integer, number, optional, optional_text, path, provider, secret
from .oauth import OAuthConfig, OAuthOptions, TokenProvider, check_oauth

__all__ = (
    "AwsProvider",
    "FilePath",
    "SaslMechanism",
    "SecurityConfig",
    "SecurityOptions",
    "SecurityProtocol",
    "TlsVersion",
    "TokenProvider",
)

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
TlsVersion = Literal["TLSv1.2", "TLSv1.3"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"]

AwsProvider: TypeAlias = Callable[[], AwsCredentials | Awaitable[AwsCredentials]]
"""A function that returns AWS credentials for a login. A plain function is called on a thread, so it may block."""

_MECHANISMS: Final = get_args(SaslMechanism)
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "PLAIN": ("sasl_username", "sasl_password"),
    "SCRAM-SHA-256": ("sasl_username", "sasl_password"),
    "SCRAM-SHA-512": ("sasl_username", "sasl_password"),
}
_IDENTITY: Final = ("ssl_certificate_location", "ssl_certificate_pem", "ssl_keystore_location")


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _algorithm(value: object) -> object:
    # In the Java client an empty string means "none".
    return (value.lower() or "none") if isinstance(value, str) else value


def _context(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and not hasattr(value, "wrap_bio"):
        raise ConfigError(
            f"{attribute.name} must be an ssl.SSLContext or None, got {value!r:.200}", setting=attribute.name
        )


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _check_versions(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    names = get_args(TlsVersion)
    if value is not None and (not isinstance(value, tuple) or not value or any(name not in names for name in value)):
        named = ", ".join(repr(name) for name in names)
        raise ConfigError(
            f"{attribute.name} must be a sequence of some of {named}, or None, got {value!r:.200}",
            setting=attribute.name,
        )


def _one_of(default: object, names: tuple[str, ...], converter: Callable[[object], object]) -> Any:
    made = choice(default, *names) if default is not None else choice(None, None, *names)
    made.converter = converter
    return made


class SecurityOptions(OAuthOptions, total=False):
    """Keyword arguments of ``Client`` about TLS and SASL; :class:`SecurityConfig` describes them."""

    security_protocol: SecurityProtocol
    ssl_ca_location: FilePath | None
    ssl_ca_pem: str | None
    ssl_certificate_location: FilePath | None
    ssl_certificate_pem: str | None
    ssl_key_location: FilePath | None
    ssl_key_pem: str | None
    ssl_key_password: str | None
    ssl_keystore_location: FilePath | None
    ssl_keystore_password: str | None
    ssl_truststore_location: FilePath | None
    ssl_truststore_password: str | None
    ssl_endpoint_identification_algorithm: Literal["https", "none"]
    ssl_cipher_suites: str | None
    ssl_enabled_protocols: Sequence[TlsVersion] | None
    ssl_context: Any
    sasl_mechanism: SaslMechanism | None
    sasl_username: str | None
    sasl_password: str | None
    sasl_tokenauth: bool
    sasl_scram_iterations_max: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_kerberos_service_name: str
    sasl_aws_region: str | None
    sasl_aws_credentials: AwsProvider | None


@frozen(kw_only=True)
class SecurityConfig(OAuthConfig):
    """The settings of TLS and SASL."""

    security_protocol: SecurityProtocol = _one_of("PLAINTEXT", get_args(SecurityProtocol), _upper)
    """PLAINTEXT, SSL (which is TLS), SASL_PLAINTEXT (which encrypts nothing), or SASL_SSL."""
    ssl_ca_location: FilePath | None = path()
    """A file with the certificates of the trusted authorities, in PEM, or a directory of such files with OpenSSL's
    hashes as names. If neither this nor ``ssl_ca_pem`` is set, the system's authorities are trusted."""
    ssl_ca_pem: str | None = optional(str, "a string of PEM")
    """The certificates of the trusted authorities, as PEM text."""
    ssl_certificate_location: FilePath | None = path()
    """A file with this client's certificate and its chain, in PEM."""
    ssl_certificate_pem: str | None = optional(str, "a string of PEM")
    """The client's certificate and its chain, as PEM text."""
    ssl_key_location: FilePath | None = path()
    """A file with the private key of this client's certificate, in PEM; by default the file of the certificate."""
    ssl_key_pem: str | None = secret(str, "a string of PEM")
    """The private key of this client's certificate, as PEM text."""
    ssl_key_password: str | None = secret()
    """The password of the private key, if the key is encrypted; of a JKS keystore, if it is not the store's."""
    ssl_keystore_location: FilePath | None = path()
    """A file with this client's certificate and private key, instead of PEM: PKCS12, which needs the extra
    ``aiokafkawire[security]``, or Java's JKS or JCEKS, of which the first key is used. The content shows the type."""
    ssl_keystore_password: str | None = secret()
    """The password of the keystore."""
    ssl_truststore_location: FilePath | None = path()
    """A file with the certificates of the trusted authorities, instead of PEM: Java's JKS or JCEKS, or PKCS12, which
    needs the extra ``aiokafkawire[security]``."""
    ssl_truststore_password: str | None = secret()
    """The password of the truststore. Without it the certificates of a JKS are not checked for changes."""
    ssl_endpoint_identification_algorithm: Literal["https", "none"] = _one_of("https", ("https", "none"), _algorithm)
    """Whether the broker's certificate must be for the host of its address; with "none" any server with a certificate
    of a trusted authority can impersonate the broker."""
    ssl_cipher_suites: str | None = optional_text("names of cipher suites", empty=False)
    """The cipher suites to offer, by IANA's names separated by commas, as
    ``"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"``; TLS 1.3 is disabled unless its
    three suites are named, too. Or a list as OpenSSL has it, such as ``"ECDHE+AESGCM"``, which decides about TLS 1.2
    alone. None for OpenSSL's default."""
    ssl_enabled_protocols: Sequence[TlsVersion] | None = attrs.field(
        default=None, converter=_tuple, validator=_check_versions
    )
    """The versions of TLS: ``"TLSv1.2"``, ``"TLSv1.3"``, or both in a sequence. None for both."""
    ssl_context: Any = attrs.field(default=None, validator=_context)
    """An ``ssl.SSLContext`` of your own, instead of all other settings whose names begin with ``ssl_``."""
    sasl_mechanism: SaslMechanism | None = _one_of(None, _MECHANISMS, _upper)
    """The SASL mechanism, if ``security_protocol`` includes SASL."""
    sasl_username: str | None = optional_text()
    """The user's name for PLAIN and SCRAM."""
    sasl_password: str | None = secret()
    """The user's password for PLAIN and SCRAM."""
    sasl_tokenauth: bool = choice(False, True, False)
    """Whether SCRAM logs in by a delegation token (KIP-48), as ``tokenauth`` of Java's ``ScramLoginModule``: then
    ``sasl_username`` is the token's id, and ``sasl_password`` its HMAC in Base64."""
    sasl_scram_iterations_max: int = integer(100_000, minimum=4096)
    """The maximal number of SCRAM's hash iterations that this client accepts from a broker. Brokers allow at most
    16,384 (KIP-554)."""
    sasl_login_refresh_window_factor: float = number(0.8, minimum=0.5, maximum=1.0)
    """The fraction of its lifetime after which an OAUTHBEARER token is replaced."""
    sasl_login_refresh_window_jitter: float = number(0.05, minimum=0.0, maximum=0.25)
    """How much later a token may be replaced, as a fraction of its lifetime: by a random part of this, so that clients
    that began together do not come together."""
    sasl_login_refresh_min_period_seconds: int = integer(60)
    """How long a token is used at least, in s. A token with a lifetime shorter than this and
    ``sasl_login_refresh_buffer_seconds`` together ignores both."""
    sasl_login_refresh_buffer_seconds: int = integer(300)
    """How long before its end a token is replaced at the latest, in s."""
    sasl_login_retry_backoff_ms: int = integer(100)
    """The wait before a token is requested again after a failure that may pass. The wait doubles with each failure, up
    to ``sasl_login_retry_backoff_max_ms``; all connections of the client share it."""
    sasl_login_retry_backoff_max_ms: int = integer(10_000)
    """The longest wait before a token is requested again."""
    sasl_kerberos_service_name: str = attrs.field(default="kafka")
    """The service part of the brokers' Kerberos principals; GSSAPI needs the library ``gssapi``."""
    sasl_aws_region: str | None = optional_text("a region")
    """The AWS region of an MSK cluster; by default the region in the broker's host name."""
    sasl_aws_credentials: AwsProvider | None = provider()
    """A function that returns :class:`~aiokafkawire.types.AwsCredentials`; by default the credentials come from the
    environment, or from botocore, if botocore is installed."""

    @property
    def uses_tls(self) -> bool:
        """Whether connections use TLS."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether connections use SASL."""
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    def __attrs_post_init__(self) -> None:
        _check_service_name(self.sasl_kerberos_service_name)
        _check_used(self, self.uses_tls, "ssl_", "'SSL' or 'SASL_SSL'")
        _check_used(self, self.uses_sasl, "sasl_", "'SASL_SSL' or 'SASL_PLAINTEXT'")
        if self.sasl_tokenauth and not self.uses_sasl:
            raise ConfigError(
                "sasl_tokenauth is True: set security_protocol to 'SASL_SSL' or 'SASL_PLAINTEXT'",
                setting="sasl_tokenauth",
            )
        if self.uses_tls:
            _check_tls(self)
        if self.uses_sasl:
            _check_sasl(self)


def _check_service_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ConfigError(
            f"sasl_kerberos_service_name must be a name, got {name!r}", setting="sasl_kerberos_service_name"
        )


def _set(config: SecurityConfig, *names: str) -> list[str]:
    """Return those of ``names`` whose settings are not None."""
    return [name for name in names if getattr(config, name) is not None]


def _check_used(config: SecurityConfig, used: bool, prefix: str, protocols: str) -> None:
    """Raise ConfigError if a setting with ``prefix`` is set although the protocol does not use such settings.

    ``used`` says whether it uses them; ``protocols`` names, for the error, the protocols that use them.
    """
    if used:
        return
    for field in attrs.fields(SecurityConfig):
        if field.name.startswith(prefix) and field.default is None and getattr(config, field.name) is not None:
            given = f"security_protocol is {config.security_protocol}"
            raise ConfigError(
                f"{field.name} is set, but {given}: set security_protocol to {protocols}", setting=field.name
            )


def _check_tls(config: SecurityConfig) -> None:
    own = [field.name for field in attrs.fields(SecurityConfig) if field.name.startswith("ssl_")]
    own = [name for name in own if name not in ("ssl_context", "ssl_endpoint_identification_algorithm")]
    if config.ssl_context is not None:
        others = _set(config, *own)
        if others or config.ssl_endpoint_identification_algorithm != "https":
            named = others[0] if others else "ssl_endpoint_identification_algorithm"
            raise ConfigError(
                f"{named} and ssl_context: set it in the context instead, or remove the context", setting=named
            )
        return
    for location, pem in (("ssl_ca_location", "ssl_ca_pem"), ("ssl_key_location", "ssl_key_pem")):
        if len(_set(config, location, pem)) == 2:
            raise ConfigError(f"{location} and {pem} are two sources of the same: set one of them", setting=location)
    for name in _set(config, "ssl_ca_location", "ssl_ca_pem"):
        if config.ssl_truststore_location is not None:
            raise ConfigError(
                f"{name} and ssl_truststore_location are two sources of the same: set one of them", setting=name
            )
    identity = _set(config, *_IDENTITY)
    if len(identity) > 1:
        raise ConfigError(
            f"{' and '.join(identity)} both set the client's certificate: set one of them", setting=identity[0]
        )
    keys = _set(config, "ssl_key_location", "ssl_key_pem", "ssl_key_password")
    if keys and keys != ["ssl_key_password"] and identity == ["ssl_keystore_location"]:
        raise ConfigError(
            f"{keys[0]} and ssl_keystore_location: a keystore contains its key (ssl_keystore_password)", setting=keys[0]
        )
    if keys and not identity:
        raise ConfigError(
            f"{keys[0]} needs the certificate: ssl_certificate_location or ssl_certificate_pem", setting=keys[0]
        )
    for store in ("ssl_keystore", "ssl_truststore"):
        if getattr(config, f"{store}_password") is not None and getattr(config, f"{store}_location") is None:
            raise ConfigError(f"{store}_password needs {store}_location", setting=f"{store}_password")


def _check_sasl(config: SecurityConfig) -> None:
    mechanism = config.sasl_mechanism
    if mechanism is None:
        named = ", ".join(_MECHANISMS)
        raise ConfigError(f"{config.security_protocol} needs sasl_mechanism: one of {named}", setting="sasl_mechanism")
    for name in _NEEDED.get(mechanism, ()):
        if not getattr(config, name):
            raise ConfigError(f"sasl_mechanism {mechanism} needs {name}", setting=name)
    if config.sasl_tokenauth and not mechanism.startswith("SCRAM-"):
        raise ConfigError(
            f"sasl_tokenauth needs SCRAM-SHA-256 or SCRAM-SHA-512 as sasl_mechanism, got {mechanism}",
            setting="sasl_tokenauth",
        )
    if mechanism == "OAUTHBEARER":
        check_oauth(config)
    if mechanism == "PLAIN" and "\0" in f"{config.sasl_username}{config.sasl_password}":
        raise ConfigError(
            "sasl_username and sasl_password cannot contain a NUL: PLAIN separates them by it", setting="sasl_username"
        )
