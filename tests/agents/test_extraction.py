"""Whatever a model answers, the right file comes out or a clear refusal: never a guess that parses by luck."""

from __future__ import annotations

import gc
import html
import json
import time
from dataclasses import dataclass, field
from textwrap import dedent

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from jumar.agents.extraction import infer_path
from jumar.agents.extraction.extract import extract

GCD = dedent('''\
    """Numbers."""

    LIMIT = 10


    def gcd(a: int, b: int) -> int:
        """The greatest common divisor."""
        while b:
            a, b = b, a % b
        return a


    def lcm(a: int, b: int) -> int:
        return a * b // gcd(a, b)
    ''')
NOW = GCD.replace("a % b", "a + b")
"""The present file, which is wrong."""
ONE = "def double(x):\n    return x * 2\n"
DOC = '"""Use it.\n\n```\nfrom app import double\n```\n"""\n\n\n' + ONE
DOC_LABELLED = DOC.replace("```\nfrom", "```python\nfrom")
TILDES = '"""Use it.\n\n~~~\ndouble(2)\n~~~\n"""\n\n\n' + ONE
STACK = dedent("""\
    class Stack:
        def __init__(self):
            self.items = []

        def push(self, item):
            self.items.append(item)

        def pop(self):
            return self.items.pop()

        def peek(self):
            return self.items[-1]
    """)
TESTS = "from app import gcd\n\n\ndef test_gcd():\n    assert gcd(4, 6) == 2\n"
JS = "export function double(x) {\n  return x * 2;\n}\n\nexport const half = (x) => x / 2;\n"
JSDOC = "/**\n * ```js\n * double(2);\n * ```\n */\n" + JS
TS = "export interface Point {\n  x: number;\n}\n\nexport function norm(p: Point): number {\n  return p.x;\n}\n"
GO = "package app\n\nfunc Double(x int) int {\n\treturn x * 2\n}\n\nfunc Half(x int) int {\n\treturn x / 2\n}\n"
RUST = "pub fn double(x: i32) -> i32 {\n    x * 2\n}\n\npub fn half(x: i32) -> i32 {\n    x / 2\n}\n"
LOOP = GCD[GCD.index("def gcd") : GCD.index("def lcm")]
EXTRA = "\n\ndef more():\n    return lcm(1, 2)\n"
LESS = "def less(a, b):\n    return a < b and b > 0\n"


def fenced(text: str, label: str = "python", fence: str = "```") -> str:
    return f"{fence}{label}\n{text}{fence}\n"


def block(line: str, label: str = "python") -> str:
    return fenced(f"{line}\n", label)


@dataclass
class Case:
    """A reply, and the text it stands for or a word of the refusal."""

    kind: str
    reply: str
    text: str | None = None
    word: str = ""
    targets: tuple[str, ...] = ("app.py",)
    files: dict[str, str] | None = None
    current: dict[str, str] = field(default_factory=dict)

    @property
    def right(self) -> dict[str, str] | None:
        return self.files or (None if self.text is None else {self.targets[0]: self.text})


def js(kind: str, reply: str, text: str | None = None, word: str = "") -> Case:
    return Case(kind, reply, text, word, targets=("app.js",))


def two(kind: str, reply: str, files: dict[str, str] | None = None, word: str = "") -> Case:
    return Case(kind, reply, word=word, targets=("a.py", "pkg/b.py"), files=files)


def gcd(kind: str, reply: str, text: str | None = None, word: str = "") -> Case:
    return Case(kind, reply, text, word, current={"app.py": NOW})


def known(kind: str, reply: str, files: dict[str, str] | None = None, word: str = "") -> Case:
    now = {"a.py": "A = 0\n", "pkg/b.py": "B = 0\n"}
    return Case(f"known, {kind}", reply, word=word, targets=("a.py", "pkg/b.py"), files=files, current=now)


BOTH = {"a.py": "A = 1\n", "pkg/b.py": "B = 2\n"}
A, B = fenced("A = 1\n"), fenced("B = 2\n")
DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return x\n+    return x * 2\n"
BLOCK = "app.py\n<<<<<<< SEARCH\n    return x\n=======\n    return x * 2\n>>>>>>> REPLACE\n"
INDENTED = "".join(f"   {line}\n" for line in fenced(ONE).splitlines())

