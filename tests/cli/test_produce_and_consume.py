"""``produce`` and ``consume`` on the in-process broker, in one process."""

import json
import sys
from pathlib import Path

import anyio
import pytest
from support.shell import Shell

from aiokafkawire import Client, OffsetSpec, TopicPartition
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker


@pytest.fixture
def shell(kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]) -> Shell:
    kafka_broker.create_topic("orders", partitions=1)
    return Shell(kafka_broker.bootstrap, capsysbinary)


@pytest.fixture
def file(tmp_path: Path) -> "File":
    return File(tmp_path)


class File:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, content: bytes, name: str = "input") -> str:
        path = self._folder / name
        path.write_bytes(content)
        return str(path)


def write_at(bootstrap: str, records: list[tuple[int, int, bytes]]) -> None:
    """Write records to the topic orders, each given as partition, timestamp and value."""

    async def write() -> None:
        async with Client(bootstrap) as kafka, kafka.producer() as producer:
            for partition, timestamp, value in records:
                await producer.send("orders", value, partition=partition, timestamp_ms=timestamp)

    anyio.run(write)


# --- produce ---------------------------------------------------------------------------------------------------------


def test_lines_go_and_come_back_with_a_count_and_a_rate(shell: Shell, file: File) -> None:
    assert shell("produce", "orders", file(b"one\n\ntwo\r\nlast")) == b""
    assert shell.err.startswith("4 records, 0.0 MB in ")
    assert shell.err.endswith(" MB/s\n")
    assert shell("consume", "orders") == b"one\n\ntwo\r\nlast\n"
    assert shell.err.startswith("4 records, 0.0 MB in ")


@pytest.mark.parametrize("form", [["-f", "plain"], ["-f", "%v %k %h\\n"], ["-f", "hex"], ["--json"]])
def test_no_record_commands_a_terminal(
    kafka_broker: BackgroundBroker,
    shell: Shell,
    form: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def write() -> None:
        async with Client(kafka_broker.bootstrap) as kafka, kafka.producer() as producer:
            headers = [("\x1b[31m", b"\x1b[0m")]
            await producer.send(
                "orders", b"\x1b[2J\tvalue\x9b5n \xc2\x9b5n \xe2\x80\xae", key=b"\x1b]0;x\x07", headers=headers
            )
            await producer.send("orders", "\x9b5n\t\x7f".encode())

    anyio.run(write)
    piped = shell("consume", "orders", *form)
    assert b"\x1b" in piped or b"\x9b" in piped  # a pipe gets the bytes as they are
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = shell("consume", "orders", *form).decode()
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    assert shown.count("\n") == piped.count(b"\n")
    if form == ["-f", "plain"]:
        assert shown == "\\x1b[2J\tvalue\\x9b5n \\x9b5n \\u202e\n\\x9b5n\t\\x7f\n"


def test_quiet_prints_no_count(shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"one\n"), "-q")
    assert shell.err == ""
    shell("consume", "orders", "-q")
    assert shell.err == ""


def test_keys_headers_timestamps_and_nulls(shell: Shell, file: File) -> None:
    lines = file(b"k:v\nn:NULL\nNULL:x:y\n")
    arguments = ("-K", ":", "--null", "NULL", "-H", "a=1", "-H", "a=2=3", "--timestamp", "@1000")
    shell("produce", "orders", lines, *arguments)
    found = [json.loads(line) for line in shell.lines("consume", "orders", "--json")]
    assert [(one["key"], one["value"]) for one in found] == [("k", "v"), ("n", None), (None, "x:y")]
    assert all(one["headers"] == [["a", "1"], ["a", "2=3"]] for one in found)
    assert all(one["timestamp"] == 1000 for one in found)


def test_one_key_and_partition_for_all(kafka_broker: BackgroundBroker, shell: Shell, file: File) -> None:
    kafka_broker.create_topic("many", partitions=3)
    shell("produce", "many", file(b"a\nb\n"), "-k", "same", "-p", "2")
    assert shell.lines("consume", "many", "-f", r"%p %k %v\n") == ["2 same a", "2 same b"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs_and_acks(codec: str, shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"line\n" * 500), "-z", codec, "--acks", "1")
    assert shell("consume", "orders") == b"line\n" * 500


def test_a_delimiter_of_your_own(shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"one\0two\nthree\0"), "-D", r"\0")
    assert shell("consume", "orders", "-D", ";") == b"one;two\nthree;"


