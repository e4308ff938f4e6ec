"""SASL authentication: SaslHandshake selects the mechanism, whose messages follow (KIP-43, KIP-152, KIP-368)."""

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

import anyio

from ..config.fields import is_text
from ..config.security import SecurityConfig
from ..errors import (
    AuthenticationFailed,
    ConfigError,
    ErrorCode,
    IllegalSaslState,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
    broker_error,
)
from ..protocol.api import ApiKey
from ..protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ..protocol.schema import Request, Response, Versions
from ..runtime import Runtime, is_being_cancelled
from ..types import Address, AwsCredentials
from .oauth_tokens import Tokens, TokenSchedule
from .sasl import Exchange, Need, RunInThread, check_extensions, oauthbearer, plain, printable
from .scram import scram

__all__ = ("SendSaslRequest", "SendToken", "Login")

R = TypeVar("R", bound=Response)

_MAX_STEPS: Final = 20
"""The maximum number of steps of an exchange: with Kerberos, the library and the broker determine the number."""
_MAX_TOKEN: Final = 256 * 1024
"""The largest token to accept from a broker, in bytes; the event loop parses it. Tickets have 64 KiB at most."""


class SendSaslRequest(Protocol):
    """A function that sends a request on the connection being authenticated, and returns the response."""

    async def __call__(self, request: Request[R], *, wanted: Versions) -> R: ...


SendToken = Callable[[bytes], Awaitable[bytes]]
"""A function that sends a SASL token without a header, as after SaslHandshake v0; it returns the broker's token."""


class Login:
    """The SASL authentication of all connections of a client.

    Args:
        config: the settings, whose ``security_protocol`` includes SASL.
        runtime: provides the clock, and threads for slow functions.
        new_nonce: returns an unguessable nonce for SCRAM.
    """

    def __init__(
        self,
        config: SecurityConfig,
        runtime: Runtime,
        *,
        new_nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    ) -> None:
        assert config.sasl_mechanism is not None
        self.mechanism: str = config.sasl_mechanism
        self._config, self._runtime, self._new_nonce = config, runtime, new_nonce
        check_extensions(config.sasl_oauthbearer_extensions or {})
        self._tokens = Tokens(self._new_token, runtime.wall_ms, TokenSchedule.of(config), runtime.chance.random)

    async def authenticate(
        self, ask: SendSaslRequest, versions: Mapping[int, Versions], at: Address, send_token: SendToken | None = None
    ) -> int:
        """Authenticate one connection.

        Args:
            ask: sends a request to the broker.
            versions: the versions that the broker supports, by API key.
            at: the broker.
            send_token: sends a token to a broker before 1.0, which has no SaslAuthenticate.

        Returns:
            The session's lifetime in ms; 0 if the session lasts as long as the connection.

        Raises:
            SaslAuthenticationFailed, UnsupportedSaslMechanism, IllegalSaslState: the broker refuses the authentication.
            AuthenticationFailed: the broker does not prove its identity, or its response is invalid.
            ConfigError: a setting, or the result of a user's function, is invalid.
            ConnectionLost, RequestTimeout: the broker closed the connection, or did not answer.
        """
        bare = ApiKey.SASL_AUTHENTICATE not in versions
        if bare and send_token is None:
            raise UnsupportedVersion(f"{at} has no SaslAuthenticate: authentication needs Kafka 1.0 or later")
        handshake = SaslHandshakeRequest(mechanism=self.mechanism)
        answer = await ask(handshake, wanted=Versions(0, 0) if bare else Versions(1, 1))
        if answer.error_code != ErrorCode.NONE:
            raise _refused_handshake(answer.error_code, self.mechanism, answer.mechanisms, at)
        exchange = self._exchange(at)
        try:
            if bare:
                assert send_token is not None
                return await self._run(exchange, _BareTokens(send_token), at)
            return await self._run(exchange, _Authenticate(ask, self.mechanism, at), at)
        except AuthenticationFailed:
            self._tokens.invalidate()
            raise
        finally:
            exchange.close()

    async def prepare(self) -> None:
        """Fetch the next OAUTHBEARER token in advance if it is due. Raises as :meth:`authenticate`."""
        await self._tokens.prepare()

    def _exchange(self, at: Address) -> Exchange:
        config = self._config
        username, password = config.sasl_username or "", config.sasl_password or ""
        match self.mechanism:
            case "PLAIN":
                return plain(username, password)
            case "OAUTHBEARER":
                return oauthbearer(config.sasl_oauthbearer_extensions or {})
            case "GSSAPI":
                from .kerberos import kerberos

                return kerberos(config.sasl_kerberos_service_name, at.host)
            case "AWS_MSK_IAM":
                from .aws_msk_iam import aws_msk_iam

                return aws_msk_iam(at.host, config.sasl_aws_region, self._runtime.wall_ms)
        most = config.sasl_scram_iterations_max
        return scram(
            self.mechanism,
            username,
            password,
            self._new_nonce(),
            max_iterations=most,
            tokenauth=config.sasl_tokenauth,
        )

    async def _run(self, exchange: Exchange, broker: "_Authenticate | _BareTokens", at: Address) -> int:
        try:
            steps = _Steps(exchange)
            for _ in range(_MAX_STEPS):
                if isinstance(steps.next, RunInThread):
                    steps.go_on(await self._runtime.offload_waiting(steps.next.function))
                elif isinstance(steps.next, Need):
                    steps.go_on(await self._needed(steps.next))
                else:
                    steps.go_on(_bounded(await broker.send(steps), self.mechanism))
        except StopIteration:
            return broker.lifetime_ms
        except AuthenticationFailed as failure:
            raise _with_broker(failure, at) from failure.__cause__
        raise AuthenticationFailed(f"{at}: {self.mechanism} did not finish after {_MAX_STEPS} steps")

    async def _needed(self, need: Need) -> Any:
        if need is Need.TOKEN:
            return await self._tokens.get()
        provider = self._config.sasl_aws_credentials
        if provider is None:
            from .aws_credentials import find_credentials

            return await self._runtime.offload_waiting(find_credentials)
        given = await self._called(provider, "sasl_aws_credentials")
        if not isinstance(given, AwsCredentials):
            raise ConfigError(f"sasl_aws_credentials must return AwsCredentials, not a {type(given).__name__}")
        if not _are_text(given):
            raise ConfigError("sasl_aws_credentials returned credentials that are no text (not shown)")
        return given

    async def _new_token(self) -> Any:
        if self._config.sasl_oauthbearer_method == "oidc":
            from .oidc import fetch_token

            return await self._runtime.offload_waiting(fetch_token, self._config)
        provider = self._config.sasl_oauthbearer_token
        assert provider is not None
        return await self._called(provider, "sasl_oauthbearer_token")

    async def _called(self, provider: Callable[[], Any], setting: str) -> Any:
        try:
            if inspect.iscoroutinefunction(provider):
                return await provider()
            # Wrapped in a tuple, since trio accepts no coroutine as the result of a thread.
            (given,) = await self._runtime.offload_waiting(lambda: (provider(),))
            return await given if inspect.isawaitable(given) else given
        except KafkaError:
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_being_cancelled():
                raise
            why = f"the function in {setting} failed with {type(cancelled).__name__}, and nobody has cancelled it"
            raise AuthenticationFailed(why) from cancelled
        except Exception as error:
            # The error's text may contain a secret, so only the ``__cause__`` has that text.
            raise AuthenticationFailed(f"the function in {setting} failed with {type(error).__name__}") from error