CORPUS = [
    # fences
    Case("a fence", fenced(ONE), ONE),
    Case("a fence without a label", fenced(ONE, ""), ONE),
    Case("prose before and after", f"Here is the fix:\n\n{fenced(ONE)}\nIt doubles `x` now.", ONE),
    Case("prose that touches the fence", f"Fixed.\n{fenced(ONE)}Done.", ONE),
    Case("tildes", fenced(ONE, fence="~~~"), ONE),
    Case("a longer fence", fenced(ONE, fence="`````"), ONE),
    Case("a longer closing fence", f"```python\n{ONE}``````\n", ONE),
    Case("a fence closed by tildes", f"```python\n{ONE}~~~\n", word="closed"),
    Case("label in capitals", fenced(ONE, "Python"), ONE),
    Case("label py3", fenced(ONE, "py3"), ONE),
    Case("space before the label", fenced(ONE, " python "), ONE),
    Case("spaces after the closing fence", f"```python\n{ONE}```   \n", ONE),
    Case("no newline at the end of the reply", fenced(ONE).rstrip(), ONE),
    Case("spaces at the ends of lines are the file's", fenced("X = 1  \nY = 2\t\n"), "X = 1  \nY = 2\t\n"),
    Case("a fence in a list", f"1. Replace the file:\n\n{INDENTED}\n2. Run the tests.\n", ONE),
    Case("a fence in a list whose code leaves the list", f"1. Replace:\n\n   ```python\n{ONE}```\n", word="closed"),
    Case("a fence in a quotation", "".join(f"> {line}\n" for line in fenced(ONE).splitlines()), ONE),
    Case("a fence after a tag", f"<answer>\n{fenced(ONE)}</answer>\n", ONE),
    Case("a fence that is indented as code", "".join(f"    {x}\n" for x in fenced(ONE).splitlines()), word="no fenced"),
    Case("an empty fence", fenced(""), word="empty"),
    Case("a fence with blank lines", fenced("\n  \n"), word="empty"),
    Case("an empty reply", "", word="empty"),
    Case("a reply of blanks", " \n\n", word="empty"),
    # fences in the file
    Case("fences in a docstring, longer outside", fenced(DOC, fence="````"), DOC),
    Case("tildes outside, backticks inside", fenced(DOC, fence="~~~"), DOC),
    Case("tildes inside", fenced(TILDES), TILDES),
    Case("fences in a docstring, equal outside", f"Here:\n\n{fenced(DOC)}\nThat is all.", DOC),
    Case("labelled fences in a docstring, equal outside", fenced(DOC_LABELLED), DOC_LABELLED),
    Case(
        "fences in an indented docstring",
        fenced(f'def f():\n{DOC_LABELLED[:3]}\n    ```\n    f()\n    ```\n    """\n'),
        word="not Python",
    ),
    Case(
        "two fences inside, equal outside",
        fenced(DOC + DOC.replace("double", "twice")),
        DOC + DOC.replace("double", "twice"),
    ),
    Case("fences in a docstring, cut in the docstring", fenced(DOC)[:40], word="not Python"),
    Case("raw code with fences in its docstring", DOC, DOC),
    js("raw code with a fence in its comment", JSDOC, JSDOC),
    js("fenced code with a fence in its comment", fenced(JSDOC, "js"), JSDOC),
    # raw
    Case("raw code", ONE, ONE),
    Case("raw code without a last newline", ONE.rstrip(), ONE),
    Case("raw code with a shebang", "#!/usr/bin/env python3\n" + ONE, "#!/usr/bin/env python3\n" + ONE),
    js("raw JavaScript", JS, JS),
    Case("raw Go", GO, GO, targets=("app.go",)),
    Case("raw Rust", RUST, RUST, targets=("src/app.rs",)),
    Case("raw JSON", '{"a": 1}\n', '{"a": 1}\n', targets=("app.json",)),
    Case("a word of JSON", '"Done"', word="no fenced", targets=("app.json",)),
    Case("raw text for a language without a parser", "key: value\n", word="no fenced", targets=("app.yaml",)),
    Case("prose before raw code", "Here is the code:\n\n" + ONE, word="no fenced"),
    Case("prose after raw code", ONE + "\nThis doubles x.\n", word="no fenced"),
    Case("one word after raw code", ONE + "\nDone\n", word="no fenced"),
    Case("a word before raw code", "python\n" + ONE, word="no fenced"),
    *(
        Case("prose that parses", said, word="no fenced")
        for said in (
            "Done",
            "fixed",
            "Done\n",
            "not fixed",
            "ok",
            "pass",
            "Note: fixed",
            "None",
            "42",
            "it is done",
            "yes and no",
            "Fixed: bug\nDone: yes",
            "...",
            "# Done",
            '"Done"\n...',
            "a, b",
            "raise hell",
            "Answer: x = 3",
        )
    ),
    js("a word that parses", "Done\n", word="no fenced"),
    js("a label that parses", "Fixed: it\n", word="no fenced"),
    Case("prose without code", "I could not find the bug. Could you show me the tests?", word="no fenced"),
    Case("prose with code in a line", "Change `return x` to `return x * 2`.", word="no fenced"),
    Case("a refusal", "I'm sorry, but I can't help with that.", word="no fenced"),
    Case("a word in a fence", fenced("Done\n", ""), word="no code"),
    # cut off
    Case("a fence never closed", f"Here:\n```python\n{ONE}", word="closed"),
    Case("cut in a function", f"```python\n{ONE}\ndef half(x", word="closed"),
    Case("cut, then closed", fenced(ONE + "\ndef half(x\n"), word="not Python"),
    Case("cut in a string, then closed", fenced(ONE + 'X = "ab\n'), word="not Python"),
    js("cut JavaScript, then closed", fenced(JS + "function more() {\n", "js"), word="not JavaScript"),
    Case("cut Rust, then closed", fenced(RUST + "fn more() {\n", "rust"), word="not Rust", targets=("app.rs",)),
    Case("cut JSON", fenced('{"a": 1,\n', "json"), word="not JSON", targets=("app.json",)),
    Case("the second fence never closed", f"{fenced(ONE)}\nAnd the tests:\n```python\nimport app", word="closed"),
    *(
        Case("a comment for what is left out", fenced(f"{ONE}\n{rest}\n"), word="left out")
        for rest in (
            "# ... rest unchanged",
            "# rest of the code here",
            "# ...",
            "# … existing code …",
            "# (rest of the file)",
            "# other functions remain unchanged",
            "# Rest of the implementation stays the same",
            "# same as before",
            "# existing code",
            "# remaining methods omitted for brevity",
            "# your code here",
            "# unchanged",
            "# [the rest of the file is unchanged]",
            "# --- existing code ---",
            "# ... (keep the other functions)",
        )
    ),
    Case(
        "a comment in a body",
        fenced(f"{ONE}\ndef half(x):\n    # ... existing implementation ...\n    pass\n"),
        word="left out",
    ),
    js("a comment for what is left out", fenced(JS + "// ... existing code ...\n", "js"), word="left out"),
    js(
        "a comment block for what is left out", fenced(JS + "/* rest of the file unchanged */\n", "js"), word="left out"
    ),
    Case(
        "Go with a comment for what is left out",
        fenced(GO + "// rest of the code here\n", "go"),
        word="left out",
        targets=("app.go",),
    ),
    Case(
        "Rust with a comment for what is left out",
        fenced(RUST + "// ... unchanged ...\n", "rust"),
        word="left out",
        targets=("app.rs",),
    ),
    *(
        Case("an honest comment", fenced(f"{ONE}\n{note}\nX = 1\n"), f"{ONE}\n{note}\nX = 1\n")
        for note in (
            "# Read the file...",
            "# Check the types...",
            "# Parse the content...",
            "# Skip the remaining lines of this file...",
            "# loading...",
            "# ...then the body is parsed",
        )
    ),
    *(
        Case("a comment beside code", fenced(f"{ONE}\n{line}\n"), f"{ONE}\n{line}\n")
        for line in (
            "X = 1  # unchanged",
            "X = 1  # as before",
            "X = 1  # truncated",
            "def f(x):  # unchanged\n    return x",
            "X = [  # as before\n    1,\n]",
        )
    ),
    *(
        Case("a comment beside nothing", fenced(f"{ONE}\n{line}\n"), word="left out")
        for line in (
            "def f(x):\n    pass  # unchanged",
            "def f(x): pass  # existing code here",
            "def f(x): ...  # as before",
            "def f(x):  # unchanged\n    pass",
            "X = [  # ... rest unchanged\n]",
            "# ... rest of the code unchanged",
            "# existing code here",
            "# ... rest of the Stack class is unchanged",
            "# other functions...",
            "# code...",
            "# your code here...",
            "# ... helper functions ...",
        )
    ),
    js(
        "a comment beside JavaScript",
        fenced(JS + "const X = 1; // unchanged\n", "js"),
        JS + "const X = 1; // unchanged\n",
    ),
    js("a comment in an empty body", fenced(JS + "function more() { /* existing code */ }\n", "js"), word="left out"),
    js("a comment after a brace", fenced(JS + "function more() { // as before\n}\n", "js"), word="left out"),
    js("dots in a comment", fenced(JS + "// ...\n", "js"), word="left out"),
    Case("dots at the top", fenced(f"{ONE}\n...\n"), word="left out"),
    Case("dots in a body", fenced("def f(x):\n    y = 1\n    ...\n    return y\n"), word="left out"),
    gcd("dots for a body that is there", fenced(GCD.replace("    return a * b // gcd(a, b)", "    ...")), word="`...`"),
    Case(
        "dots for a body of a protocol",
        fenced("class P:\n    def f(self) -> int: ...\n"),
        "class P:\n    def f(self) -> int: ...\n",
    ),
    Case(
        "a comment about a rest",
        fenced(f"# the rest of the list is sorted\n{ONE}# same order as the input\n"),
        f"# the rest of the list is sorted\n{ONE}# same order as the input\n",
    ),
    Case(
        "a comment the file has",
        fenced(f"# rest of the code here\n{ONE}"),
        f"# rest of the code here\n{ONE}",
        current={"app.py": f"# rest of the code here\n{ONE}"},
    ),
    Case("the words in a string", fenced('REST = "# ... rest unchanged"\n'), 'REST = "# ... rest unchanged"\n'),
    # halves
    gcd("the whole file", fenced(GCD), GCD),
    gcd(
        "half a file whose other half it needs",
        "Here's the fixed version:\n" + fenced(GCD[GCD.index("def lcm") :]),
        word="uses gcd",
    ),
    gcd(
        "half a file",
        f"Here's the fixed version:\n{fenced(GCD[GCD.index('def gcd') : GCD.index('def lcm')])}",
        word="LIMIT, lcm",
    ),
    gcd(
        "half a file, said so",
        f"I removed `LIMIT` and `lcm`.\n{fenced(GCD[GCD.index('def gcd') : GCD.index('def lcm')])}",
        GCD[GCD.index("def gcd") : GCD.index("def lcm")],
    ),
    gcd("a constant less", fenced(GCD.replace("LIMIT = 10\n\n\n", "")), GCD.replace("LIMIT = 10\n\n\n", "")),
    Case(
        "a class without the methods it uses",
        fenced("class Stack:\n    def top(self):\n        return self.pop()\n"),
        word="Stack.pop",
        current={"app.py": STACK},
    ),
    Case(
        "a class with one of its methods",
        fenced("class Stack:\n    def push(self, item):\n        self.items += [item]\n"),
        word="peek",
        current={"app.py": STACK},
    ),
    Case(
        "an import left out",
        fenced("def now():\n    return time.time()\n"),
        word="uses time",
        current={"app.py": "import time\n\n\ndef now():\n    return time.time\n"},
    ),
    Case("a body without its function", fenced("return x * 2\n"), word="not Python"),
    Case(
        "half of JavaScript",
        fenced(JS[: JS.index("export const")], "js"),
        word="half",
        targets=("app.js",),
        current={"app.js": JS},
    ),
    Case(
        "half of Go",
        fenced(GO[: GO.index("func Half")], "go"),
        word="Half",
        targets=("app.go",),
        current={"app.go": GO},
    ),
    Case("Go without its package", fenced(GO.partition("\n\n")[2], "go"), word="not Go", targets=("app.go",)),
    Case(
        "half of Rust",
        fenced(RUST[: RUST.index("pub fn half")], "rust"),
        word="half",
        targets=("app.rs",),
        current={"app.rs": RUST},
    ),
    Case(
        "half of a table",
        fenced('{"a": 1}\n', "json"),
        word="b, c",
        targets=("app.json",),
        current={"app.json": '{"a": 0, "b": 2, "c": 3}'},
    ),
    Case("the present file does not parse", fenced(ONE), ONE, current={"app.py": "def broken(:\n"}),
    # another language, another thing
    Case("JavaScript for Python", fenced(JS, "javascript"), word="labelled javascript"),
    Case("JavaScript labelled as Python", fenced(JS), word="not Python"),
    Case("JavaScript without a label", fenced(JS, ""), word="not Python"),
    js("Python for JavaScript", fenced(ONE), word="labelled python"),
    js("Python labelled as JavaScript", fenced(ONE, "js"), word="not JavaScript"),
    js("Python that parses as JavaScript", fenced('print("hi")\n'), word="labelled python"),
    js("TypeScript labelled as JavaScript", fenced(TS, "js"), word="not JavaScript"),
    Case("TypeScript", fenced(TS, "ts"), TS, targets=("app.ts",)),
    Case(
        "TSX",
        fenced("export const App = () => <b>hi</b>;\n", "tsx"),
        "export const App = () => <b>hi</b>;\n",
        targets=("App.tsx",),
    ),
    Case("YAML", fenced("a: 1\n", "yaml"), "a: 1\n", targets=("app.yaml",)),
    Case("Python for YAML", fenced(ONE), word="labelled python", targets=("app.yaml",)),
    Case(
        "Markdown with a fence inside",
        fenced("# App\n\n```sh\nmake\n", "markdown"),
        word="ends",
        targets=("README.md",),
    ),
    Case(
        "Markdown in a longer fence",
        fenced("# App\n\n```\nmake\n```\n", "markdown", "````"),
        "# App\n\n```\nmake\n```\n",
        targets=("README.md",),
    ),
    Case("a Makefile", "`Makefile`:\n" + fenced("all:\n\techo\n", "make"), "all:\n\techo\n", targets=("Makefile",)),
    Case("a command beside the code", f"{block('pip install x', 'bash')}\n{fenced(ONE)}", ONE),
    Case("only a command", "Run this:\n```bash\npip install numpy\n```\n", word="labelled bash"),
    Case("an output without a label beside the code", f"{fenced(ONE)}\nIt prints:\n{block('4', '')}", word="2 fenced"),
    gcd("an output beside the known file", f"{fenced(GCD)}\nIt prints:\n{block('4', '')}", GCD),
    gcd("an example beside the known file", f"{fenced(GCD)}\nUse it:\n{block('print(gcd(4, 6))')}", GCD),
    gcd(
        "an example and a broken file",
        f"{block('def gcd(a, b:')}\nUse it:\n{block('print(gcd(4, 6))')}",
        word="not Python",
    ),
    gcd("an example alone", fenced("from app import gcd\n\nprint(gcd(4, 6))\n"), word="example"),
    Case("tests for the implementation", fenced(TESTS), word="tests"),
    Case("tests and their fixture", fenced("import pytest\n\n\ndef test_a():\n    assert 1\n"), word="tests"),
    js(
        "JavaScript tests",
        fenced('import { double } from "./app";\n\ntest("a", () => {\n  expect(double(1)).toBe(2);\n});\n', "js"),
        word="tests",
    ),
    Case("tests for a file of tests", fenced(TESTS), TESTS, targets=("test_app.py",)),
    # edits
    Case("a diff", fenced(DIFF, "diff"), word="diff"),
    Case("a diff in a fence for Python", fenced(DIFF), word="diff"),
    Case("a raw diff", DIFF, word="diff"),
    Case("a diff beside the code", f"{fenced(DIFF, 'diff')}\nThe whole file:\n{fenced(ONE)}", ONE),
    Case("plus and minus", fenced("-double(1)\n+double(2)\n"), word="diff"),
    Case("plus and minus that do not parse", fenced("+def double(x):\n+    return x * 2\n"), word="diff"),
    Case("a diff for YAML", fenced(DIFF, "yaml"), word="diff", targets=("app.yaml",)),
    Case("a search/replace block", BLOCK, word="search/replace"),
    Case("a search/replace block in a fence", fenced(BLOCK), word="search/replace"),
    Case("lines of the file, quoted", f"```12:40:app.py\n{ONE}```\n", word="range"),
    # wrapped
    Case("escaped", fenced(html.escape(LESS, quote=False)), LESS),
    Case("escaped, quotes as well", fenced(html.escape('S = "a" < "b"\n')), 'S = "a" < "b"\n'),
    Case("escaped twice", fenced(html.escape(html.escape(LESS))), word="entities"),
    Case("escaped in part", fenced("A = a &lt; b\nB = 1 < 2\n"), word="entities"),
    Case("escaped, and it parses", fenced('TAG = "&lt;b&gt;"\n'), word="entities"),
    Case(
        "entities beside special characters",
        fenced('def e(s) -> str:\n    return s.replace("<", "&lt;")\n'),
        'def e(s) -> str:\n    return s.replace("<", "&lt;")\n',
    ),
    js("escaped JavaScript", fenced("const f = (a, b) =&gt; a &amp;&amp; b;\n", "js"), "const f = (a, b) => a && b;\n"),
    Case("CRLF", fenced(ONE).replace("\n", "\r\n"), ONE),
    Case(
        "CRLF, as the file has it",
        fenced(ONE),
        ONE.replace("\n", "\r\n"),
        current={"app.py": ONE.replace("\n", "\r\n")},
    ),
    Case("LF, as the file has it", fenced(ONE).replace("\n", "\r\n"), ONE, current={"app.py": ONE}),
    Case("BOM before the reply", "\ufeff" + fenced(ONE), ONE),
    Case("BOM before raw code", "\ufeff" + ONE, ONE),
    Case("BOM in the fence", fenced("\ufeff" + ONE), ONE),
    Case("BOM, as the file has it", fenced(ONE), "\ufeff" + ONE, current={"app.py": "\ufeff" + ONE}),
    Case("a zero-width space in the code", fenced(ONE.replace("x * 2", "x *\u200b 2")), word="U+200B"),
    js("a zero-width space in JavaScript", fenced(JS.replace("x * 2", "x *\u200b 2"), "js"), word="U+200B"),
    Case("a zero-width space before the reply", "\u200b" + fenced(ONE), ONE),
    Case("a zero-width space in a string", fenced('X = "\u200b"\n'), 'X = "\u200b"\n'),
    Case("a NUL", fenced(ONE + "\0\n"), word="NUL"),
    Case("a lone surrogate", fenced("X = '\ud800'\n"), word="Unicode"),
    Case("JSON around the code", json.dumps({"code": ONE}), word="no fenced"),
    Case(
        "JSON around the code, fenced",
        fenced(json.dumps({"path": "app.py", "content": ONE}) + "\n", "json"),
        word="json",
    ),
    Case("JSON around the code, labelled as Python", fenced(json.dumps({"code": ONE}) + "\n"), word="no code"),
    Case("JSON around JSON", json.dumps({"path": "app.json", "content": "{}"}), word="wrapped", targets=("app.json",)),
    Case("reasoning before the answer", f"<think>\nFirst try:\n{block('X = 1')}</think>\n\n{fenced(ONE)}", ONE),
    Case("reasoning with an open fence", f"<think>\n```python\ndef\n</think>\n{fenced(ONE)}", ONE),
    Case("reasoning before raw code", f"<thinking>x = 1?</thinking>\n{ONE}", ONE),
    Case("reasoning that never ends", f"<think>\nFirst try:\n{fenced(ONE)}", word="reasoning"),
    Case("reasoning without its first tag", f"First:\n{block('X = 1')}</think>\n{fenced(ONE)}", ONE),
    Case("reasoning that ends twice", f"<think>a</think>\n{block('X = 1')}</think>\n{fenced(ONE)}", word="ends"),
    Case("the tag in the file", fenced('TAG = """\n</think>\n"""\n'), 'TAG = """\n</think>\n"""\n'),
    # names
    Case("the same text twice", f"{fenced(ONE)}\nAgain:\n{fenced(ONE)}", ONE),
    Case("a draft and a correction", f"{block('X = 1')}\nWait, rather:\n{block('X = 2')}", word="2 fenced"),
    Case("a draft and a correction, named", f"`app.py`\n{A}\nNo:\n\n`app.py`\n{B}", word="2 different"),
    Case(
        "a correction of a part",
        f"`app.py`\n{fenced(GCD)}\nAnd now:\n\n{block('def lcm(a, b): return 1')}",
        word="again",
    ),
    Case("a quotation of the named file", f"`app.py`\n{fenced(GCD)}\nThe change:\n\n{fenced(LOOP)}", GCD),
    Case("a quotation of the file", f"{fenced(GCD)}\nThe change:\n{fenced(LOOP)}", GCD),
    gcd("a quotation of the known file", f"The change:\n{fenced(LOOP)}\nThe file:\n{fenced(GCD)}", GCD),
    gcd("a quotation of a line", f"{fenced(GCD)}\nThe change:\n{block('        a, b = b, a % b')}", GCD),
    gcd("a file and the file without its end", f"{fenced(GCD + EXTRA)}\nShorter:\n{fenced(GCD)}", word="2 fenced"),
    Case("an unknown file and its beginning", f"{fenced(GCD + EXTRA)}\nShorter:\n{fenced(GCD)}", word="2 fenced"),
    gcd("a correction beside the file", f"{fenced(GCD)}\nNow:\n{fenced(LOOP.replace('%', '-'))}", word="2 fenced"),
    Case(
        "a file that imports another which is not asked for",
        f"`app.py`\n{fenced('from helpers import A' + chr(10) + ONE)}\n`helpers.py`\n{A}",
        word="helpers.py is not among the files",
    ),
    Case("named for another file", f"`helpers.py`:\n{fenced(ONE)}", word="app.py"),
    Case("named twice over", f"`app.py`:\n{fenced(ONE, 'python helpers.py')}", word="at once"),
    Case("another file beside it", f"`helpers.py`:\n{A}\n`app.py`:\n{fenced(ONE)}", ONE),
    Case("a sentence about another file", f"This makes `test_app.py` pass:\n{fenced(ONE)}", ONE),
    Case("a path below a folder by its name", f"**app.py**\n{fenced(ONE)}", ONE, targets=("src/app.py",)),
    Case("a name that two targets end in", f"`b.py`\n{B}", word="preceded", targets=("x/b.py", "y/b.py")),
    two("two files", f"`a.py`\n{A}\n`pkg/b.py`\n{B}", BOTH),
    two("bold", f"**a.py**\n\n{A}\n**pkg/b.py**\n\n{B}", BOTH),
    two("headings", f"### a.py\n\nIt counts.\n\n{A}\n### `pkg/b.py`\n\n{B}", BOTH),
    two("numbered headings", f"## 1. `a.py`\n{A}\n## 2. `pkg/b.py`\n{B}", BOTH),
    two("File:", f"File: a.py\n{A}\nFile: `pkg/b.py`\n{B}", BOTH),
    two("sentences", f"Here's the updated `a.py`:\n{A}\nAnd the new pkg/b.py:\n{B}", BOTH),
    two("titles", block("A = 1", 'python title="a.py"') + block("B = 2", "py pkg/b.py"), BOTH),
    two("colons", f"{block('A = 1', 'python:a.py')}{block('B = 2', 'pkg/b.py')}", BOTH),
    two(
        "first comments",
        fenced("# a.py\nA = 1\n") + fenced("# File: pkg/b.py\nB = 2\n"),
        {"a.py": "# a.py\nA = 1\n", "pkg/b.py": "# File: pkg/b.py\nB = 2\n"},
    ),
    two(
        "list items",
        f"- `a.py`\n\n{''.join(f'  {x}{chr(10)}' for x in A.splitlines())}\n- `pkg/b.py`\n\n"
        f"{''.join(f'  {x}{chr(10)}' for x in B.splitlines())}",
        BOTH,
    ),
    two("Windows paths", f".\\a.py\n{A}\n`pkg\\b.py`\n{B}", BOTH),
    two("one of them", f"`pkg/b.py`\n{B}", {"pkg/b.py": "B = 2\n"}),
    two("an unknown one beside them", f"`c.py`\n{A}\n`pkg/b.py`\n{B}", {"pkg/b.py": "B = 2\n"}),
    two("no names", A + B, word="preceded"),
    two("raw code for one of two", ONE, word="path"),
    two("tests of one of them", f"Tests for a.py:\n{A}", word="preceded"),
    two("the first without a name", f"{A}\n`pkg/b.py`\n{B}", word="without a name could be a.py"),
    two("one of them alone", f"`pkg/b.py`\n{B}", {"pkg/b.py": "B = 2\n"}),
    two("one of them and a command", f"{block('make', 'sh')}\n`pkg/b.py`\n{B}", {"pkg/b.py": "B = 2\n"}),
    two("one of them and what it prints", f"`pkg/b.py`\n{B}\n{block('it is 2', '')}", {"pkg/b.py": "B = 2\n"}),
    two("one of them and its use", f"`pkg/b.py`\n{B}\n{block('print(B)')}", {"pkg/b.py": "B = 2\n"}),
    two("one of them in another folder", f"`src/a.py`\n{A}\n`pkg/b.py`\n{B}", word="src/a.py is not among the files"),
    known("the first without a name", f"{A}\n`pkg/b.py`\n{B}", word="without a name could be a.py"),
    known("one of them and an example", f"`pkg/b.py`\n{B}\n{block('C = B + 1')}", {"pkg/b.py": "B = 2\n"}),
    known("the first under a wrong name", f"`aa.py`\n{A}\n`pkg/b.py`\n{B}", word="aa.py is not among the files"),
    known("tests beside one", f"`test_b.py`\n{fenced(TESTS)}\n`pkg/b.py`\n{B}", {"pkg/b.py": "B = 2\n"}),
    known("one block without a path that defines a name of a file", B, {"pkg/b.py": "B = 2\n"}),
    known("one block without a path and a command", f"{block('make', 'sh')}\n{B}", {"pkg/b.py": "B = 2\n"}),
    known("two blocks without a path", f"{B}\n{block('B = 3')}", word="preceded"),
    known("one block that could be both", block("A = B = 2"), word="could be a.py or pkg/b.py"),
    known("one block that could be neither", block("C = 2"), word="one of a.py, pkg/b.py: write the path"),
    known("one block that is labelled as something else", block("B = 2", "sh"), word="preceded"),
    known("one block under a strange name", f"`c.py`\n{B}", word="preceded"),
    known("half a block without a path", "```python\nB = 2\n", word="closed"),
    two("one of them broken", f"`a.py`\n{A}\n`pkg/b.py`\n{block('def (')}", word="pkg/b.py is not Python"),
    two("one of them cut off", f"`a.py`\n{A}\n`pkg/b.py`\n```python\nB = 2\n", word="closed"),
]


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.kind.replace(" ", "-"))
def test_the_right_file_or_a_clear_refusal(case: Case) -> None:
    found = extract(case.reply, case.targets, case.current or None)
    if case.right is not None:
        assert found == case.right
    else:
        assert isinstance(found, str), "a refusal is a sentence"
        assert case.word in found
        assert 10 < len(found) < 400


