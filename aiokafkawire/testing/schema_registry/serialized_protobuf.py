"""Protobuf schemas as serialized descriptors, which protoc makes of their text."""

import base64
import binascii
import re
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from .registry_error import RegistryRefusal

__all__ = ("serialized",)

_FILE_NAME = re.compile(r"(?:[\w.-]+/)*[\w.-]+")


def serialized(text: str, references: Mapping[str, str]) -> str:
    """Return a schema as a serialized FileDescriptorProto in base64.

    Args:
        text: the schema: a .proto file, or serialized already.
        references: the schemas that it imports, by the names of their files.
    """
    if _is_serialized(text):
        return text
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from grpc_tools import protoc
    except ImportError:
        raise RegistryRefusal(
            50001, "format=serialized needs protoc for schemas that are text: pip install grpcio-tools"
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        for name, imported in references.items():
            _write(Path(folder), name, imported)
        own = "schema.proto"
        while own in references:
            own = f"_{own}"
        _write(Path(folder), own, text)
        known = str(files("grpc_tools") / "_proto")
        status = protoc.main(
            ["protoc", f"-I{folder}", f"-I{known}", f"--descriptor_set_out={folder}/made", f"{folder}/{own}"]
        )
        if status:
            raise RegistryRefusal(42201, "Invalid schema, details: protoc does not compile it")
        made = FileDescriptorSet.FromString(Path(folder, "made").read_bytes())
    return base64.b64encode(made.file[0].SerializeToString()).decode()


def _is_serialized(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _write(folder: Path, name: str, text: str) -> None:
    if not _FILE_NAME.fullmatch(name) or ".." in name.split("/"):
        raise RegistryRefusal(42201, f"Invalid schema, details: {name!r} is not the name of a .proto file")
    if _is_serialized(text):
        raise RegistryRefusal(50001, f"a schema that is text imports {name!r}, which is serialized")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
