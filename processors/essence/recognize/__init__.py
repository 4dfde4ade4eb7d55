"""Recognition: the type of a file from its name, its content and what its source states (Essence, seed 003, "Type Recognition")."""

from processors.essence.recognize.table import (
    HEAD,
    Recognized,
    Table,
    placed,
    preload,
    recognize,
    shipped,
    signature,
    table,
    use,
)
from processors.essence.types import UNRECOGNIZED, TypeRule

__all__ = [
    "HEAD",
    "UNRECOGNIZED",
    "Recognized",
    "Table",
    "TypeRule",
    "placed",
    "preload",
    "recognize",
    "shipped",
    "signature",
    "table",
    "use",
]