def test_whole_files(shell: Shell, file: File) -> None:
    shell("produce", "orders", "--whole", file(b"a\nb\n", "1"), file(b"", "2"), file(b"\xff", "3"))
    assert shell("consume", "orders", "-D", "|") == b"a\nb\n||\xff|"


def test_json_goes_and_comes_back_the_same(kafka_broker: BackgroundBroker, shell: Shell, file: File) -> None:
    kafka_broker.create_topic("copy", partitions=1)
    lines = b"""{"key": "k", "value": "v", "headers": [["h", "1"], ["h", null]], "timestamp": 5, "partition": 0}
{"value": {"base64": "//4="}}
{"key": null, "value": null}
{"value": [1, {"a": "x"}]}
"""
    shell("produce", "orders", file(lines), "--json")
    first = shell("consume", "orders", "--json")
    shell("produce", "copy", file(first), "--json")
    assert shell("consume", "copy", "--json") == first.replace(b'"orders"', b'"copy"')
    assert [json.loads(line)["value"] for line in first.splitlines()] == [
        "v",
        {"base64": "//4="},
        None,
        '[1,{"a":"x"}]',
    ]


def test_a_wrong_line_ends_it_after_the_lines_before(shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b'{"value": "good"}\n{"value": \n{"value": "never"}\n'), "--json", status=1)
    assert shell.err.startswith("aiokafkawire: line 2 is not JSON ")
    assert shell.err.endswith("; 1 record before it is sent\n")
    shell("produce", "orders", file(b"a:b\nc:d\noops\ne:f\n"), "-K:", status=1)
    assert shell.err == "aiokafkawire: line 3 has no key separator ':': 'oops'; 2 records before it are sent\n"
    assert shell("consume", "orders") == b"good\nb\nd\n"


def test_a_wrong_line_does_not_hide_that_the_lines_before_are_not_delivered(
    kafka_broker: BackgroundBroker, shell: Shell, file: File
) -> None:
    kafka_broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    shell("produce", "orders", file(b"a:b\nc:d\noops\n"), "-K:", status=1)
    assert shell.err.startswith("aiokafkawire: line 3 has no key separator ':': 'oops'; DeliveryFailed: 2 records not ")
    assert shell.err.count("\n") == 1


def test_a_record_that_is_too_large_is_told_with_its_line(shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"a\nb\n" + b"x" * 3000 + b"\nc\n"), "-X", "max.request.size=2000", status=1)
    assert shell.err.startswith("aiokafkawire: line 3: RecordTooLarge: ")
    assert shell.err.endswith("; 2 records before it are sent\n")
    assert shell("consume", "orders") == b"a\nb\n"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without an end")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "line 3 has more than 1,048,576 bytes, and no delimiter (b'\\n') yet; a record may have 1,048,576"),
        (("-X", "max.request.size=2000"), "line 3 has more than 2,000 bytes, and no delimiter (b'\\n') yet"),
        (("--json", "-D", "|"), "line 3 has more than 8,388,608 bytes, and no delimiter (b'|') yet; a record may have"),
        (("--whole",), "file 2 has more than 1,048,576 bytes; a record may have 1,048,576 (max_request_size, which -X"),
    ],
)
def test_input_without_an_end_is_not_kept(options: tuple[str, ...], told: str, shell: Shell, file: File) -> None:
    before = file(b'{"value": 1}|{"value": 2}|' if "--json" in options else b"1\n2\n")
    shell("produce", "orders", before, "/dev/zero", *options, status=1)
    assert shell.err.startswith(f"aiokafkawire: {told}")
    assert shell("consume", "orders") == (b"1\n2\n\n" if "--whole" in options else b"1\n2\n")


def test_a_transaction_has_all_lines_or_none(shell: Shell, file: File) -> None:
    arguments = ("-K", ":", "--transactional-id", "import")
    shell("produce", "orders", file(b"a:1\noops\n"), *arguments, status=1)
    assert shell.err.endswith(": 'oops'; the transaction is aborted\n")
    shell("produce", "orders", file(b"b:2\nc:3\n"), *arguments)
    assert shell("consume", "orders", "-X", "isolation.level=read_committed") == b"2\n3\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--whole", "--json"], "--whole and --json cannot be combined"),
        (["--json", "-K", ":"], "--json lines have the key as a field"),
        (["-k", "a", "-K", ":"], "--key and --key-separator cannot be combined"),
        (["-H", "nothing"], "--header takes NAME=VALUE, got 'nothing'"),
        (["-D", ""], "--delimiter must not be empty"),
        (["--timestamp", "later"], "--timestamp: 'later' is no time"),
        (["--transactional-id", "t", "--acks", "1"], "transactional_id needs acks='all'"),
    ],
)
def test_options_of_produce_that_contradict(arguments: list[str], told: str, shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"x\n"), *arguments, status=2)
    assert told in shell.err
    assert shell.err.count("\n") == 1


