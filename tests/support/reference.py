"""The pages of docs/ that are made from the code: `python tests/support/reference.py` writes them again."""

import inspect
from pathlib import Path

from aiokafkawire.error_codes import ErrorCode
from aiokafkawire.errors import BrokerError, Refresh, broker_error
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.message_registry import FAMILIES, request_of

DOCS = Path(__file__).parent.parent.parent / "docs"

ERRORS = """\
# The errors that brokers answer

Every error code of Kafka's protocol is a class of `aiokafkawire.errors`, a `BrokerError`. *Retriable*: the same request
may succeed later. *Fatal*: an idempotent or transactional producer cannot
go on. *Abortable*: the transaction must be aborted (KIP-1050). A code that this release does not know becomes
`UnknownBrokerError` with that `code`.

| code | class | retriable | producer | meaning |
|---:|---|---|---|---|
"""

MESSAGES = """\
# The messages of the protocol

Every API of Kafka's protocol in every version, and the module of `aiokafkawire.protocol.messages` that declares it. The
response has the same name with `Response`. Versions marked *unstable* are in the making at Kafka, and a client never
chooses them by itself.

| key | request | versions | flexible | module | what it is for |
|---:|---|---|---|---|---|
"""


def errors_page() -> str:
    """docs/errors.md"""
    return ERRORS + "".join(_error_row(broker_error(code)) for code in ErrorCode if code is not ErrorCode.NONE)


def _error_row(error: BrokerError) -> str:
    retriable = "yes" if error.retriable else ""
    if error.refresh is not Refresh.NOTHING:
        retriable = f"yes, after looking up the {error.refresh.value}"
    producer = "fatal" if error.fatal else "abortable" if error.abortable else ""
    return f"| {int(error.code)} | `{type(error).__name__}` | {retriable} | {producer} | {_first_line(type(error))} |\n"


def messages_page() -> str:
    """docs/messages.md"""
    return MESSAGES + "".join(_message_row(key) for key in ApiKey)


def _message_row(key: ApiKey) -> str:
    request = request_of(key)
    unstable = f", {request.versions.last} unstable" if request.stable != request.versions else ""
    name = request.__name__
    return (
        f"| {int(key)} | `{name}` | {request.versions}{unstable} | {request.flexible} | `{FAMILIES[key]}` "
        f"| {_first_line(request)} |\n"
    )


def _first_line(cls: type[object]) -> str:
    told = (inspect.getdoc(cls) or "").partition("\n\n")[0]
    return " ".join(told.split())


PAGES = {"errors.md": errors_page, "messages.md": messages_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
        print(f"docs/{name} written")
