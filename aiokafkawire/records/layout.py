"""The positions of fields in record batches v2 and in messages v0 and v1, and the bits of attributes."""

from struct import Struct

__all__ = (
    "ATTRIBUTES_AT",
    "BASE_OFFSET_AT",
    "CODEC_MASK",
    "CONTROL",
    "COUNTS",
    "COUNT_AT",
    "CRC_AT",
    "DELETE_HORIZON",
    "HEADER",
    "HEADER_SIZE",
    "INT16",
    "INT32",
    "INT64",
    "LAST_OFFSET",
    "LEADER_EPOCH_AT",
    "LENGTH_AT",
    "LOG_APPEND_TIME",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_AT",
    "MAX_TIMESTAMP_AT",
    "MESSAGE",
    "MESSAGE_CRC_AT",
    "MESSAGE_FRAME",
    "MESSAGE_KEY_AT",
    "PRODUCER_ID_AT",
    "SHORTEST_MESSAGE",
    "SHORTEST_MESSAGES",
    "SHORTEST_RECORD",
    "TRANSACTIONAL",
    "UINT32",
)

MAGIC = 2

HEADER = Struct(">qiibIhiqqqhii")
"""A batch's header: base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base timestamp,
max timestamp, producer id, producer epoch, base sequence, count."""

COUNTS = Struct(">8xi9xh34xi")
"""Of a batch's header only the length, the attributes and the count."""

HEADER_SIZE = HEADER.size  # 61; the records follow the header, compressed together

BASE_OFFSET_AT = 0
LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16  # the same position in all formats
CRC_AT = 17
ATTRIBUTES_AT = 21  # the CRC covers the bytes from the attributes on, so brokers may change earlier fields
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
COUNT_AT = 57

LAST_OFFSET = 2**63 - 1  # not a valid record offset, since there is no offset after it
LOG_OVERHEAD = 12  # bytes of base offset and length, which the length does not count
SHORTEST_MESSAGE = 14  # the minimum length in any format: a message v0 with null key and value
SHORTEST_RECORD = 7  # bytes: length, attributes, two deltas, null key, null value, no headers

MESSAGE = Struct(">qiIBBq")
"""The first fields of a message: offset, length, CRC-32, magic, attributes, and in v1 the timestamp. In v0 the lengths
of key and value take as many bytes as the timestamp, so every message has at least this many bytes."""

MESSAGE_FRAME = Struct(">qiI")
"""The fields offset, length and CRC-32 of a message; the CRC covers the bytes after them."""

MESSAGE_CRC_AT = 12
MESSAGE_KEY_AT = (18, 26)  # by magic; key and value follow, each as an int32 length (-1 for null) and bytes
SHORTEST_MESSAGES = (SHORTEST_MESSAGE, SHORTEST_MESSAGE + 8)  # the minimum length, by magic

CODEC_MASK = 0b111
LOG_APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
DELETE_HORIZON = 1 << 6

INT16 = Struct(">h")
INT32 = Struct(">i")
UINT32 = Struct(">I")
INT64 = Struct(">q")
