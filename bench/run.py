"""Runs the benches and says what moved: `python bench/run.py [--only journal,start] [--write-baseline]`, `--compare`.

Each bench runs in a process of its own, within the time that is left; one that cannot run is named with its reason, and
nothing makes the whole fail. The figures go into `bench/latest.json` and a table; `bench/baseline.json` is committed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import anyio
import msgspec

from frame import Figure, Skipped, patience

HERE = Path(__file__).parent
LATEST, BASELINE = HERE / "latest.json", HERE / "baseline.json"
MINUTES, ROUNDS = 15.0, 9

MEASUREMENT_SECONDS = 40.0
"""Time after which a measurement ends with three rounds, unless their number was given: all benches have 15 minutes."""

NOISE = 0.05
"""Least change that counts, as a share of the older value."""

MEASURES = re.compile(r"^def measure\(_?rounds: int\)", re.MULTILINE)
"""Head of the function that makes a module a bench of the frame."""

LAST_WORDS = 200


class Machine(msgspec.Struct, frozen=True):
    """The machine that figures come from, without its name."""

    cores: int
    processor: str
    memory_gb: int
    kernel: str
    python: str
    tier: str
    load: float
    """Load before the first bench: times of a busy machine are not comparable, ratios are."""


class Results(msgspec.Struct, frozen=True):
    """All that was measured, and what was not."""

    machine: Machine
    figures: dict[str, Figure] = {}
    skipped: dict[str, str] = {}
    seconds: dict[str, float] = {}


def list_benches() -> list[str]:
    """Return the names of all benches, those that take long apart: they have no `measure`."""
    return [p.stem for p in sorted(HERE.glob("*.py")) if MEASURES.search(p.read_text())]


def describe_machine() -> Machine:
    """Return the machine at hand."""
    from jumar.runs.setup.choose_sandbox import SandboxSurroundings, choose_sandbox  # noqa: PLC0415  the rest needs none

    processor = next((line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if "model name" in line), "")
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    with tempfile.TemporaryDirectory() as place:
        around = SandboxSurroundings(Path(place), dict(os.environ))
        tier = anyio.run(lambda: choose_sandbox("auto", around, unattended=False)).tier
    kernel = ".".join(platform.release().split("-")[0].split(".")[:2])
    cores, load = len(os.sched_getaffinity(0)), round(os.getloadavg()[0], 1)
    return Machine(cores, processor, round(memory / 1e6), kernel, platform.python_version(), str(tier), load)


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def measure_one(name: str, rounds: int) -> None:
    """Run the bench *name* here; each figure is a line of JSON on standard output, the reason of a skip another.

    Without a number of *rounds* it ends earlier where it takes long.
    """
    if not rounds:
        patience["seconds"] = MEASUREMENT_SECONDS
    try:
        for figure in import_module(name).measure(rounds or ROUNDS):
            print(msgspec.json.encode(figure).decode(), flush=True)
    except Skipped as why:
        print(msgspec.json.encode({"skipped": str(why)}).decode())
    except Exception:  # noqa: BLE001  a bench that breaks is named, and the others go on
        print(msgspec.json.encode({"skipped": traceback.format_exc(limit=-1)[-LAST_WORDS:]}).decode())


def run_all(names: list[str], rounds: int, minutes: float) -> Results:
    """Run the benches *names*, one after the other."""
    results, until = Results(describe_machine(), {}, {}, {}), time.monotonic() + 60 * minutes
    took = read_baseline(results.machine).seconds
    for name in sorted(names, key=lambda name: took.get(name, 0.0)):  # the shortest first: the others wait
        began, left = time.monotonic(), until - time.monotonic()
        print(f"{name} ...", file=sys.stderr, flush=True)
        argv = [sys.executable, str(HERE / "run.py"), "--one", name, "--rounds", str(rounds)]
        try:
            said = subprocess.run(argv, stdout=subprocess.PIPE, check=False, timeout=max(left, 0.1)).stdout  # noqa: S603  ours
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"") + b'\n{"skipped":"no time was left"}'
        for line in said.splitlines():
            if line.startswith(b'{"skipped"'):
                results.skipped[name] = str(msgspec.json.decode(line)["skipped"])
            elif line.startswith(b"{"):
                figure = msgspec.json.decode(line, type=Figure)
                results.figures[f"{name}: {figure.name}"] = figure
        if name not in results.skipped:  # else older figures of it stand
            results.seconds[name] = round(time.monotonic() - began, 1)
    return results


def format_table(results: Results) -> str:
    """Return the figures as a table, with the machine above it."""
    rows = [
        " ".join(f"{key} {value}" for key, value in msgspec.to_builtins(results.machine).items() if value != ""),
        "",
    ]
    for name, figure in results.figures.items():
        spread = f"{_short(figure.low)} to {_short(figure.high)}"
        rows.append(
            f"{name:<64}{_short(figure.value):>10} {figure.unit:<8}{spread:>22} {figure.rounds:>3}  {figure.note}"
        )
    rows += [f"{name:<64}skipped: {' '.join(why.split())}" for name, why in results.skipped.items()]
    return "\n".join([*rows, "", f"{sum(results.seconds.values()):.0f} s in all"])


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"  # noqa: PLR2004  digits that mean something


def list_moves(old: Results, new: Results) -> list[str]:
    """Return a line for each figure that moved beyond the spread of both measurements."""
    busy = any(machine.load > machine.cores for machine in (old.machine, new.machine))
    other = busy or is_other(old.machine, new.machine)
    what = "a busy machine" if busy else "another machine"
    lines = [f"{what}: only ratios and counts are compared"] if other else []
    for name, figure in new.figures.items():
        was = old.figures.get(name)
        if was is None:
            lines.append(f"{name}: new, {_short(figure.value)} {figure.unit}")
        elif not (other and figure.unit in ("s", "ms", "us")) and _moved(was, figure):
            worse = figure.better and (figure.value > was.value) == (figure.better == "less")
            change = f"{_short(was.value)} -> {_short(figure.value)} {figure.unit}"
            lines.append(f"{name}: {change}{' WORSE' if worse else ' better' if figure.better else ''}")
    gone = [name for name in old.figures if name not in new.figures and name.partition(":")[0] in new.seconds]
    return [*lines, *(f"{name}: not measured any more" for name in gone)]


def _moved(was: Figure, now: Figure) -> bool:
    apart = was.high < now.low or now.high < was.low
    return apart and abs(now.value - was.value) > NOISE * abs(was.value)


def compare(results: Results) -> None:
    """Print what moved since the committed baseline."""
    if not BASELINE.exists():
        print("no baseline yet: --write-baseline makes one")
        return
    old = read_baseline(results.machine)
    print("\nagainst bench/baseline.json:", *(list_moves(old, results) or ["nothing moved"]), sep="\n  ")


def main(options: Mapping[str, str | float | bool | None]) -> None:
    """Run what was asked for."""
    if options["one"]:
        measure_one(str(options["one"]), int(options["rounds"] or 0))
        return
    if options["compare"]:
        compare(msgspec.json.decode(LATEST.read_bytes(), type=Results))
        return
    known = list_benches()
    names = [name for name in str(options["only"] or "").replace(" ", ",").split(",") if name] or known
    if unknown := sorted(set(names) - set(known)):
        print(f"no such bench: {', '.join(unknown)}; there are {', '.join(known)}")
        return
    results = run_all(names, int(options["rounds"] or 0), float(options["minutes"] or MINUTES))
    print(format_table(results))
    LATEST.write_bytes(_encode(results))
    compare(results)
    if options["write_baseline"]:
        BASELINE.write_bytes(_encode(merge(read_baseline(results.machine), results)))


def read_baseline(machine: Machine) -> Results:
    """Return the committed figures; none where there are none yet."""
    return msgspec.json.decode(BASELINE.read_bytes(), type=Results) if BASELINE.exists() else Results(machine)


def merge(old: Results, new: Results) -> Results:
    """Return *new*, with the figures of *old* for benches that were not run, if they are of the same machine."""
    if is_other(old.machine, new.machine):
        return new
    kept = {name: figure for name, figure in old.figures.items() if name.partition(":")[0] not in new.seconds}
    figures = dict(sorted({**kept, **new.figures}.items()))
    return msgspec.structs.replace(new, figures=figures, seconds={**old.seconds, **new.seconds})


def is_other(one: Machine, other: Machine) -> bool:
    """Return whether these are two machines; how busy they are does not count."""
    return msgspec.structs.replace(one, load=0) != msgspec.structs.replace(other, load=0)


def _encode(results: Results) -> bytes:
    return msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of benches, with commas")
    parser.add_argument("--rounds", type=int, default=0, help=f"of each measurement; {ROUNDS} where there is time")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--compare", action="store_true", help="measure nothing: what moved in the newest results")
    parser.add_argument("--write-baseline", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    main(vars(parser.parse_args()))
