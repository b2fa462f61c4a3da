"""From state to messages, purely. What does not change comes first, so that a prefix cache pays for it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

from jumar.core.run import RunState
from jumar.core.step import Message
from jumar.core.verdict import Verdict

RULES = dedent("""\
    You repair a program so that its tests pass. The tests are read-only: change only the files you are given.
    Answer with the complete new text of each file you change, in one fenced block a file; if there are several files,
    write the path of each on the line before its fence. No diffs, no omissions.""")


BEST = (
    "This is the best version so far. Make all tests pass; do not change the test files, only the implementation; "
    "output the complete file."
)


def write(state: RunState, files: Mapping[str, str]) -> tuple[Message, ...]:
    """The prompt of the first attempt."""
    parts = [state.run.settings.instruction or "Make the tests pass.", _files(files), _results(state)]
    return (Message("system", RULES), Message("user", "\n\n".join(p for p in parts if p)))


def fix(state: RunState, files: Mapping[str, str]) -> tuple[Message, ...]:
    """The prompt of every later attempt: the best code and the failures of that code, nothing of what was worse."""
    parts = [
        state.run.settings.instruction,
        f"Your last answer was not kept: {state.told}." if state.told else "",
        BEST,
        _files(files),
        _results(state),
    ]
    return (Message("system", RULES), Message("user", "\n\n".join(p for p in parts if p)))


def _files(files: Mapping[str, str]) -> str:
    return "\n\n".join(f"{path}\n```\n{text}\n```" for path, text in sorted(files.items()))


def _results(state: RunState) -> str:
    if state.judged is None or not state.shown:
        return ""
    return f"The failing tests:\n\n{state.shown.get('output', '')}"


OUTPUT_LIMIT = 12_000
"""Characters of test output a model is shown at most; the full text is in the run's `output/`."""


def feedback(verdict: Verdict) -> dict[str, object]:
    """What the model is shown of *verdict*: `ok` and `output`, the red ids and their tracebacks alone, no timings."""
    if verdict.void is not None:
        return {"ok": False, "output": f"no usable evidence: {verdict.void.reason}"}
    lines = [f"{verdict.passed} of {verdict.total} passed"]
    for test_id in verdict.red_ids:
        result = verdict.results[test_id]
        lines.append(f"\n{result.outcome.upper()} {test_id}\n{result.excerpt}".rstrip())
    return {"ok": verdict.green, "output": head_and_tail("\n".join(lines), OUTPUT_LIMIT)}


def head_and_tail(text: str, limit: int) -> str:
    """*text* cut in the middle to at most *limit* characters."""
    if len(text) <= limit:
        return text
    mark = f"\n... {len(text) - limit} characters left out ...\n"
    room = limit - len(mark)
    return text[: room // 2] + mark + text[-(room - room // 2) :]
