"""Decodes a Python source as Python itself would: by its byte order mark, its cookie, or UTF-8."""

from __future__ import annotations

import tokenize
from io import BytesIO

from jumar.errors import BadInput


def check_utf8(data: bytes) -> str:
    """Return why *data* is not UTF-8 text, after the name of its file; empty: it is."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"is not UTF-8 (byte {error.start})"
    return ""


def decode_source(source: bytes, path: str) -> str:
    """Return the text of a Python *source*, by its byte order mark or PEP 263 cookie, else UTF-8.

    Raises:
        BadInput: if it does not decode; the sentence names *path* and the offset in bytes.
    """
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(source).readline)
        return source.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not valid {error.encoding} (byte {error.start}); save it as UTF-8") from error
    except (SyntaxError, LookupError, ValueError):
        return _refuse_encoding(source, path)


def _refuse_encoding(source: bytes, path: str) -> str:
    """Find the byte that does not decode, which `detect_encoding` hides, or name the cookie."""
    try:
        source.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    raise BadInput(f"{path} declares an encoding that Python does not know, or two; save it as UTF-8")