class _Steps:
    """The steps of an exchange. A step may be a password: it is no variable of a frame that a traceback may show."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.next = next(exchange)

    @property
    def token(self) -> bytes:
        """The next step, which is bytes for the broker."""
        assert isinstance(self.next, bytes)
        return self.next

    def go_on(self, result: Any) -> None:
        """Send the result of a step into the exchange."""
        self.next = self._exchange.send(result)


class _Authenticate:
    """The exchange of SASL tokens in SaslAuthenticate requests."""

    def __init__(self, ask: SendSaslRequest, mechanism: str, at: Address) -> None:
        self.lifetime_ms = 0
        self._ask, self._mechanism, self._at = ask, mechanism, at

    async def send(self, steps: _Steps) -> bytes:
        answer = await self._ask(SaslAuthenticateRequest(auth_bytes=steps.token), wanted=Versions(0, 2))
        if answer.error_code != ErrorCode.NONE:
            message = printable(answer.error_message or "") or "it gives no reason"
            raise broker_error(answer.error_code, f"{self._at} refused the login by {self._mechanism}: {message}")
        self.lifetime_ms = max(0, answer.session_lifetime_ms)
        return bytes(answer.auth_bytes)


class _BareTokens:
    """The exchange of SASL tokens in frames without a header. A broker that refuses a token closes the connection."""

    lifetime_ms = 0

    def __init__(self, send_token: SendToken) -> None:
        self._send_token = send_token

    async def send(self, steps: _Steps) -> bytes:
        return await self._send_token(steps.token)


def _are_text(given: AwsCredentials) -> bool:
    parts = (given.access_key_id, given.secret_access_key, given.session_token or "")
    return all(isinstance(part, str) and is_text(part) for part in parts)


def _bounded(token: bytes, mechanism: str) -> bytes:
    if len(token) > _MAX_TOKEN:
        raise AuthenticationFailed(f"{mechanism}: the broker's token has {len(token)} bytes, more than {_MAX_TOKEN}")
    return token


def _with_broker(failure: AuthenticationFailed, at: Address) -> AuthenticationFailed:
    """Return an error whose message begins with the broker's address; the same error if its message has the address."""
    if isinstance(failure, SaslAuthenticationFailed | IllegalSaslState | UnsupportedSaslMechanism):
        return failure
    text = str(failure)
    return failure if text.startswith(f"{at}: ") else AuthenticationFailed(f"{at}: {text}")


def _refused_handshake(code: int, mechanism: str, known: list[str], at: Address) -> KafkaError:
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        named = printable(", ".join(known)) or "none"
        return broker_error(code, f"{at} does not support {mechanism}; it supports {named}")
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        hint = "set security_protocol to PLAINTEXT or SSL, or use the port of its SASL listener"
        return broker_error(code, f"{at} does not use SASL: {hint}")
    return broker_error(code, f"{at} to SaslHandshake")
