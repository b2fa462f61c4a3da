"""Chooses the models that a challenge asks beside its agents: the judge, and the one that proposes variants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jumar.challenges.agents_file import ModelTable
from jumar.core.state.settings import Route, Settings
from jumar.models.recording import start_recording
from jumar.models.router import build_routes, collect_keys
from jumar.models.script import parse_script, read_script
from jumar.ports import Model
from jumar.task.model_routes import parse_price

OUTPUT_TOKENS = 4096
"""For one answer."""


class ChosenModel(NamedTuple):
    """A model that can be asked, with the facts for a recording of it."""

    model: Model
    routes: Mapping[str, Route]
    secrets: tuple[str, ...]

    def record(self, path: Path, tier: str) -> Model:
        """Return the model, and record its answers to *tier* at *path*; an old recording is replaced.

        Raises:
            BadInput: if nothing can be written there.
        """
        path.unlink(missing_ok=True)
        return start_recording(path, self.model.name, self.routes, self.secrets).record_models(
            lambda _tier: self.model
        )(tier)


def choose_model(order: ModelTable, tier: str, environ: Mapping[str, str]) -> ChosenModel:
    """Return the model of *order*, which answers calls of *tier*.

    Raises:
        BadInput: if a key, a price or a file is missing.
    """
    kind, _, path = order.model.partition(":")
    if kind == "script":
        return ChosenModel(parse_script(read_script(Path(path)), order.model), {}, ())
    route = Route(
        model=order.model,
        max_output_tokens=OUTPUT_TOKENS,
        price=parse_price(order.price) if order.price else None,
        base_url=order.base_url,
    )
    settings = Settings(routes={tier: route})
    return ChosenModel(build_routes(settings, environ)(tier), settings.routes, collect_keys(settings, environ))
