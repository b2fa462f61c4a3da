"""Converts the Harbor tasks among the named tasks, before anything is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumar.campaigns.plan import CampaignTask
from jumar.cli.console.output import Console
from jumar.errors import BadInput
from jumar.importing.from_harbor import import_harbor_task
from jumar.importing.harbor_format import is_harbor_task
from jumar.task.settings.task_files import TASK_FILE


async def replace_harbor_tasks(tasks: Sequence[CampaignTask], out: Path, voice: Console) -> tuple[CampaignTask, ...]:
    """Return *tasks* with a task below *out* for each Harbor task; differences to Harbor are printed.

    Raises:
        BadInput: if one needs a container, naming for what.
        Infra: if its packages cannot be installed.
    """
    return tuple([await _replace(task, out, voice) for task in tasks])


async def _replace(task: CampaignTask, out: Path, voice: Console) -> CampaignTask:
    source = Path(task.path)
    folder = source.parent if source.name == TASK_FILE else source
    if not is_harbor_task(folder):
        return task
    try:
        made = await import_harbor_task(folder, out, task.name)
    except BadInput as fault:
        raise BadInput(f"{task.name}: {fault}") from None
    voice.note(f"{task.name}: made of a Harbor task; {'; '.join(made.notes)}")
    return CampaignTask(task.name, made.folder)