IMPORTING = {
    "tests/test_b.py": "from pkg.b import total\nimport a as first\n\n\ndef test_b():\n    first.mean([total([1])])\n",
    "tests/test_c.py": "from pkg import c\nimport pkg.d\n\n\ndef test_c():\n    c.count(pkg.d.size())\n",
    "tests/broken.py": "def (:\n",
    "tests/test_js.js": "import { total } from '../pkg/b.js'\n",
}
PATHS = ("a.py", "pkg/b.py", "pkg/c.py", "pkg/d.py", "pkg/__init__.py")


def test_the_names_that_tests_import_from_each_file_are_known() -> None:
    assert infer_path.collect_test_imports(IMPORTING, PATHS) == {
        "a.py": {"mean"},
        "pkg/b.py": {"total"},
        "pkg/c.py": {"count"},
        "pkg/d.py": {"size"},
        "pkg/__init__.py": {"c"},
    }


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("def total(x):\n    return sum(x)\n", "pkg/b.py"),
        ("def mean(x):\n    return sum(x) / len(x)\n", "a.py"),
        ("def size():\n    return 1\n", "pkg/d.py"),
    ],
)
def test_a_single_fence_without_a_path_is_the_file_that_the_tests_import_its_names_from(text: str, path: str) -> None:
    imported = infer_path.collect_test_imports(IMPORTING, PATHS)

    assert extract(fenced(text), PATHS, {}, imported) == {path: text}
    assert "preceded" in extract(fenced(text + "\n\ndef count(x):\n    return x\n"), PATHS, {}, imported)