@pytest.mark.parametrize("verb", ["produce", "consume"])
def test_an_unknown_topic_is_told_at_once(verb: str, shell: Shell, file: File) -> None:
    shell(verb, "nothing", *([file(b"x\n")] if verb == "produce" else []), status=1)
    assert shell.err.startswith("aiokafkawire: UnknownTopicOrPartition: describing topic 'nothing'")
    shell(verb, "no spaces", status=2)
    assert shell.err.startswith("aiokafkawire: 'no spaces' cannot be a topic's name")


def test_a_file_that_is_not_there(shell: Shell, tmp_path: Path) -> None:
    shell("produce", "orders", str(tmp_path / "none"), status=1)
    assert shell.err.startswith(f"aiokafkawire: cannot read {tmp_path / 'none'}: No such file or directory")


def test_the_client_may_create_the_topic_if_told_so(shell: Shell, file: File) -> None:
    shell("produce", "new", file(b"x\n"), "-X", "allow.auto.create.topics=true")
    assert shell("consume", "new") == b"x\n"


# --- consume ---------------------------------------------------------------------------------------------------------


def test_an_empty_topic_prints_nothing_and_ends(shell: Shell) -> None:
    assert shell("consume", "orders") == b""
    assert shell.err.startswith("0 records, ")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], "abcdef"),
        (["--from", "end"], ""),
        (["--from", "2"], "cdef"),
        (["--from", "2", "--to", "4"], "cd"),
        (["--to", "-2"], "abcd"),
        (["--from", "-2"], "ef"),
        (["--from", "99"], ""),
        (["--from", "@3000"], "cdef"),
        (["--from", "@2500", "--to", "@5000"], "cd"),
        (["--from", "1970-01-01T00:00:06Z"], "f"),
        (["--to", "1h"], "abcdef"),
        (["--from", "1h"], ""),
        (["--last", "2"], "ef"),
        (["--last", "99"], "abcdef"),
        (["--last", "3", "--count", "1"], "d"),
        (["--count", "3"], "abc"),
        (["--grep", "[bd]"], "bd"),
        (["--grep", "[BD]", "-i", "--invert"], "acef"),
        (["--grep", "[^a]", "--count", "2"], "bc"),
        (["--after", "@2000", "--before", "@4000"], "bc"),
    ],
)
def test_what_is_read_begins_and_ends_where_asked(
    arguments: list[str], found: str, kafka_broker: BackgroundBroker, shell: Shell
) -> None:
    write_at(kafka_broker.bootstrap, [(0, 1000 * (n + 1), bytes([97 + n])) for n in range(6)])
    assert shell("consume", "orders", "-D", "", *arguments) == found.encode()


