"""AWS credentials from the environment, or from botocore (profiles, roles, instances), if it is installed."""

import os

from ..errors import AuthenticationFailed, ConfigError
from ..types import AwsCredentials

__all__ = ("find_credentials",)


def find_credentials() -> AwsCredentials:
    """Find AWS credentials; blocking.

    Raises:
        ConfigError: there are no credentials.
        AuthenticationFailed: botocore failed.
    """
    # No variable has the secret, since reports of errors show the variables of tracebacks.
    if os.environ.get("AWS_ACCESS_KEY_ID") and os.environ.get("AWS_SECRET_ACCESS_KEY"):
        return AwsCredentials(
            os.environ["AWS_ACCESS_KEY_ID"],
            os.environ["AWS_SECRET_ACCESS_KEY"],
            os.environ.get("AWS_SESSION_TOKEN") or None,
        )
    try:
        from botocore.session import Session
    except ImportError:
        raise ConfigError(
            "AWS_MSK_IAM needs credentials: set sasl_aws_credentials, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "in the environment, or install botocore"
        ) from None
    try:
        found = Session().get_credentials()
        frozen = None if found is None else found.get_frozen_credentials()
    except Exception as error:  # botocore's error classes cannot be imported without botocore
        raise AuthenticationFailed(f"botocore found no AWS credentials: {type(error).__name__}") from error
    if frozen is None:
        raise ConfigError("AWS_MSK_IAM needs credentials: botocore found none, see sasl_aws_credentials")
    return AwsCredentials(frozen.access_key, frozen.secret_key, frozen.token)