def test_the_corpus_is_what_it_claims_to_be() -> None:
    assert len(CORPUS) >= 60
    assert all((case.right is None) == bool(case.word) for case in CORPUS)


PROSE = st.sampled_from(
    ["Here is the fix:", "Done.", "I changed the loop.", "", "Note: see `gcd`.", "fixed", "1. First", "> ok", "</b>"]
)  # fmt: skip
NAMES = st.sampled_from(["f", "g", "value", "Total"])
LINES = st.sampled_from(
    ["```", "```python", "~~~", "~~~~ js", "x = 1", "", "    ```", "text, more", "`````", "# no", "\\"]
)
DOCSTRINGS = st.lists(LINES, max_size=6).map(
    lambda lines: '"""A\n' + "\n".join(lines).replace("\\", "\\\\") + '\n"""\n'
)
STATEMENTS = st.one_of(
    st.builds("{} = {}\n".format, NAMES, st.integers(0, 99)),
    st.builds(
        lambda name, doc: f"def {name}(x):\n    " + doc.replace("\n", "\n    ").rstrip(" ") + "    return x\n",
        NAMES,
        DOCSTRINGS,
    ),
    st.builds("class {}:\n    value = {!r}\n".format, NAMES, st.text(st.characters(codec="utf-8"), max_size=8)),
    st.sampled_from(["import os  \n", "\n", "\t\n", "if True:\n    pass\n", "# a comment\n", "X: int = 3\n"]),
)
FILES = st.builds(
    lambda doc, body: doc + "".join(body),
    st.one_of(st.just(""), DOCSTRINGS),
    st.lists(STATEMENTS, min_size=1, max_size=6),
).filter(lambda text: any(word in text for word in ("=", "import", "def ", "class ")))


