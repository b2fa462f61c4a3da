"""Decodes a TOML file of known tables, with the sentences that task files are refused with."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from jumar.errors import BadInput
from jumar.task.settings.type_errors import translate_type_error
from jumar.task.settings.unknown_keys import refuse_unknown

Decoded = TypeVar("Decoded", bound=msgspec.Struct)


def decode_tables(data: bytes, kind: type[Decoded], where: str, elsewhere: Mapping[str, str]) -> Decoded:
    """Return the tables in *data*, the content of the file *where*; *elsewhere* says of some which file has them.

    Raises:
        BadInput: on text that is not TOML, an unknown key, a wrong type or a number out of range.
    """
    try:
        raw = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{where} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not valid TOML: {error}") from None
    for table in raw:
        if table in elsewhere and table not in kind.__struct_fields__:
            raise BadInput(f"{where}: {table!r} belongs into {elsewhere[table]}; move it there")
    refuse_unknown(raw, kind, where)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {translate_type_error(error, raw, kind)}") from None
