"""Chooses the models that a challenge asks beside its agents: the judge, and the one that proposes variants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jumar.core.state.settings import Route, Settings
from jumar.errors import BadInput
from jumar.models.recording import start_recording
from jumar.models.router import build_routes, collect_keys
from jumar.models.script import parse_script, read_script
from jumar.ports import Model
from jumar.task.model_routes import parse_price

OUTPUT_TOKENS = 4096
"""For one answer."""


class ModelOrder(NamedTuple):
    """Model as a table of the challenge asks for it."""

    table: str
    """Name of the table, for faults."""
    model: str
    tier: str
    base_url: str
    price: str


class ChosenModel(NamedTuple):
    """A model that can be asked, with what a recording of it says."""

    model: Model
    routes: Mapping[str, Route]
    secrets: tuple[str, ...]

    def record(self, path: Path, tier: str) -> Model:
        """Return the model, whose answers to *tier* are recorded at *path*; a recording that is there is replaced.

        Raises:
            BadInput: if nothing can be written there.
        """
        path.unlink(missing_ok=True)
        return start_recording(path, self.model.name, self.routes, self.secrets).around(lambda _tier: self.model)(tier)


def choose_model(order: ModelOrder, folder: Path, environ: Mapping[str, str]) -> ChosenModel:
    """Return the model of *order*; the path of a `script:` is relative to *folder*.

    Raises:
        BadInput: if a key, a price or a file is missing, naming the table.
    """
    kind, _, rest = order.model.partition(":")
    try:
        if kind == "script":
            path = folder / rest
            return ChosenModel(parse_script(read_script(path), f"script:{path}"), {}, ())
        route = Route(
            model=order.model,
            max_output_tokens=OUTPUT_TOKENS,
            price=parse_price(order.price) if order.price else None,
            base_url=order.base_url,
        )
        settings = Settings(routes={order.tier: route})
        model = build_routes(settings, environ)(order.tier)
    except BadInput as error:
        raise BadInput(f"{order.table}: {error}") from None
    return ChosenModel(model, settings.routes, collect_keys(settings, environ))