def longest_run(text: str) -> int:
    return max((len(run) for char in "`~" for run in text.replace("\n", " ").split() if set(run) == {char}), default=0)


def answered(text: str, before: str, after: str) -> str:
    fence = "`" * max(3, 1 + max(longest_run(text), *(text.count("`" * n) and n for n in range(3, 9))))
    return f"{before}\n\n{fence}python\n{text}{fence}\n\n{after}\n"


@pytest.mark.slow
@given(FILES, PROSE, PROSE)
@settings(deadline=None)
def test_any_file_in_a_long_enough_fence_comes_back_byte_for_byte(text: str, before: str, after: str) -> None:
    assume("\0" not in text and "\r" not in text)
    assert extract(answered(text, before, after), ("app.py",)) == {"app.py": text}


@pytest.mark.slow
@given(FILES, PROSE, st.data())
@settings(deadline=None)
def test_a_reply_that_is_cut_anywhere_gives_the_file_or_nothing(text: str, before: str, data: st.DataObject) -> None:
    reply = answered(text, before, "That is all.")
    for at in data.draw(st.lists(st.integers(0, len(reply)), min_size=5, max_size=10)):
        found = extract(reply[:at], ("app.py",))
        assert found == {"app.py": text} or isinstance(found, str)


FENCED = [case for case in CORPUS if case.right and "raw" not in case.kind and "first tag" not in case.kind]
"""But for raw code, and reasoning that its end alone tells from an answer: there a beginning can be a right reply."""


