"""What all sections of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic_core import PydanticCustomError

NAMED = "setting"
"""Key, in the context of an error of a whole section, of the name of the wrong setting in it."""


def refuse_nul(value: object) -> object:
    """Return a value unchanged; no path, name or address may contain a NUL. Raises ValueError."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a NUL can be in no setting")
    return value


class Section(BaseModel):
    """A table of `harvest.toml`. Errors leave out what was given, which may be a secret."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_nul(cls, value: object) -> object:
        return refuse_nul(value)


def mistake(text: str, name: str = "") -> PydanticCustomError:
    """Return an error in plain words; `name`: the setting, where a check of a whole section finds it. It shows no value."""
    return PydanticCustomError("plain", "{text}", {"text": text, NAMED: name})
