"""Stores archives under a URL, with every file system that fsspec knows."""

from __future__ import annotations

import time

from jumar.errors import BadInput

TRIES, FIRST_PAUSE_SECONDS = 4, 1.0
"""Times that an archive is stored at most, and the pause after the first; each next one is four times as long."""


def upload(url: str, data: bytes, pause: float = FIRST_PAUSE_SECONDS) -> str:
    """Store *data* at *url*, whole or not at all; return why it could not be, or an empty text."""
    import fsspec  # noqa: PLC0415  an extra

    why = ""
    for number in range(TRIES):
        if number:
            time.sleep(pause * 4 ** (number - 1))
        try:
            system, path = fsspec.core.url_to_fs(url)
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
            system.pipe_file(f"{path}.part", data)
            system.mv(f"{path}.part", path)
        except Exception as error:  # noqa: BLE001  each file system has its own
            why = f"{type(error).__name__}: {error}"
        else:
            return ""
    return why


def check_url(url: str) -> None:
    """Refuse a *url* that no file system here reads.

    Raises:
        BadInput: naming it.
    """
    try:
        import fsspec  # noqa: PLC0415  an extra

        fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise BadInput(f"--collect {url}: {error}; name a folder, or a URL that fsspec knows, such as s3://") from None
