"""What the package could do harm by, each place known: calls that run code, start processes, or write files."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import aiokafkawire
from aiokafkawire.cli.broker import BrokerOptions
from aiokafkawire.cli.shell.shared_options import SharedOptions
from aiokafkawire.cli.tap.command import TapOptions
from aiokafkawire.testing import Broker, SchemaRegistryServer, Tap

ROOT = Path(aiokafkawire.__file__).parent
RUNS_CODE = {"eval", "exec", "compile", "__import__", "import_module"}
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "xml", "ctypes", "telnetlib"}
STARTS_PROCESSES = {"subprocess.run", "subprocess.Popen", "os.system", "os.popen", "os.execv", "anyio.run_process"}
WRITES_FILES = {"write_text", "write_bytes", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mktemp"}
NO_CHECK = {"CERT_NONE", "_create_unverified_context", "PROTOCOL_TLS", "PROTOCOL_SSLv23", "verify_mode"}

GUESSABLE = {  # pauses, choices among brokers and partitions, and ids that a coordinator gives as well
    "aiokafka/client.py",
    "aiokafka/partitioner.py",
    "aiokafka/producer/producer.py",
    "group/member_ids.py",
    "runtime.py",
    "schema_registry/http_transport.py",
}


class Inventory:
    """What all modules import, call and name."""

    def __init__(self) -> None:
        self.imports = set[tuple[str, str]]()
        self.calls = set[tuple[str, str]]()
        self.names = set[tuple[str, str]]()
        self.opened_for_writing = set[str]()
        for path in ROOT.rglob("*.py"):
            module = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text())):
                self._add(module, node)

    def _add(self, module: str, node: ast.AST) -> None:
        match node:
            case ast.Import():
                self.imports |= {(module, one.name.partition(".")[0]) for one in node.names}
            case ast.ImportFrom(level=0):
                self.imports.add((module, str(node.module).partition(".")[0]))
            case ast.Call():
                name = dotted(node.func)
                self.calls.add((module, name))
                modes = {one.value for one in node.args if isinstance(one, ast.Constant)}
                if name.rpartition(".")[2] in ("open", "fdopen") and modes & {"w", "wb", "a", "ab", "x", "xb"}:
                    self.opened_for_writing.add(module)
            case ast.Attribute(attr=name) | ast.Name(id=name):
                self.names.add((module, name))

    def callers(self, *functions: str) -> dict[str, set[str]]:
        """Return the modules that call some functions, and which."""
        found = dict[str, set[str]]()
        for module, name in self.calls:
            for function in functions:
                if name != "re.compile" and f".{name}".endswith(f".{function}"):
                    found.setdefault(module, set()).add(function)
        return found


def dotted(node: ast.AST) -> str:
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return Inventory()


def test_no_module_reads_a_format_that_runs_code(inventory: Inventory) -> None:
    assert ("cli/spark_session.py", "subprocess") in inventory.imports
    assert {(module, name) for module, name in inventory.imports if name in UNSAFE_MODULES} == set()


def test_code_is_run_and_imported_only_where_that_is_known(inventory: Inventory) -> None:
    assert inventory.callers(*RUNS_CODE) == {
        "_accelerators.py": {"import_module"},  # the compiled modules, by their own names
        "_lazy_exports.py": {"import_module"},  # modules of this package
        "aiokafka/__init__.py": {"import_module"},  # modules of this package
        "aiokafka/installation.py": {"import_module"},  # modules of this package
        "cli/shell/app.py": {"import_module"},  # a verb that is in the list of verbs
        "config/interceptor_classes.py": {"import_module"},  # what the property interceptor.classes names
        "protocol/compiler.py": {"exec", "compile"},  # source that is made from the declarations of messages
        "protocol/message_registry.py": {"import_module"},  # modules of this package
        "protocol/source_builder.py": {"eval"},  # as in compiler.py
        "schema_registry/protobuf_codec.py": {"import_module"},  # one of Google's files, by a regular expression
        "spark/value_decoder.py": {"import_module"},  # what an option of the Spark source names
    }


def test_a_process_is_started_by_the_demo_alone(inventory: Inventory) -> None:
    assert inventory.callers(*STARTS_PROCESSES) == {"cli/spark_session.py": {"subprocess.run"}}


def test_files_are_written_only_where_that_is_known(inventory: Inventory) -> None:
    written = inventory.callers(*WRITES_FILES)
    for module in inventory.opened_for_writing:
        written.setdefault(module, set()).add("open")
    assert written == {
        "cli/migrate/source_files.py": {"NamedTemporaryFile"},  # the user's own program, after a question
        "cli/spark_pipeline.py": {"TemporaryDirectory"},  # the demo's
        "cli/verbs/reassign.py": {"open"},  # a rollback, where no file is
        "network/tls_context.py": {"mkstemp", "open"},  # keys, where the system has no files in memory
        "probes.py": {"open"},
        "testing/schema_registry/serialized_protobuf.py": {"TemporaryDirectory", "write_text"},
        "testing/tap/journal.py": {"open"},
    }


def test_nothing_turns_the_check_of_certificates_off(inventory: Inventory) -> None:
    found = {(module, name) for module, name in inventory.names if name in NO_CHECK}
    assert {(module, name) for module, name in found if not module.startswith("testing/")} == set()


def test_secrets_are_compared_in_constant_time_and_nonces_are_unguessable(inventory: Inventory) -> None:
    assert inventory.callers("compare_digest").keys() >= {"network/scram.py", "network/java_keystores.py"}
    assert inventory.callers("secrets.token_urlsafe", "secrets.token_bytes", "secrets.token_hex") == {
        "admin/scram_requests.py": {"secrets.token_bytes"},  # salts
        "network/authentication.py": {"secrets.token_urlsafe"},  # nonces
        "network/keystores.py": {"secrets.token_hex"},  # the password of a key on its way to OpenSSL
    }
    guessable = {module for module, name in inventory.imports if name == "random"}
    assert {module for module in guessable if not module.startswith("testing/")} == GUESSABLE


@pytest.mark.parametrize("server", [Broker, Tap, SchemaRegistryServer])
def test_servers_for_tests_listen_on_this_machine_alone(server: type) -> None:
    assert inspect.signature(server).parameters["host"].default == "127.0.0.1"


def test_servers_of_the_command_listen_on_this_machine_alone() -> None:
    assert BrokerOptions().host == "127.0.0.1"
    shared = SharedOptions()
    assert TapOptions(shared=shared).listen.startswith("127.0.0.1:")
