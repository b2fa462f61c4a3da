"""Explains why pytest refuses to start: an option, a plug-in or a version that its configuration wants is missing."""

from __future__ import annotations

import re
import shlex

PLUGINS = {
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "--dist": "pytest-xdist",
    "--numprocesses": "pytest-xdist",
    "-n": "pytest-xdist",
    "--timeout": "pytest-timeout",
    "--asyncio": "pytest-asyncio",
    "--reruns": "pytest-rerunfailures",
    "--randomly": "pytest-randomly",
    "--random-order": "pytest-random-order",
    "--benchmark": "pytest-benchmark",
    "--ds": "pytest-django",
    "--nomigrations": "pytest-django",
    "--reuse-db": "pytest-django",
    "--mypy": "pytest-mypy",
    "--html": "pytest-html",
    "--snapshot": "syrupy",
    "--hypothesis": "hypothesis",
}
"""Option, or its beginning -> the distribution of the plug-in that brings it."""

UNKNOWN = re.compile(
    r"error: unrecognized arguments: (?P<options>.+?)(?:\s+inifile: (?P<file>\S+))?(?:\s+rootdir: |\s*$)"
)
OLD = re.compile(r"(?:(?P<file>\S+): )?'minversion' requires pytest-(?P<wanted>\S+), actual pytest-(?P<found>[^\s']+)")
MISSING = re.compile(r"Missing required plugins: (?P<plugins>.+)")


def explain_refusal(said: str, python: str) -> str:
    """Return why pytest in *python* does not start, and how to mend it, where *said* is such a refusal; else *said*."""
    line, pip = " ".join(said.split()), f"{shlex.quote(python)} -m pip install"
    if found := UNKNOWN.search(line):
        plugins = sorted({known for option in found["options"].split() if (known := _find_plugin(option))})
        how = f"`{pip} {' '.join(plugins)}`" if plugins else f"install it there (`{pip} ...`)"
        return (
            f"pytest in {python} does not know {found['options']}, so the plug-in with that option is missing there: "
            f"{how}, or pass --python, or take the option out of addopts{_format_place(found['file'])}"
        )
    if found := OLD.search(line):
        return (
            f"pytest in {python} is {found['found']}, and minversion{_format_place(found['file'])} asks for "
            f"{found['wanted']}: `{pip} 'pytest>={found['wanted']}'`, or pass --python"
        )
    if found := MISSING.search(line):
        plugins = [shlex.quote(plugin.strip()) for plugin in found["plugins"].split(",")]
        return f"pytest in {python} lacks what required_plugins asks for: `{pip} {' '.join(plugins)}`, or pass --python"
    return said


def _find_plugin(option: str) -> str:
    """Return the distribution that brings *option*; empty: none that is known."""
    name = option.partition("=")[0]
    return next((plugin for known, plugin in PLUGINS.items() if name == known or name.startswith(f"{known}-")), "")


def _format_place(file: str | None) -> str:
    return f" in {file}" if file and file != "None" else ""
