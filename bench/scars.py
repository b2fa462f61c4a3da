"""Counts what each scar rule finds per 10,000 lines: in the standard library, and in the libraries of `jumar demo`.

    python bench/scars.py [--sample 50] [FOLDER ...]

With `--sample` it also prints that many findings, drawn evenly over the rules by a fixed seed, to be judged by hand.
"""

from __future__ import annotations

import argparse
import os
import random
import sysconfig
import tarfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from jumar.languages.syntax import find_language
from jumar.scorers.scars.rule import load_shipped_rules
from jumar.scorers.scars.search import Finding, ScarSearch
from jumar.scorers.scars.source_files import read_source_files

SEED = 14


def draw_sample(findings: list[Finding], number: int) -> list[Finding]:
    """Return *number* of *findings*, as evenly over the rules as there are some."""
    chance = random.Random(SEED)  # noqa: S311  a sample, no secret
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for found in by_rule.values():
        chance.shuffle(found)
    drawn: list[Finding] = []
    while len(drawn) < number and any(by_rule.values()):
        drawn += [found.pop() for rule in sorted(by_rule) if (found := by_rule[rule])]
    return sorted(drawn[:number], key=lambda each: (each.rule, each))


def read_archives() -> Mapping[str, bytes]:
    """Return the source files of the third-party libraries that `jumar demo` has fetched, the newest of each."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumar" / "sdists"
    newest = {path.name.rpartition("-")[0]: path for path in sorted(cache.glob("*/*.tar.gz"))}
    found: dict[str, bytes] = {}
    for path in newest.values():
        with tarfile.open(path) as archive:
            members = [m for m in archive if m.isfile() and find_language(m.name)]
            found |= {m.name: file.read() for m in members if (file := archive.extractfile(m))}
    return found


def main() -> None:
    """Print the table, and the sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--sample", type=int, default=0)
    chosen = parser.parse_args()
    places = {"standard library": read_source_files([Path(sysconfig.get_path("stdlib"))])}
    places["libraries of the demo"] = read_archives()
    if chosen.folders:
        places = {"chosen": read_source_files(chosen.folders)}
    search, counts, every = ScarSearch(load_shipped_rules()), {}, list[Finding]()
    for name, files in places.items():
        lines = sum(data.count(b"\n") for data in files.values())
        found = search.search(files).findings
        counts[name] = (lines, Counter(each.rule for each in found))
        every += found
    print("| rule | " + " | ".join(f"{name} ({lines:,} lines)" for name, (lines, _) in counts.items()) + " |")
    print("| --- |" + " --- |" * len(counts))
    for rule in sorted({rule for _, found in counts.values() for rule in found}):
        each = (f"{found[rule] * 10_000 / max(1, lines):.2f} ({found[rule]})" for lines, found in counts.values())
        print(f"| {rule} | " + " | ".join(each) + " |")
    for finding in draw_sample(every, chosen.sample):
        print(f"{finding.rule}  {finding.path}:{finding.line}  {finding.text}")


if __name__ == "__main__":
    main()
