"""The blocks of Python in the pages of docs/ run, and a type checker accepts their names, arguments and types.

What the blocks of tutorials, services, Spark and other pages do is tested beside what they are about.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

import pytest
from support.page_blocks import PAGES, Block, blocks_of, module_of
from support.patience import PATIENCE
from support.running_blocks import run_block

from aiokafkawire import OffsetAndMetadata, TopicPartition, blocking
from aiokafkawire.errors import (
    AdminError,
    DelegationTokenRequestNotAllowed,
    GroupIdNotFound,
    KafkaError,
    OffsetOutOfRange,
)
from aiokafkawire.testing import BackgroundBroker

_OPTIONS = ("--config-file=", "--ignore-missing-imports", "--check-untyped-defs", "--follow-imports=silent")
_LEFT_OUT = ("empty-body", "index", "name-defined", "no-redef", "return", "union-attr", "var-annotated")
"""What short examples may do: leave bodies out, and not ask for None. Names that they lack are arguments here."""


@pytest.mark.slow
def test_a_type_checker_accepts_every_block(tmp_path: Path) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: pip install -e '.[dev]'")
    modules = []
    for page in PAGES:
        if any(blocks_of(page)):
            modules.append(tmp_path / f"page_{page.stem.replace('-', '_')}.py")
            modules[-1].write_text(module_of(page))
    assert len(modules) > 30
    options = [*_OPTIONS, *(f"--disable-error-code={code}" for code in _LEFT_OUT)]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path / 'cache'}", *map(str, modules)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert [line for line in done.stdout.splitlines() if ": error: " in line] == []
    assert done.returncode == 0, done.stderr


def test_a_misspelt_name_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nawait kafka.admin.creat_topics({})\nawait store(1)\n```\n")
    assert "\nasync def line_4(kafka: Client, store: Any) -> Any:\n    await kafka" in module_of(page)


BLOCKING = next(page for page in PAGES if page.name == "blocking.md")
ELSEWHERE = {
    "aiokafka.md": "tests/aiokafka_api",
    "claim-check.md": "tests/claim_check",
    "faststream.md": "tests/faststream_broker",
    "first-migration.md": "tests/cli/test_tutorials.py",
    "first-records.md": "tests/cli/test_first_records.py",
    "first-service.md": "tests/cli/test_tutorials.py",
    "first-spark.md": "tests/cli/test_tutorials.py",
    "first-tests.md": "tests/cli/test_tutorials.py",
    "first-worker.md": "tests/cli/test_tutorials.py",
    "legacy.md": "tests/legacy/test_legacy_page.py",
    "migrating.md": "tests/cli/test_migrating_page.py",
    "schema-registry.md": "tests/schema_registry/test_docs.py",
    "security.md": "tests/security/test_security_page.py",
    "services.md": "tests/services/test_services_page.py",
    "spark.md": "tests/spark/test_spark_page.py",
}
"""Pages whose blocks, or what they do, other tests run."""
THREADED = ("README.md", "blocking.md")
"""Pages whose blocks run in a process of their own."""
BLOCKS = [
    pytest.param(page, block, id=f"{page.name}:{block.line}")
    for page in PAGES
    if page.name not in (*ELSEWHERE, *THREADED)
    for block in blocks_of(page)
]


REFUSED: dict[str, type[KafkaError]] = {
    "reads = AclBinding(": AdminError,
    'delete_groups("a", "b", "c")': AdminError,
    'list_share_group_offsets("s")': GroupIdNotFound,
    'delete_records({TopicPartition("orders", 0): 100})': OffsetOutOfRange,
    'UserScramCredentialDeletion("bob"': AdminError,
    "token = await kafka.admin.create_delegation_token(": DelegationTokenRequestNotAllowed,
}
"""What a block has, and how a cluster answers it that has no ACLs, no such groups, users and records, and no logins."""


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_the_block_runs(page: Path, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("client.properties").write_text("bootstrap.servers=localhost:9092\ngroup.id=billing\n")
    topics = ("flights",) if "create_topics(" in block.code else ("bookings", "delays", "flights", "orders")
    refused = next((error for text, error in REFUSED.items() if text in block.code), None)
    if refused is None:
        run_block(block, topics)
    else:
        with pytest.raises(refused):
            run_block(block, topics)


def run_program(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_of_the_readme_prints_what_it_says() -> None:
    (block,) = blocks_of(next(page for page in PAGES if page.name == "README.md"))
    with BackgroundBroker() as broker:
        printed = run_program(block.code.replace("localhost:9092", broker.bootstrap))
    first, second = printed.splitlines()
    assert f"# prints {first}, then {second}" in block.code


STOPPED = """
import signal
from aiokafkawire import OffsetAndMetadata, TopicPartition, blocking

def work(records):
    if records:
        signal.raise_signal(signal.SIGINT)

def ticket(record):
    return record.value

try:
    with blocking.Client({bootstrap!r}) as kafka:
        with kafka.consumer("flights", group_id="pages", auto_offset_reset="earliest") as consumer:
{block}
except KeyboardInterrupt:
    pass
"""
"""A block that handles a record is interrupted there."""


@pytest.mark.parametrize("block", [one for one in blocks_of(BLOCKING) if "batches(timeout" not in one.code])
def test_the_block_runs_without_an_event_loop(block: Block) -> None:
    with BackgroundBroker() as broker:
        for topic in ("bookings", "flights", "tickets"):
            broker.create_topic(topic)
        with blocking.Client(broker.bootstrap) as kafka, kafka.producer() as producer:
            producer.send("bookings", b"1")
            producer.send("flights", b"1")
        code = indent(block.code, " " * 12).replace("localhost:9092", broker.bootstrap)
        code = code.replace("enable_auto_commit=False", 'enable_auto_commit=False, auto_offset_reset="earliest"')
        run_program(STOPPED.format(bootstrap=broker.bootstrap, block=code))
        with blocking.Client(broker.bootstrap) as kafka:
            for group in kafka.admin.list_groups():
                committed = kafka.admin.list_consumer_group_offsets(group.group_id)
                assert committed.get(TopicPartition("flights", 0), OffsetAndMetadata(0)).offset == 0
