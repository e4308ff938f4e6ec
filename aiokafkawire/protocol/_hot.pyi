from typing import Any

__all__ = ("Field", "Struct")

class Field:
    def __init__(
        self,
        owner: type[Any],
        name: str,
        wire: str,
        struct: Struct | None,
        array: bool,
        nullable: bool,
        compact: bool,
        tag: int | None,
        default: object,
    ) -> None: ...

class Struct:
    def __init__(
        self,
        cls: type[Any],
        inline: tuple[Field, ...],
        tagged: tuple[Field, ...],
        absent: tuple[Field, ...],
        flexible: bool,
    ) -> None: ...
    def decode(self, data: bytes, position: int, /) -> tuple[Any, int]: ...