@pytest.mark.slow
@pytest.mark.parametrize("case", FENCED, ids=lambda case: case.kind.replace(" ", "-"))
def test_no_beginning_of_a_right_reply_is_another_file(case: Case) -> None:
    assert case.right is not None
    step = max(1, len(case.reply) // 25)
    for at in range(0, len(case.reply), step):
        found = extract(case.reply[:at], case.targets, case.current or None)
        assert isinstance(found, str) or found.items() <= case.right.items()


PIECES = st.lists(
    st.sampled_from(["```", "```python\n", "~~~", "\n", "x = 1", "<think>", "</think>", "&lt;", "- ", "> ", "    ",
                     "# a.py\n",
                     "\r", "\0", "\ufeff", "def f():", '"""', "@@", "(", "...", "12:3:a.py",
                     "`a.py`", "{", "package a\n"]),
    max_size=30,
).map("".join)  # fmt: skip


@pytest.mark.slow
@given(
    st.one_of(st.text(max_size=200), PIECES),
    st.sampled_from(["a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.rs", "a.json", "a.toml", "a"]),
)
@settings(deadline=None)
@example("```\n", "a.py")
@example("[" * 5000, "a.json")
@example("a = " + "[" * 5000, "a.toml")
@example("-" * 20000 + "1", "a.py")
@example("x = 1\n" + "if x:\n    pass\n" + "elif x:\n    pass\n" * 1200, "a.py")
@example("f" + "(1)" * 3000, "a.js")
def test_no_text_is_too_much(text: str, target: str) -> None:
    for known in (None, {target: text}):
        assert isinstance(extract(text, (target,), known), dict | str)


@pytest.mark.slow
def test_many_blocks_beside_large_files_take_no_time() -> None:
    large = "".join(f"def f{n}():\n    return {n}\n" for n in range(2_000))
    current = {"a.py": large, "b.py": large}
    start = time.process_time()
    found = extract(f"`b.py`\n{fenced(large)}\n" + block("x = 1") * 500, ("a.py", "b.py"), current)

    assert found == {"b.py": large}
    assert time.process_time() - start < 3


def test_a_comment_of_the_words_of_an_omission_takes_no_time() -> None:
    start = time.process_time()
    for words in ("same ", "unchanged ", "the ", "... same ", "keep the "):
        text = f"{ONE}# {words * 60}x\n"
        assert isinstance(extract(fenced(text), ("app.py",)), dict | str)

    assert time.process_time() - start < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", ["app.py", *(pytest.param(name, marks=pytest.mark.proof) for name in ("app.js", "app.yaml"))]
)
@pytest.mark.parametrize(
    "piece", ["- a\n", "> ", "```\n", "`a` *b* [c](d) <e>\n", "&lt;", "# ... a b c\n", "</think>\n"]
)
def test_the_time_is_linear(target: str, piece: str) -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        extract(piece * (size // len(piece)), (target,), {target: "x = 1\n"})
        return time.process_time() - start

    gc.disable()  # a collection of all that this process holds costs more than the text does
    try:
        few, many = (min(seconds(size) for _ in range(2)) for size in (2_500, 20_000))
    finally:
        gc.enable()
    assert many < 20 * few + 0.3, "eight times the text takes about eight times as long"
