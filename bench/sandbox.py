"""What is possible in each tier, as the table of docs/sandbox.md: all probes, as root and as ordinary users.

Run as `python bench/sandbox.py`, as root: only root can try it as others too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from jumar.sandbox.probes.catalogue import PROBES
from support.processes import other_users as strangers

COLUMNS = (
    ("S3", "root", ("env",)),
    ("S3", "user", strangers.ORDINARY),
    ("S2", "root", ("env",)),
    ("S2", "user", strangers.ORDINARY),
    ("S2", "user, no namespaces", strangers.SECLUDED),
    ("S1", "root", ("env",)),
    ("S0", "root", ("env",)),
    ("S0", "user", strangers.ORDINARY),
)

SURVEY = """
import anyio, json, os, sys
from pathlib import Path
from jumar.runs.setup.choose_sandbox import survey_sandboxes
from jumar.sandbox.unconfined import Unconfined
from jumar.process.sandbox_probe import probe_sandbox
place, environ = Path(sys.argv[1]), dict(os.environ)
found = {f.candidate: f.possible for f in anyio.run(survey_sandboxes, place, environ) if f.tier}
print(json.dumps({**found, "S0": anyio.run(probe_sandbox, Unconfined(), place, environ).possible}))
"""


def main() -> None:
    """Print the table."""
    with strangers.stranger() as stranger:
        ways = {manner: json.loads(stranger.run(manner, SURVEY)) for manner in {way for _, _, way in COLUMNS}}
    columns = [ways[way][tier] for tier, _, way in COLUMNS]
    print("| probe | would be | " + " | ".join(f"{tier} {who}" for tier, who, _ in COLUMNS) + " |")
    print("| --- " * (len(COLUMNS) + 2) + "|")
    for name, said in PROBES.items():
        print(f"| `{name}` | {said} | " + " | ".join("x" if name in column else "" for column in columns) + " |")
    print("| | possible | " + " | ".join(f"{len(column)} of {len(PROBES)}" for column in columns) + " |")


if __name__ == "__main__":
    main()
