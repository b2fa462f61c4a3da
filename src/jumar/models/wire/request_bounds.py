"""Bounds what the parts of a request can cost, by their bytes: a token covers at least one.

Images are the exception: a provider counts their pixels. So the bytes of an image count for nothing, once, where the
format has images, and if they are those of an image. Anything else that is called one is text, as a server may take it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from jumar.models.wire.messages import PER_MESSAGE, PER_REQUEST, PER_TOOLS

IMAGE_TOKENS = 16_384
"""No provider counts more for one image, however few bytes it has."""

IMAGES = frozenset({"image", "image_url", "input_image"})
"""Types of content that are images."""

DATA_URL = re.compile(r"data:image/[a-z.+-]+;base64,")

MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF", b"BM", b"II*\x00", b"MM\x00*")
"""First bytes of images that providers read."""

HEAD = 16
"""Characters of base64 that hold them."""


class TurnBound(NamedTuple):
    """Measures of one turn of a conversation."""

    digest: str
    tokens: int
    """The most tokens that it can be."""
    size: int
    """Its bytes."""


def bound_turn(turn: object) -> TurnBound:
    """Return the measures of *turn*."""
    size = len(encode_plain(turn))
    pictures = list(_list_pictures(turn))
    tokens = size - sum(map(_count_payload, pictures)) + IMAGE_TOKENS * len(pictures) + PER_MESSAGE
    return TurnBound(_compute_digest(turn), tokens, size)


def bound_rest(head: dict[str, Any]) -> tuple[str, int]:
    """Return the digest of *head*, all of a request but its conversation, and the most tokens that it can be."""
    offered = [head.get("tools"), head.get("functions")]
    # Templates write schemas in words of their own: twice their bytes, as for our own agents.
    tools = len(encode_plain(offered)) + PER_TOOLS if any(offered) else 0
    return _compute_digest(head), len(encode_plain(head)) + tools + PER_REQUEST


def encode_plain(value: object) -> bytes:
    """Return *value* as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _list_pictures(part: object) -> Iterator[dict[str, Any]]:
    """Yield the images in the content of *part*, a turn or what a tool has returned in one."""
    content = (part.get("content") or part.get("output")) if isinstance(part, dict) else None
    for inner in content if isinstance(content, list) else ():
        if isinstance(inner, dict) and inner.get("type") in IMAGES:
            yield inner
        elif isinstance(inner, dict) and inner.get("type") == "tool_result":
            yield from _list_pictures(inner)


def _count_payload(picture: dict[str, Any]) -> int:
    """Return the characters of base64 in *picture*, none if they are no image's."""
    source = picture.get("source") if picture["type"] == "image" else picture.get("image_url")
    inner = source if isinstance(source, dict) else {"url": source}
    text = inner.get("data") if picture["type"] == "image" else inner.get("url")
    if not isinstance(text, str):
        return 0
    if picture["type"] != "image":
        named = DATA_URL.match(text)
        text = text[named.end() :] if named else ""
    try:
        begins = base64.b64decode(text[:HEAD], validate=True).startswith(MAGIC)
        base64.b64decode(text, validate=True)
    except ValueError:
        return 0
    return len(text) if begins else 0


def _compute_digest(value: object) -> str:
    """Return the sha256 of *value* without its cache marks, which move with the conversation."""
    return sha256(encode_plain(_strip_cache_marks(value))).hexdigest()


def _strip_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _strip_cache_marks(v) for k, v in value.items() if k != "cache_control"}
    return [_strip_cache_marks(v) for v in value] if isinstance(value, list) else value
