"""A secret that a write would bring into the workspace is a hit; one that stands there already is none."""

from __future__ import annotations

from collections.abc import Mapping

from jumar.core.content import RULE, Secret, secrets
from jumar.core.gate import YES, Ruling
from jumar.core.guard import Hit
from jumar.parts import Parts


def leaking(parts: Parts, files: Mapping[str, str | None]) -> Ruling:
    """Rule on the contents of *files*, path -> whole new text; None deletes, and leaks nothing."""
    for path, text in files.items():
        for secret in secrets(text or "", fixture=parts.guard.authorable(path)):
            if not _there(parts, secret):
                what = f"{secret.kind} in {path}"
                return Ruling(admitted=False, reason=f"nothing may be written that holds {what}", hit=Hit(RULE, what))
    return YES


def _there(parts: Parts, secret: Secret) -> bool:
    """Whether any file of the known tree holds *secret*: it may be moved about."""
    wanted = secret.text.encode()
    return any(wanted in data for data in parts.workspace.files(lambda _: True).values())
