"""What a command runs judges, through build files and scripts; what these compile, lint or are given does not."""

from __future__ import annotations

import pytest

from jumar.task.command_files import find_files_run

LONG = "SH = sh\nDIR := scripts\nS = $(DIR)/check.sh\n.PHONY: check\ncheck:\n\t@$(SH) $(S)\n"
PACKAGE = '{"main": "index.js", "scripts": {"test": "npm run lint && node ci/all.js", "lint": "./ci/lint.sh src/a.js",'
PACKAGE += ' "pretest": "bash ci/before.sh", "start": "node index.js"}}'

TABLE: dict[str, tuple[str, dict[str, str | None]]] = {
    "a recipe": ("make check", {"Makefile": "check: ; sh scripts/check.sh\n", "scripts/check.sh": ""}),
    "names with values": ("make check", {"Makefile": LONG, "scripts/check.sh": ""}),
    "a prerequisite": (
        "make -s check",
        {"Makefile": "check: lint\nlint:\n\t-./ci/lint.sh main.c\nrun:\n\tpython app.py\n", "ci/lint.sh": ""},
    ),
    "an include": ("make", {"Makefile": "-include rules.inc\n", "rules.inc": "", "other.inc": None}),
    "a folder's make": ("make -C sub check", {"sub/Makefile": "check:\n\tpython3 -m tools.run\n", "tools/run.py": ""}),
    "another make's": (
        "make -f build/a.make t",
        {"build/a.make": "t:\n\t$(MAKE) -f b.make u\n", "b.make": "u: ; sh c.sh", "c.sh": ""},
    ),
    "make in make": (
        "make check",
        {"Makefile": "check:\n\t$(MAKE) lint\nlint: ; ./l.sh\nrun: ; node index.js\n", "l.sh": ""},
    ),
    "a script's make": (
        "sh a.sh",
        {"a.sh": "make -s t\n", "Makefile": "run: ; node index.js\nt: ; $X/l.sh", "ci/l.sh": ""},
    ),
    "a script's script": (
        "sh a.sh",
        {"a.sh": ". ./lib.sh\nHERE=ci\nif true; then timeout 10 $HERE/b.sh app.py; fi\n", "lib.sh": "", "ci/b.sh": ""},
    ),
    "its own folder": ("./ci/a.sh", {"ci/a.sh": 'source "$(dirname "$0")/lib.sh"\n', "ci/lib.sh": ""}),
    "a package": ("npm test", {"package.json": PACKAGE, "ci/all.js": "", "ci/lint.sh": "", "ci/before.sh": ""}),
    "tox": (
        "tox -q",
        {"tox.ini": "[testenv]\ncommands = python ci/t.py {posargs}\n  ./ci/u.sh\n", "ci/t.py": "", "ci/u.sh": ""},
    ),
    "python that starts": (
        "python check.py",
        {
            "check.py": 'import app\nsubprocess.run([sys.executable, "ci/t.py", "app.py"])\nopen("main.c")\n',
            "ci/t.py": "",
        },
    ),
    "two that name each other": ("sh a.sh", {"a.sh": "sh b.sh", "b.sh": "sh a.sh"}),
    "a compiled program": (
        "make check",
        {"Makefile": "SRC = main.c\napp: main.c\n\tcc -o $@ $(SRC)\ncheck: app\n\t./app --selftest\n"},
    ),
    "a compiler in the command": ("cc -o app main.c && ./app", {}),
    "options with values": (
        "make -j 4 check",
        {
            "Makefile": "check:\n\tbash -euo pipefail ci/a.sh main.c\n\tpython3 -W error ci/b.py src/a.js\n"
            "\ttimeout -s KILL 9 sh ci/c.sh\n\tenv -u X sh ci/d.sh\n\tnode -r ./ci/e.js ci/f.js\n"
            "\tcoverage run --source src ci/g.py\n\tcoverage run -m ci.h\n\tuv run --with x python ci/i.py app.py\n",
            "ci/a.sh": "",
            "ci/b.py": "",
            "ci/c.sh": "",
            "ci/d.sh": "",
            "ci/e.js": "",
            "ci/f.js": "",
            "ci/g.py": "",
            "ci/h.py": "",
            "ci/i.py": "",
        },
    ),
    "loops, folders, pipes": (
        "make check",
        {
            "Makefile": "check:\n\tfor s in ci/a.sh ci/b.sh; do sh $$s; done\n\tfor s in c?/*.bash; do :; done\n"
            "\tfind ck -name '*.sh' -exec sh {} \\;\n\trun-parts cd\n\tcat ce/a.sh | sh\n\tsh < cf/a.sh\n"
            "\t./app main.c | diff - out/1.txt\n",
            "ci/a.sh": "",
            "ci/b.sh": "",
            "cb/a.bash": "",
            "ck/d/a.sh": "",
            "cd/a": "",
            "ce/a.sh": "",
            "cf/a.sh": "",
            "out/1.txt": "",
        },
    ),
    "goals and growing names": (
        "make",
        {
            "Makefile": ".DEFAULT_GOAL := check\nALL := a\nALL += b\nrun: ; python app.py\ncheck: $(ALL)\n"
            "a: ; sh ci/a.sh\nb: ; sh ci/b.sh\n",
            "ci/a.sh": "",
            "ci/b.sh": "",
        },
    ),
    "scripts by pattern": (
        "npm test",
        {
            "package.json": '{"scripts": {"test": "run-s check:* && concurrently npm:more", "check:a": "node ci/a.js",'
            ' "more": "sh ci/b.sh", "start": "node index.js"}}',
            "ci/a.js": "",
            "ci/b.sh": "",
        },
    ),
    "a script run by a compiler": (
        "make check",
        {"Makefile": "check: ; go run ci/check.go main.c\n", "ci/check.go": ""},
    ),
    "what a rule is given": (
        "make t",
        {"Makefile": "t: ok app\nok: ci/a.sh\n\tsh $<\napp: main.c\n\tcc -o $@ $^\n", "ci/a.sh": ""},
    ),
    "code by an option, data beside it": (
        "make check",
        {
            "Makefile": "check:\n\tawk -f a.awk one.txt\n\tmytool --file a.conf one.txt\n"
            "\tawk -fb.awk -f c.awk one.txt\n\tmytool --file=d.conf one.txt\n"
            "\tdocker compose -f e.yml run x sh ci/a.sh app.py\n"
            "\tdocker compose -f e.yml run x ./ci/b.sh app.py\n\tawk -f a.awk ./one.txt\n",
            "ci/b.sh": "",
            "a.awk": "",
            "a.conf": "",
            "b.awk": "",
            "c.awk": "",
            "d.conf": "",
            "e.yml": "",
            "ci/a.sh": "",
            "one.txt": None,
        },
    ),
    "standard input": (
        "make check",
        {
            "Makefile": "check:\n\tawk -f a.awk < one.txt\n\t< one.txt mytool\n\tmytool <one.txt\n"
            "\tbash -e <ci/a.sh\n\tsudo python3 - 0< ci/b.py\n\t< one.txt sh ci/c.sh\n"
            "\twhile read s; do sh $$s; done < ci/all.txt\n\tcat ci/d.pl | perl\n\t$$TOOL < ci/e.txt\n",
            "a.awk": "",
            "ci/a.sh": "",
            "ci/b.py": "",
            "ci/c.sh": "",
            "ci/all.txt": "",
            "ci/d.pl": "",
            "ci/e.txt": "",
            "one.txt": None,
        },
    ),
    "subjects": ("sh a.sh", {"a.sh": "mypy src\nruff check app.py\npython -m pytest tests src/a.js\ncat main.c\n"}),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_a_command_runs_is_found_to_a_fixed_point_and_its_arguments_are_not(case: str) -> None:
    command, files = TABLE[case]
    product = {"main.c": "", "app.py": "", "index.js": "", "src/a.js": "", "tests/test_a.py": "", "README.md": ""}
    tree = product | {path: text or "" for path, text in files.items()}

    assert find_files_run(command, tree, tree.__getitem__) == {path for path, text in files.items() if text is not None}