def test_the_newest_records_of_several_partitions_are_in_order_of_time(
    kafka_broker: BackgroundBroker, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    kafka_broker.create_topic("orders", partitions=3)
    shell = Shell(kafka_broker.bootstrap, capsysbinary)
    write_at(kafka_broker.bootstrap, [(n % 3, 1000 * n, b"%d" % n) for n in range(9)])
    assert shell.lines("consume", "orders", "--last", "4") == ["5", "6", "7", "8"]
    assert shell.lines("consume", "orders", "-p", "1") == ["1", "4", "7"]
    assert sorted(shell.lines("consume", "orders", "-p", "0,2", "-p", "2")) == ["0", "2", "3", "5", "6", "8"]
    assert sorted(shell.lines("consume", "orders", "-p", "0-1", "--to", "1")) == ["0", "1"]
    shell("consume", "orders", "-p", "7", status=2)
    assert shell.err == "aiokafkawire: topic 'orders' has no partition 7: it has 3\n"


def test_several_topics(kafka_broker: BackgroundBroker, shell: Shell, file: File) -> None:
    kafka_broker.create_topic("payments")
    shell("produce", "orders", file(b"a\n"))
    shell("produce", "payments", file(b"b\n"))
    assert sorted(shell.lines("consume", "orders", "payments", "-f", r"%t %v\n")) == ["orders a", "payments b"]


def test_it_stops_behind_records_of_an_aborted_transaction(
    kafka_broker: BackgroundBroker, shell: Shell, file: File
) -> None:
    async def abort() -> None:
        async with Client(kafka_broker.bootstrap) as kafka, kafka.producer(transactional_id="t") as producer:
            with pytest.raises(KeyError):
                async with producer.transaction() as transaction:
                    await transaction.send("orders", b"aborted")
                    raise KeyError

    shell("produce", "orders", file(b"seen\n"))
    anyio.run(abort)
    assert shell("consume", "orders", "-X", "isolation.level=read_committed") == b"seen\n"
    assert shell("consume", "orders") == b"seen\naborted\n"


def test_headers_and_keys_are_filtered(shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"k1:a\n"), "-K", ":", "-H", "source=shell")
    shell("produce", "orders", file(b"k2:b\n"), "-K", ":")
    assert shell("consume", "orders", "--header", "source=^sh") == b"a\n"
    assert shell("consume", "orders", "--header", "source", "--invert") == b"b\n"
    assert shell("consume", "orders", "--key", "2$", "-K", "=") == b"k2=b\n"


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_has_committed(protocol: str, shell: Shell, file: File) -> None:
    group = ("-g", "billing", "-X", f"group.protocol={protocol}")
    shell("produce", "orders", file(b"1\n2\n3\n4\n5\n"))
    assert shell("consume", "orders", *group, "--count", "2") == b"1\n2\n"
    assert shell("consume", "orders", *group) == b"3\n4\n5\n"
    assert shell("consume", "orders", *group) == b""
    shell("produce", "orders", file(b"6\n"))
    assert shell("consume", "orders", *group, "--grep", "6", "--count", "1") == b"6\n"


def test_a_group_that_must_not_commit_begins_again(shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"1\n"))
    group = ("-g", "billing", "-X", "enable.auto.commit=false")
    assert shell("consume", "orders", *group) == b"1\n"
    assert shell("consume", "orders", *group) == b"1\n"


def test_the_commits_are_of_printed_records(kafka_broker: BackgroundBroker, shell: Shell, file: File) -> None:
    shell("produce", "orders", file(b"1\n2\n3\n"))
    shell("consume", "orders", "-g", "billing", "--count", "2")

    async def committed() -> int:
        async with Client(kafka_broker.bootstrap) as kafka:
            offsets = await kafka.admin.list_consumer_group_offsets("billing")
            found = offsets[TopicPartition("orders", 0)]
            assert found is not None
            return found.offset

    assert anyio.run(committed) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--last", "1", "--from", "2"], "--last and --from cannot be combined"),
        (["--follow", "--to", "2"], "--follow and --to cannot be combined"),
        (["-g", "g", "--last", "1"], "--group and --last cannot be combined"),
        (["-g", "g", "-p", "1"], "--group and --partition cannot be combined"),
        (["-g", "g", "--from", "3"], "with --group, --from must be beginning or end"),
        (["--from", "sometime"], "--from: 'sometime' is no point in a topic"),
        (["-p", "x"], "--partition: 'x' is no partition"),
        (["-p", "1-"], "--partition: '1-' is no partition"),
        (["-p", "5-3"], "--partition: '5-3' is no partition"),
        (["-f", "xml"], "--format: 'xml' is none of plain, json, hex"),
        (["-f", "%q"], "--format: unknown token '%q'"),
        (["--grep", "("], "--grep: '(' is no regular expression"),
    ],
)
def test_options_of_consume_that_contradict(arguments: list[str], told: str, shell: Shell) -> None:
    shell("consume", "orders", *arguments, status=2)
    assert told in shell.err
    assert shell.err.count("\n") == 1


def test_the_offsets_of_points_are_looked_up_in_each_partition(kafka_broker: BackgroundBroker, shell: Shell) -> None:
    kafka_broker.create_topic("two", partitions=2)

    async def write() -> None:
        async with Client(kafka_broker.bootstrap) as kafka, kafka.producer() as producer:
            for partition, count in ((0, 1), (1, 4)):
                for number in range(count):
                    await producer.send("two", b"%d.%d" % (partition, number), partition=partition)
            ends = await kafka.admin.list_offsets({TopicPartition("two", 1): OffsetSpec.LATEST})
            assert [at.offset for at in ends.values() if at is not None] == [4]

    anyio.run(write)
    assert sorted(shell.lines("consume", "two", "--from", "-2")) == ["0.0", "1.2", "1.3"]
    assert sorted(shell.lines("consume", "two", "--from", "3")) == ["1.3"]
