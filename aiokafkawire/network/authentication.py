"""Logging in: SaslHandshake picks the mechanism, then its messages go back and forth (KIP-43, KIP-152, KIP-368)."""

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

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
from ..runtime import Runtime
from ..types import Address, AwsCredentials
from .oauth import Tokens
from .sasl import Exchange, Need, RunInThread, check_extensions, oauthbearer, plain, printable
from .scram import scram

__all__ = ("SendSaslRequest", "AskBare", "Login")

R = TypeVar("R", bound=Response)

_MOST_STEPS: Final = 20
"""No mechanism takes so many; Kerberos, whose steps the library counts, takes three."""
_LARGEST: Final = 256 * 1024
"""Bytes of what a broker says in a login: mechanisms read it on the loop. Tickets are of 64 KiB at most."""


class SendSaslRequest(Protocol):
    """Asks the broker over the connection that logs in, and waits for the answer."""

    async def __call__(self, request: Request[R], *, wanted: Versions) -> R: ...


AskBare = Callable[[bytes], Awaitable[bytes]]
"""Sends a token as a bare frame, as after SaslHandshake v0, and gives the frame that comes back."""


class Login:
    """How a client logs in, for all of its connections.

    Args:
        config: the settings, whose ``security_protocol`` has SASL in it.
        runtime: threads for what takes its time, and the clock.
        new_nonce: what SCRAM begins with; nobody may guess it.
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
        self._tokens = Tokens(self._new_token, runtime.wall_ms)

    async def authenticate(
        self, ask: SendSaslRequest, versions: Mapping[int, Versions], at: Address, ask_bare: AskBare | None = None
    ) -> int:
        """Log in on one connection.

        Args:
            ask: asks the broker.
            versions: what the broker speaks.
            at: the broker.
            ask_bare: for brokers from before 1.0, which know no SaslAuthenticate.

        Returns:
            For how many ms the login holds; 0 for as long as the connection.

        Raises:
            SaslAuthenticationFailed, UnsupportedSaslMechanism, IllegalSaslState: the broker refuses.
            AuthenticationFailed: the broker does not prove to be who it should be, or says what makes no sense.
            ConfigError: a setting, or what a function of the user's gave, will not do.
            ConnectionLost, RequestTimeout: the broker hung up, or did not answer.
        """
        bare = ApiKey.SASL_AUTHENTICATE not in versions
        if bare and ask_bare is None:
            raise UnsupportedVersion(f"{at} knows no SaslAuthenticate: logging in needs Kafka 1.0 or later")
        handshake = SaslHandshakeRequest(mechanism=self.mechanism)
        answer = await ask(handshake, wanted=Versions(0, 0) if bare else Versions(1, 1))
        if answer.error_code != ErrorCode.NONE:
            raise _refused_handshake(answer.error_code, self.mechanism, answer.mechanisms, at)
        exchange = self._exchange(at)
        try:
            if bare:
                assert ask_bare is not None
                return await self._run(exchange, _Bare(ask_bare), at)
            return await self._run(exchange, _Asking(ask, self.mechanism, at), at)
        except AuthenticationFailed:
            self._tokens.forget()
            raise
        finally:
            exchange.close()

    async def prepare(self) -> None:
        """Have ready what others than the broker give for a login; raises as :meth:`authenticate`."""
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
        return scram(self.mechanism, username, password, self._new_nonce(), most_iterations=most)

    async def _run(self, exchange: Exchange, broker: "_Asking | _Bare", at: Address) -> int:
        try:
            step = next(exchange)
            for _ in range(_MOST_STEPS):
                if isinstance(step, bytes):
                    step = exchange.send(_bounded(await broker.say(step), self.mechanism))
                elif isinstance(step, RunInThread):
                    step = exchange.send(await self._runtime.offload_waiting(step.function))
                else:
                    step = exchange.send(await self._needed(step))
        except StopIteration:
            return broker.lifetime_ms
        except AuthenticationFailed as failure:
            raise _placed(failure, at) from failure.__cause__
        raise AuthenticationFailed(f"{at}: {self.mechanism} came to no end after {_MOST_STEPS} steps")

    async def _needed(self, what: Need) -> Any:
        if what is Need.TOKEN:
            return await self._tokens.get()
        provider = self._config.sasl_aws_credentials
        if provider is None:
            from .aws_credentials import find_credentials

            return await self._runtime.offload_waiting(find_credentials)
        given = await self._called(provider, "sasl_aws_credentials")
        if not isinstance(given, AwsCredentials):
            raise ConfigError(f"sasl_aws_credentials must give AwsCredentials, not a {type(given).__name__}")
        parts = (given.access_key_id, given.secret_access_key, given.session_token or "")
        if not all(isinstance(one, str) and is_text(one) for one in parts):
            raise ConfigError("sasl_aws_credentials gave what is no text; it is not shown")
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
            # Inside a tuple, since trio lets no coroutine come from a thread.
            (given,) = await self._runtime.offload_waiting(lambda: (provider(),))
            return await given if inspect.isawaitable(given) else given
        except KafkaError:
            raise
        except Exception as error:
            # Its text may hold a secret, and is for those who look at the cause.
            raise AuthenticationFailed(f"the function in {setting} failed with {type(error).__name__}") from error


class _Asking:
    """Says tokens by SaslAuthenticate."""

    def __init__(self, ask: SendSaslRequest, mechanism: str, at: Address) -> None:
        self.lifetime_ms = 0
        self._ask, self._mechanism, self._at = ask, mechanism, at

    async def say(self, token: bytes) -> bytes:
        answer = await self._ask(SaslAuthenticateRequest(auth_bytes=token), wanted=Versions(0, 2))
        if answer.error_code != ErrorCode.NONE:
            told = printable(answer.error_message or "") or "it does not say why"
            raise broker_error(answer.error_code, f"{self._at} refused the login by {self._mechanism}: {told}")
        self.lifetime_ms = max(0, answer.session_lifetime_ms)
        return bytes(answer.auth_bytes)


class _Bare:
    """Says tokens as bare frames. Such a broker hangs up on those that it refuses."""

    lifetime_ms = 0

    def __init__(self, ask_bare: AskBare) -> None:
        self.say = ask_bare


def _bounded(said: bytes, mechanism: str) -> bytes:
    if len(said) > _LARGEST:
        raise AuthenticationFailed(f"{mechanism}: the broker said {len(said)} bytes, more than any login takes")
    return said


def _placed(failure: AuthenticationFailed, at: Address) -> AuthenticationFailed:
    """With the broker's name, which a mechanism does not know; what a broker answered has it already."""
    if isinstance(failure, SaslAuthenticationFailed | IllegalSaslState | UnsupportedSaslMechanism):
        return failure
    text = str(failure)
    return failure if text.startswith(f"{at}: ") else AuthenticationFailed(f"{at}: {text}")


def _refused_handshake(code: int, mechanism: str, known: list[str], at: Address) -> KafkaError:
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        named = printable(", ".join(known)) or "none"
        return broker_error(code, f"{at} does not take {mechanism}; it takes {named}")
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        hint = "set security_protocol to PLAINTEXT or SSL, or take the port of its SASL listener"
        return broker_error(code, f"{at} asks for no login: {hint}")
    return broker_error(code, f"{at} to SaslHandshake")
