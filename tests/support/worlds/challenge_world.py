"""A challenge of small tasks, agents that end in each possible way, and a judge on loopback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from support.processes.fake_provider import Received, Step, Tokens, reply
from support.processes.interpreters import PLAIN_PYTHON

TESTS = (
    "from gcd import gcd\n\n\ndef test_a():\n    assert gcd(4, 6) == 2\n\n\ndef test_b():\n    assert gcd(3, 0) == 3\n"
)
GOOD = "def gcd(a, b):\n    return a if b == 0 else gcd(b, a % b)\n"
HALF = "def gcd(a, b):\n    try:\n        return 3\n    except:\n        pass\n"
SCARRED = GOOD + "\n\ndef run(command):\n    try:\n        return eval(command)\n    except:\n        pass\n"
BROKEN = "def gcd(a, b:\n"
FORGED = "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n"
LEAKED = GOOD + f"\nTOKEN = 'sk_live_{'aB3dE5fG7hI9jK1lM3nO5pQ7'}'\n"
WRITES = {"good": GOOD, "half": HALF, "scarred": SCARRED, "broken": BROKEN, "forger": FORGED, "leaker": LEAKED}

UNMETERED = """
allow_unmetered = true
model = "openai:none"
base_url = "http://127.0.0.1:9/v1"
price = "free"
"""

PRINCIPLE = """
[[principle]]
name = "recursion"
description = "The function calls itself until the rest is 0."
zero = '''
def power(base, exponent):
    return 0
'''
one = '''
def power(base, exponent):
    return base if exponent == 1 else base * base
'''
two = '''
def power(base, exponent):
    return 1 if exponent == 0 else base * power(base, exponent - 1)
'''
"""


class ChallengeWorld:
    """Files of a challenge in *root*: `challenge.toml`, `agents.toml`, tasks and scripts."""

    def __init__(self, root: Path, tasks: int = 2) -> None:
        self.root = root
        for number in range(tasks):
            self.write(f"tasks/t{number}/gcd.py", "def gcd(a, b):\n    return 0\n")
            self.write(f"tasks/t{number}/test_gcd.py", TESTS)
        for name, text in WRITES.items():
            call = {"name": "write_file", "arguments": {"path": "gcd.py", "text": text}}
            self.write(f"{name}.jsonl", json.dumps({"tool_calls": [call], "usd": 0.01}) + "\n")
        self.write("rules.md", "Write the shortest function that is right.\n")
        self.write("outsider.py", f"from pathlib import Path\nPath('gcd.py').write_text({GOOD!r})\n")
        self.write("sleeper.py", "import signal\n\nwhile True:\n    signal.pause()\n")

    def write(self, path: str, text: str) -> None:
        """Write *text* into the file *path*."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def challenge(self, *, rollouts: int = 1, more: str = "") -> None:
        """Write the challenge."""
        self.write("challenge.toml", f'name = "small"\ntasks = ["tasks/*"]\nrollouts = {rollouts}\n{more}\n{PRINCIPLE}')

    def agents(self, *names: str, outside: str = "", judge: str = "") -> None:
        """Write the agents *names*, each of which writes one thing; *outside* is a program that is one, too.

        *judge* is the URL of a server that judges, if one does.
        """
        judged = 'gate = "off"\ntest_policy = "on_final"\n'
        tables = [f'[[agent]]\nname = "{name}"\nmodel = "script:{name}.jsonl"\n{judged}' for name in names]
        if outside:
            command = f"{sys.executable} {self.root / outside}.py"
            tables.append(f'[[agent]]\nname = "{outside}"\ncommand = "{command}"{UNMETERED}')
        if judge:
            tables.append(f'[judge]\nmodel = "openai:judge"\nbase_url = "{judge}"\nprice = "1,1"\n')
        self.write("agents.toml", "\n".join(tables))

    def words(self, *more: str) -> tuple[str, ...]:
        """The words of `jumar evolve` for a new campaign."""
        return (
            "evolve", "challenge.toml", "--agents", "agents.toml", "--campaign", "c", "--sandbox", "S0",
            "--confirm", "0", "--python", PLAIN_PYTHON, "--concurrency", "1", "--json", "-q", *more,
        )  # fmt: skip


def judge_recursion(received: Received) -> Step:
    """Mark code by what it does, and quote the line: an honest judge."""
    code = received.body["messages"][-1]["content"]
    lines = [line for line in code.splitlines() if line.strip().startswith("return")] or [" "]
    line = lines[0]
    name = "gcd(" if "gcd" in code else "power("
    mark = 2 if name in line else 1 if "if" in line else 0
    marks = [{"principle": "recursion", "mark": mark, "quotes": [line]}]
    return reply(json.dumps({"marks": marks}), tokens=Tokens(input=1000, cached=900))


def work_by_a_word(received: Received) -> Step:
    """Write what is right if the prompt says how to, else what is wrong: a model whose skill is a word away."""
    messages = received.body["messages"]
    if any(message["role"] == "tool" for message in messages):
        return reply("", ("final", {"message": "done"}))
    text = GOOD if any("recursion" in str(message["content"]) for message in messages) else HALF
    return reply("", ("write_file", {"path": "gcd.py", "text": text}))
