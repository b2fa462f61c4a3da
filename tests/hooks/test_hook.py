"""The hooks of a host, in its own published JSON: what is let through, what is not, and what goes back."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.child.hook.command_prefilter import needs_parser
from jumar.child.hook.published_state import FOLDER, STATE, HookRefusal, find_root, find_session_root, resolve_inside
from jumar.child.hook.ruling import (
    BEGIN,
    EVENTS,
    FAILED,
    POST,
    PRE,
    PROMPT,
    STOP,
    answer_event,
    format_refusal,
    rule_on_command,
)
from jumar.cli.main import call
from jumar.commands import parser
from jumar.core.state.test_policy import Gate
from jumar.errors import BadInput
from jumar.hooks.full_rule import answer_or_refuse
from jumar.hooks.install import edit_settings
from jumar.journal.writer import Journal
from support.processes import shell_lines as destructive
from support.processes.fake_claude_code import BUGGY, RED, RIGHT, TESTS, Host, git, repository

# --- commands -------------------------------------------------------------------------------------------------------

PLAIN = (
    "git push --force", "git push -f origin main", "git push origin +main", "git push -uf origin x",
    "git -C /x push --force-with-lease", "git --no-pager -c a=b push -f", "/usr/bin/git push --force",
    "git push origin :main", "git push --mirror", "git 2>/dev/null push -f", 'git push "--force"', "g'i't push -f",
    "git push \\\n --force", "cd a && git reset --hard HEAD~1", "git clean -fdx", "git clean -xdf", "git branch -D x",
    "true;git push -f", "(git push -f)", "$(git push -f)", "`git push -f`", 'echo "$(git push -f)"',
    "echo a#b; git push -f",
    "echo hi\ngit push -f", "cat <<E\nit's\nE\ngit push -f", "if true; then git push -f; fi", "sudo git push -f",
    "FOO=1 git push -f", "env X=1 git push -f", "timeout 5 git push -f", "xargs git push -f", "eval 'git push -f'",
    "bash -c 'git reset --hard'", 'sh -lc "cd x; git clean -f"', "gcloud functions deploy f --region x",
    "gcloud run deploy", "gcloud app deploy", "npm publish", "kubectl apply -f x.yaml", "terraform destroy",
    "twine upload dist/*", "cargo publish", "vercel --prod", "jumar hook UserPromptSubmit < x",
    "python -I -S lib/hook_fast.py Stop",
)  # fmt: skip

HARMLESS = (
    "git push", "git push origin main", "git commit -m 'no push --force'", "git reset HEAD~1", "git clean -n",
    "git branch -d x", "echo git push --force is bad", "git log --format=%f", "git diff -- src", "git stash pop",
    "cat <<'E'\nit's git push\nE", "pytest -f", "npm test", "gcloud run services list", "kubectl get pods",
    "grep -rn 'git push -f' .", "jumar claim a::b c", "ls # git push -f", "", "'",
)  # fmt: skip


@pytest.mark.parametrize("line", PLAIN)
def test_a_command_that_destroys_what_no_revert_brings_back_is_refused(line: str) -> None:
    assert needs_parser(line)
    assert parser.check_command(line).hit


def test_the_quick_look_lets_nothing_pass_that_the_rules_forbid() -> None:
    lines: tuple[str, ...] = (*destructive.HISTORY, *destructive.FILES, *destructive.DEPLOYS, *destructive.DISGUISED)
    lines += destructive.DOWNLOADS
    assert not [line for line in lines if not needs_parser(line)]


@pytest.mark.parametrize("line", HARMLESS)
def test_any_other_command_is_not(line: str) -> None:
    assert parser.check_command(line).admitted


@pytest.mark.parametrize("line", ["ls -la", "pytest -q -k deploy", "cat a.py | head", "python -m http.server", "", "'"])
def test_what_names_no_program_of_the_rules_starts_no_process(line: str) -> None:
    assert not needs_parser(line)
    rule_on_command(line, 0.0)


@pytest.mark.slow
def test_the_rules_are_asked_in_a_process_of_their_own() -> None:
    rule_on_command("git status", 60.0)
    with pytest.raises(HookRefusal, match="the person does that"):
        rule_on_command("x=git; $x push -f", 60.0)


@pytest.mark.slow
def test_no_length_of_a_line_keeps_the_host_waiting() -> None:
    """A host lets through what takes a minute."""
    long = "echo " + "a" * 1_000_000
    rule_on_command(f"{long} git", 60.0)
    with pytest.raises(HookRefusal):
        rule_on_command(f"git push --force; {long}", 60.0)


# --- paths ----------------------------------------------------------------------------------------------------------


def test_only_a_plain_file_inside_has_a_path(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").touch()
    (root / "link.py").symlink_to("src/a.py")
    (root / "away").symlink_to(tmp_path)
    (root / "twin.py").hardlink_to(root / "src" / "a.py")
    (tmp_path / "known").symlink_to(root)
    good = {f"{root}/new.py": "new.py", f"{root}/src/b/c.py": "src/b/c.py", f"{tmp_path}/known/new.py": "new.py"}
    bad = (
        "a.py", "./a.py", "", "~/a.py", f"{root}", f"{root}/", f"{root}/src/", f"{root}/src", f"{root}/../x.py",
        f"{root}/src/../a.py", f"{root}/./a.py", f"{root}//a.py", f"{tmp_path}/x.py", "/etc/passwd", f"{root}2/a.py",
        f"{root}/link.py", f"{root}/away/x.py", f"{root}/twin.py", f"{root}/src/a.py/b", f"{root}/a\0b",
        f"{root}/\ud800.py", f"{root}/.git/config", f"{root}/.jumar/hook/state.json", f"{root}/.claude/settings.json",
    )  # fmt: skip

    assert {path: resolve_inside(path, str(root)) for path in good} == good
    for path in bad:
        with pytest.raises(HookRefusal):
            resolve_inside(path, str(root))


def test_the_root_is_the_repository_around_the_folder(tmp_path: Path) -> None:
    (tmp_path / "repo" / "src").mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "plain").mkdir()

    assert find_root(str(tmp_path / "repo" / "src")) == str(tmp_path / "repo")
    assert find_root(str(tmp_path / "plain")) == str(tmp_path / "plain")
    for folder in ("repo", "", str(tmp_path / "none"), "/a\0b"):
        with pytest.raises(HookRefusal):
            find_root(folder)


def test_a_submodule_s_root_is_the_one_that_has_the_session(tmp_path: Path) -> None:
    top, inner, other = tmp_path / "repo", tmp_path / "repo" / "vendor" / "inner", tmp_path / "repo" / "tree"
    (inner / "src").mkdir(parents=True)
    (top / ".git").mkdir()
    (inner / ".git").write_text("gitdir: ../../.git/modules/vendor/inner\n")
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {top}/.git/worktrees/tree\n")
    raw = json.dumps(event(inner, hook_event_name=STOP)).encode()

    def ask(_event: str, _raw: bytes, root: str, _seconds: float) -> dict[str, object]:
        return {"root": root}

    assert find_session_root(str(inner / "src")) == str(inner), "there is none yet"
    (top / FOLDER).mkdir(parents=True)
    (top / FOLDER / STATE).touch()
    assert find_session_root(str(inner / "src")) == str(top)
    assert find_session_root(str(other)) == str(other), "a checkout of its own"
    assert answer_event(STOP, raw, "", 1.0, ask) == {"root": str(top)}
    assert answer_event(STOP, raw, str(inner), 1.0, ask) == {"root": str(inner)}, "the host says where it works"
    (inner / FOLDER).mkdir(parents=True)
    (inner / FOLDER / STATE).touch()
    assert find_session_root(str(inner / "src")) == str(inner)


# --- the shape of answers and events --------------------------------------------------------------------------------


def test_each_event_is_refused_in_the_form_its_host_obeys() -> None:
    denied = {"hookEventName": PRE, "permissionDecision": "deny", "permissionDecisionReason": "why"}

    assert format_refusal(PRE, "why") == {"hookSpecificOutput": denied}
    assert (
        format_refusal(POST, "why")
        == format_refusal(STOP, "why")
        == format_refusal(PROMPT, "why")
        == {"decision": "block", "reason": "why"}
    )
    assert format_refusal(FAILED, "why") == {
        "hookSpecificOutput": {"hookEventName": FAILED, "additionalContext": "why"}
    }
    assert format_refusal(BEGIN, "why") == {"systemMessage": "jumar: why"}
    assert format_refusal(STOP, "why", b'{"stop_hook_active": true}') == {"systemMessage": "jumar: why"}
    assert (
        format_refusal(STOP, "why", b"{")
        == format_refusal(STOP, "why", b"[]")
        == {"decision": "block", "reason": "why"}
    )


def event(root: Path, **fields: object) -> dict[str, object]:
    return {"session_id": "s", "transcript_path": "/t", "cwd": str(root), "hook_event_name": PRE, **fields}


def malformed(root: Path) -> Mapping[str, bytes]:
    """Name -> an edit that must not be made."""
    path = f"{root}/calc.py"
    edit = {"file_path": path, "old_string": "a", "new_string": "b"}
    cases: dict[str, object] = {
        "no object": [],
        "a number": 1,
        "null": None,
        "empty": {},
        "another event": event(root, hook_event_name=POST, tool_name="Edit", tool_input=edit),
        "no event name": {
            k: v for k, v in event(root, tool_name="Edit", tool_input=edit).items() if k != "hook_event_name"
        },
        "no session": {k: v for k, v in event(root, tool_name="Edit", tool_input=edit).items() if k != "session_id"},
        "no cwd": {k: v for k, v in event(root, tool_name="Edit", tool_input=edit).items() if k != "cwd"},
        "cwd of another type": event(root, cwd=["/"], tool_name="Edit", tool_input=edit),
        "no tool": event(root, tool_input=edit),
        "tool of another type": event(root, tool_name=["Edit"], tool_input=edit),
        "no input": event(root, tool_name="Edit"),
        "input is a text": event(root, tool_name="Edit", tool_input=json.dumps(edit)),
        "input is a list": event(root, tool_name="Edit", tool_input=[edit]),
        "input is null": event(root, tool_name="Edit", tool_input=None),
        "no path": event(root, tool_name="Edit", tool_input={"old_string": "a", "new_string": "b"}),
        "path of another type": event(root, tool_name="Edit", tool_input={**edit, "file_path": [path]}),
        "no old string": event(root, tool_name="Edit", tool_input={"file_path": path, "new_string": "b"}),
        "no new string": event(root, tool_name="Edit", tool_input={"file_path": path, "old_string": "b"}),
        "write without content": event(root, tool_name="Write", tool_input={"file_path": path}),
        "write of bytes": event(root, tool_name="Write", tool_input={"file_path": path, "content": [1]}),
        "multi-edit without edits": event(root, tool_name="MultiEdit", tool_input={"file_path": path}),
        "multi-edit of nothing": event(root, tool_name="MultiEdit", tool_input={"file_path": path, "edits": []}),
        "multi-edit of no object": event(root, tool_name="MultiEdit", tool_input={"file_path": path, "edits": ["a"]}),
        "multi-edit without new": event(
            root, tool_name="MultiEdit", tool_input={"file_path": path, "edits": [{"old_string": "a"}]}
        ),
        "notebook by file_path": event(
            root, tool_name="NotebookEdit", tool_input={"file_path": path, "new_source": ""}
        ),
        "notebook without source": event(root, tool_name="NotebookEdit", tool_input={"notebook_path": path}),
        "unknown edit tool": event(root, tool_name="ApplyPatch", tool_input={"patch": "..."}),
        "unknown tool with a file": event(root, tool_name="Refactor", tool_input={"filePath": path}),
        "relative path": event(root, tool_name="Edit", tool_input={**edit, "file_path": "calc.py"}),
        "escaping path": event(root, tool_name="Edit", tool_input={**edit, "file_path": f"{root}/../x.py"}),
        "path elsewhere": event(root, tool_name="Edit", tool_input={**edit, "file_path": "/etc/hosts"}),
        "shell without a command": event(root, tool_name="Bash", tool_input={}),
        "shell with a list": event(root, tool_name="Bash", tool_input={"command": ["rm"]}),
    }
    raw = {name: json.dumps(value).encode() for name, value in cases.items()}
    whole = json.dumps(event(root, tool_name="Edit", tool_input=edit)).encode()
    return raw | {
        "nothing": b"", "cut off": whole[:-5], "two objects": whole + whole, "not UTF-8": b'{"a": "\xff"}',
        "a BOM": b"\xef\xbb\xbf" + whole, "deep": b'{"a":' * 100_000, "a NUL": b"\0",
        "UTF-16": whole.decode().encode("utf-16"),
    }  # fmt: skip


def never(*_: object) -> None:
    """The full rule, which must not be asked."""
    raise AssertionError


def test_what_is_malformed_is_refused_before_any_session_is_asked(tmp_path: Path) -> None:
    for name, raw in malformed(tmp_path).items():
        with pytest.raises(HookRefusal) as why:
            answer_event(PRE, raw, str(tmp_path), 1.0, never)
        assert "to judge this by" not in str(why.value), name


def test_an_unknown_event_is_refused(tmp_path: Path) -> None:
    raw = json.dumps(event(tmp_path, hook_event_name="PreCompact")).encode()
    with pytest.raises(HookRefusal, match="no event that jumar knows"):
        answer_event("PreCompact", raw, "", 1.0, never)


def test_reading_needs_no_session_and_writing_does(tmp_path: Path) -> None:
    def pre(tool: str, **given: object) -> bytes:
        return json.dumps(event(tmp_path, tool_name=tool, tool_input=given)).encode()

    assert answer_event(PRE, pre("Read", file_path="/anything"), "", 1.0, never) is None
    assert answer_event(PRE, pre("TodoWrite", todos=[]), "", 1.0, never) is None
    for raw in (pre("Bash", command="ls"), pre("mcp__x__y", path="z"), pre("Novel", question="?")):
        with pytest.raises(HookRefusal, match="no session"):
            answer_event(PRE, raw, "", 1.0, never)


# --- installation ---------------------------------------------------------------------------------------------------

words = st.text(alphabet="abc *", max_size=4)
handlers = st.fixed_dictionaries({"type": st.just("command"), "command": words})
groups = st.fixed_dictionaries({"hooks": st.lists(handlers, max_size=2)}, optional={"matcher": words})
settings = st.dictionaries(words, words | st.integers() | st.lists(words), max_size=3).flatmap(
    lambda rest: st.one_of(
        st.just(rest),
        st.dictionaries(
            st.sampled_from([*EVENTS, "Notification"]), st.lists(groups, min_size=1, max_size=2), min_size=1, max_size=3
        ).map(lambda hooks: rest | {"hooks": hooks}),
    )
)


@pytest.mark.slow
@given(settings)
def test_installing_twice_changes_nothing_and_uninstalling_leaves_what_was_there(before: dict[str, object]) -> None:
    text = json.dumps(before)
    once = edit_settings(text, "f", Gate.STRICT)
    back = edit_settings(once, "f", None)
    after, hooks = json.loads(once), before.get("hooks", {})
    assert isinstance(hooks, dict)

    assert edit_settings(once, "f", Gate.STRICT) == once
    assert {k: v for k, v in after.items() if k != "hooks"} == {k: v for k, v in before.items() if k != "hooks"}
    for name, had in hooks.items():
        assert [g for g in after["hooks"][name] if g in had] == had
    assert all(any("hook_fast.py" in json.dumps(g) for g in after["hooks"][name]) for name in EVENTS)
    assert (json.loads(back) if back else {}) == before
    assert edit_settings(text, "f", None) == text


def test_settings_in_another_encoding_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_bytes(b'{"model": "\xe9"}')
    assert call(["hook", "install", str(tmp_path), "--yes"]) == 2
    assert "is not UTF-8 (byte 11); mend it first" in capsys.readouterr().err
    assert (tmp_path / ".claude" / "settings.json").read_bytes() == b'{"model": "\xe9"}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is not the settings of Claude Code, which are a JSON object, {...}; mend it first"),
        ('{"hooks": []}', "has `hooks` that Claude Code does not know: Expected `object`, got `array`; mend it first"),
        ("{", "is not valid JSON: "),
    ],
)
def test_what_are_no_settings_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        edit_settings(text, "settings.json", Gate.STRICT)

    assert str(caught.value).startswith(f"settings.json {said}")


def test_hooks_that_are_taken_out_leave_nothing_of_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").mkdir()
    for kept in (False, True):
        assert call(["hook", "install", str(tmp_path), "--yes", "-q"]) == 0
        if kept:
            (tmp_path / ".claude" / "mine.md").write_text("")
        capsys.readouterr()
        assert call(["hook", "install", str(tmp_path), "--yes", "--uninstall"]) == 0
        assert f"removed {tmp_path / '.claude' / 'settings.json'}\n" in capsys.readouterr().out
        assert (tmp_path / ".claude").exists() is kept


def test_who_takes_the_hooks_out_of_one_file_is_told_of_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    assert call(["hook", "install", str(tmp_path), "--yes", "--local"]) == 0
    capsys.readouterr()
    assert call(["hook", "install", str(tmp_path), "--yes", "--uninstall"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("nothing to change in ")
    assert said.endswith("settings.local.json holds the hooks, too: do the same with --local\n")
    assert call(["hook", "install", str(tmp_path), "--yes", "--uninstall", "--local"]) == 0
    assert "holds the hooks" not in capsys.readouterr().out


def test_an_older_installation_is_replaced(tmp_path: Path) -> None:
    old = {"type": "command", "command": "/old/python /old/jumar/surfaces/hook_fast.py PreToolUse"}
    other = {"type": "command", "command": "mine"}
    text = json.dumps({"hooks": {PRE: [{"matcher": "Edit", "hooks": [old, other]}]}})
    new = json.loads(edit_settings(text, "f", Gate.STRICT))["hooks"][PRE]

    assert new[0] == {"matcher": "Edit", "hooks": [other]}
    assert [group["matcher"] for group in new] == ["Edit", "*"]
    assert new[1]["hooks"][0]["onFailure"] == "block"
    assert tmp_path.exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", "1", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": [1]}}', "// x\n{}"]
)
def test_settings_that_make_no_sense_are_left_alone(text: str) -> None:
    with pytest.raises(BadInput, match="mend it first"):
        edit_settings(text, "settings.json", Gate.STRICT)


# --- a host at work -------------------------------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(repository(tmp_path / "repo"))


def files(root: Path) -> Mapping[str, tuple[bytes, int]]:
    """Path -> bytes and mode of all that is there, but for histories and caches."""
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".git", ".jumar", "__pycache__"} & set(path.relative_to(root).parts)
    }


@pytest.mark.slow
def test_malformed_input_blocks_through_the_real_program(host: Host) -> None:
    host = Host(host.root, processes=True)

    def sent(case: tuple[str, bytes]) -> tuple[str, str]:
        return case[0], host.send(PRE, case[1]).blocked

    with ThreadPoolExecutor(2) as pool:
        answers = dict(pool.map(sent, malformed(host.root).items()))

    assert len(answers) >= 40
    assert all(answers.values()), [name for name, why in answers.items() if not why]
    assert host.send("PreCompact", b"{}").status == 2
    assert host.send(STOP, b"{").blocked
    assert host.send(PRE, b"{}", "never").status == 2


@pytest.mark.slow
def test_a_turn_from_red_to_green(host: Host) -> None:
    host = Host(host.root, processes=True)
    assert "jumar claim" in host.begins().context
    assert "red is" in (prompted := host.prompt()).context, prompted
    assert RED in prompted.context

    assert "no red test was claimed for calc.py: run `jumar claim" in host.edit("calc.py", "a - b", "a + b")
    assert "read-only" in host.edit("test_calc.py", "== 3", "== -1")
    assert (
        "no red test was claimed for note.ipynb"
        in host.asks("NotebookEdit", notebook_path=str(host.root / "note.ipynb"), new_source="").blocked
    )
    edits = [
        {"old_string": "a - b", "new_string": "a + b"},
        {"old_string": "mul", "new_string": "mul", "replace_all": True},
    ]
    multi: dict[str, object] = {"file_path": str(host.root / "calc.py"), "edits": edits}
    assert "no red test was claimed" in host.asks("MultiEdit", **multi).blocked
    assert "jumar claim TEST_ID new.py" in host.write("new.py", "x = 1\n")
    assert "git push" in host.shell("git push --force").blocked
    assert host.claim("test_calc.py::test_mul", "calc.py") == (
        False,
        "refused: test_calc.py::test_mul is green; claim a test that is red\n",
    )
    assert not host.claim("test_calc.py::test_none", "calc.py")[0]
    assert host.claim(RED, "calc.py") == (True, f"claimed: calc.py may be edited to turn {RED} green\n")
    assert "open is test_calc.py::test_add for calc.py" in host.edit("other.py", "1", "2")

    assert host.asks("MultiEdit", **multi).blocked == ""
    (host.root / "calc.py").write_text(RIGHT)
    assert host.used("MultiEdit", **multi).blocked == ""
    assert host.stop().said == {}

    assert (host.root / "calc.py").read_text() == RIGHT
    assert (host.root / "other.py").read_text() == "x = 1  # not committed\n"
    assert "no test asks for an edit of calc.py" in host.edit("calc.py", "a + b", "b + a")


@pytest.mark.slow
def test_an_edit_that_leaves_its_test_red_goes_back_and_blocks_the_stop_once(host: Host) -> None:
    host.prompt()
    assert host.claim(RED, "calc.py")[0]
    assert host.edit("calc.py", "a - b", "a - b - 1") == ""
    first = host.stop()
    assert "calc.py went back" in first.blocked
    assert RED in first.blocked
    assert (host.root / "calc.py").read_text() == BUGGY

    assert host.edit("calc.py", "a - b", "a - b - 2") == ""
    second = host.stop(again=True)
    assert second.blocked == ""
    assert "went back" in str(second.said["systemMessage"])
    assert (host.root / "calc.py").read_text() == BUGGY
    # Two failed greens with nothing else red ended the run: from now on nothing may change.
    assert "the run ended" in host.edit("calc.py", "a - b", "a + b")
    assert "the run ended" in host.shell("echo >> calc.py").blocked
    (host.root / "calc.py").write_text("around = 1")
    assert "went back" in host.used("Bash", command="...").blocked
    assert (host.root / "calc.py").read_text() == BUGGY
    assert "red is" in host.prompt().context
    assert host.claim(RED, "calc.py")[0]


@pytest.mark.slow
def test_a_test_may_be_written_first(host: Host) -> None:
    host.prompt()
    text = "from shape import area\n\n\ndef test_area():\n    assert area(2) == 4\n"
    assert host.write("test_shape.py", text) == ""
    admitted, line = host.claim("test_shape.py::test_area", "shape.py")
    assert admitted, line
    assert host.write("shape.py", "def area(a):\n    return a * a\n") == ""
    assert host.stop().blocked == ""
    assert (host.root / "shape.py").is_file()
    assert (host.root / "test_shape.py").read_text() == text


TRICKS = {
    "sed": "sed -i s/x/y/ other.py",
    "python": "python3 -c \"open('calc.py', 'a').write('# more')\"",
    "a new file": "mkdir -p deep/er && echo 1 > deep/er/new.py",
    "move over": "echo 1 > z && mv z other.py",
    "delete": "rm other.py run.sh",
    "the tests": "sed -i 's/== 3/== -1/' test_calc.py",
    "a link swapped in": "cp calc.py /tmp/calc_$$ && ln -sf /tmp/calc_$$ calc.py",
    "a folder for a file": "rm other.py && mkdir other.py && touch other.py/x",
    "modes": "chmod 000 other.py && chmod -x run.sh && chmod 777 calc.py",
    "a patch": "printf '%s\\n' '--- a/run.sh' '+++ b/run.sh' '@@ -1 +1 @@' '-#!/bin/sh' '+#!/bin/bash' | git apply",
    "stash pop": "git stash pop -q",
    "stash": "git stash",
    "hide it from git": "git rm -q --cached other.py; echo other.py >> .git/info/exclude; echo 2 > other.py",
    "a virtual environment": "touch pkg/pyvenv.cfg; echo 3 > pkg/mod.py",
    "and then it fails": "echo 3 > calc.py; false",
}


@pytest.mark.slow
def test_what_a_shell_writes_without_a_claim_goes_back_byte_for_byte(host: Host) -> None:
    (host.root / "calc.py").write_text("STASHED = 1\n")
    git(host.root, "stash", "push", "-q", "calc.py")
    host.prompt()
    before = files(host.root)
    for name, line in TRICKS.items():
        answer = host.shell(line)
        said = answer.blocked or answer.context
        after = files(host.root)
        assert {p: b for p, (b, _) in after.items()} == {p: b for p, (b, _) in before.items()}, name
        assert {p for p, (_, m) in after.items() if m & 0o100} == {p for p, (_, m) in before.items() if m & 0o100}, name
        assert not (host.root / "calc.py").is_symlink(), name
        assert name == "modes" or "went back" in said, (name, answer)
    assert host.stop().blocked == ""
    kept = [path for path in (host.root / ".jumar" / "hook" / "put-back").rglob("*") if path.is_file()]
    assert b"# more" in b"".join(path.read_bytes() for path in kept)


@pytest.mark.slow
def test_what_is_written_later_in_the_background_is_found_at_the_stop(host: Host) -> None:
    host.prompt()
    late = "import sys; sys.stdin.read(); open('calc.py', 'w').write('late = 1')"
    with subprocess.Popen([sys.executable, "-c", late], stdin=subprocess.PIPE, cwd=host.root) as process:
        assert host.used("Bash", command="... &").blocked == ""
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)
    assert (host.root / "calc.py").read_text() == "late = 1"

    assert "calc.py went back" in host.stop().blocked
    assert (host.root / "calc.py").read_text() == BUGGY


@pytest.mark.proof
def test_what_a_person_wrote_before_a_prompt_is_theirs(host: Host) -> None:
    host.prompt()
    assert host.stop().blocked == ""
    (host.root / "calc.py").write_text(BUGGY + "# mine\n")
    (host.root / "mine.py").write_text("x = 1\n")
    host.prompt()
    assert host.shell("echo hello").blocked == ""
    assert "mine.py" in host.shell("rm mine.py").blocked

    assert (host.root / "calc.py").read_text() == BUGGY + "# mine\n"
    assert (host.root / "mine.py").read_text() == "x = 1\n"
    assert (host.root / ".env").read_text() == "KEY=1\n"
    assert git(host.root, "status", "--porcelain").split("\n") == [" M calc.py", " M other.py", "?? mine.py", ""]


@pytest.mark.slow
def test_a_damaged_session_lets_no_edit_through(host: Host) -> None:
    assert "no session" in host.edit("calc.py", "a - b", "a + b")
    (host.root / ".jumar" / "hook").mkdir(parents=True)
    (host.root / ".jumar" / "hook" / "lock").touch()
    assert "none has begun" in host.edit("calc.py", "a - b", "a + b")
    host.prompt()
    assert host.claim(RED, "calc.py")[0]
    path = host.root / ".jumar" / "hook" / "state.json"
    whole = path.read_bytes()
    state = json.loads(whole)
    given = {"file_path": str(host.root / "calc.py"), "old_string": "a", "new_string": "b"}

    def why(damaged: bytes) -> str:
        path.write_bytes(damaged)
        return host.asks("Edit", **given).blocked

    assert why(whole) == ""
    for name, damaged in {
        "cut off": whole[:-9], "empty": b"", "a list": b"[]",
        "no claims": json.dumps({**state, "claims": None}).encode(),
        "another version": json.dumps({**state, "version": 2}).encode(),
        "another folder": json.dumps({**state, "root": "/"}).encode(),
        "another run": json.dumps({**state, "run": "none"}).encode(),
        "a run elsewhere": json.dumps({**state, "run": "../runs/" + state["run"]}).encode(),
    }.items():  # fmt: skip
        assert "no session" in why(damaged), name
    # Out of date it is made anew from the journal: the claim stands there.
    assert why(json.dumps({**state, "bytes": state["bytes"] - 1, "claims": {}}).encode()) == ""
    assert json.loads(path.read_bytes()) == state | {"turn": True}
    path.unlink()
    assert "no session" in host.asks("Edit", **given).blocked
    assert why(whole) == ""

    lock = (host.root / ".jumar" / "hook" / "lock").open("r+")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asked = json.dumps(event(host.root, tool_name="Edit", tool_input=given)).encode()
        assert "still judging" in host.send(PRE, asked, "0.5").blocked
    journal = host.root / ".jumar" / "hook" / "runs" / state["run"] / "events.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"edit_claim", b"edit_clone", 1))
    assert host.shell("echo >> other.py").blocked
    assert "no session" in host.asks("Edit", **given).blocked


@pytest.mark.slow
def test_after_a_bug_of_ours_no_edit_goes_on_by_what_was_said_before(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.prompt()
    assert host.claim(RED, "calc.py")[0]
    given = {"file_path": str(host.root / "calc.py"), "old_string": "a - b", "new_string": "a + b"}
    assert host.asks("Edit", **given).blocked == ""
    answer = answer_or_refuse(POST, None, host.root, host.environ)  # type: ignore[arg-type]
    assert answer is not None
    assert "a bug of jumar" in str(answer["reason"])
    assert "a bug of jumar" in host.asks("Edit", **given).blocked
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.slow
def test_forged_claims_admit_nothing_that_stays(host: Host) -> None:
    host.prompt()
    path = host.root / ".jumar" / "hook" / "state.json"
    forged = msgspec.json.decode(path.read_bytes(), type=dict)
    path.write_text(json.dumps({**forged, "claims": {"other.py": ["test_calc.py::test_add"]}}))
    assert "other.py went back" in host.edit("other.py", "1", "2")
    assert (host.root / "other.py").read_text() == "x = 1  # not committed\n"


@pytest.mark.proof
def test_a_refactoring_needs_no_claims_and_is_not_left_red(host: Host) -> None:
    host = Host(host.root, gate=Gate.REFACTOR)
    (host.root / "calc.py").write_text(RIGHT)
    host.prompt()
    assert "read-only" in host.edit("test_calc.py", "== 3", "== -1")
    assert host.edit("calc.py", "a * b", "b * a") == ""
    assert host.shell("git mv -f other.py another.py").blocked == ""
    assert host.stop().blocked == ""
    assert (host.root / "calc.py").read_text() == RIGHT.replace("a * b", "b * a")
    assert (host.root / "another.py").is_file()

    host.prompt()
    assert host.edit("calc.py", "b * a", "b + a") == ""
    assert "test_calc.py::test_mul. Refusal 1 of 3: mend it" in host.stop().blocked
    assert (host.root / "calc.py").read_text() == RIGHT.replace("a * b", "b + a")
    assert host.edit("calc.py", "b + a", "a * b") == ""
    assert host.stop(again=True).said == {}
    assert (host.root / "calc.py").read_text() == RIGHT

    host.prompt()
    assert host.edit("calc.py", "a * b", "b + a") == ""
    assert "Refusal 1 of 3" in host.stop().blocked
    assert "Refusal 2 of 3" in host.stop().blocked
    assert "calc.py went back" in host.stop().blocked
    assert (host.root / "calc.py").read_text() == RIGHT
    assert host.edit("calc.py", "a * b", "b * a") == ""
    assert host.stop().blocked == ""


@pytest.mark.slow
def test_the_files_that_set_the_gate_are_closed_to_the_agent_and_heard_by_the_session(host: Host) -> None:
    (host.root / "jumar.toml").write_text("[run]\nratchet = 'identity'\nattempts = 4\n", "utf-8")
    host = Host(host.root, gate=Gate.REFACTOR)
    host.prompt()

    assert "read-only" in host.edit("jumar.toml", "identity", "count")
    assert "read-only" in host.write("task.toml", "[run]\ngate = 'off'\n")
    journal = next((host.root / ".jumar" / "hook" / "runs").glob("*/events.jsonl"))
    first = json.loads(journal.read_text("utf-8").splitlines()[0])
    assert (first["settings"]["rule"]["ratchet"], first["budget"]["attempts"]) == ("identity", 4)


@pytest.mark.slow
def test_hooks_that_come_at_once_take_turns(host: Host) -> None:
    host.prompt()

    def work(number: int) -> object:
        other = Host(host.root)
        calls: tuple[Callable[[], object], ...] = (
            lambda: other.claim(RED, "calc.py"),
            lambda: other.shell(f"echo {number} > new{number}.py").blocked,
            lambda: other.asks("Read", file_path="/x").blocked,
            lambda: other.asks("Edit", file_path=str(host.root / "other.py"), old_string="1", new_string="2").blocked,
        )
        return calls[number % 4]()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(work, range(8)))
    assert [answer[0] for answer in (answers[0], answers[4]) if isinstance(answer, tuple)] == [True, True]
    assert answers[2] == answers[6] == ""
    assert all(re.search("no (claim covers|red test was claimed for) other.py", str(answers[n])) for n in (3, 7))
    assert not list(host.root.glob("new*.py"))
    (run,) = (host.root / ".jumar" / "hook" / "runs").glob("2*")
    with Journal.open(run) as journal:
        assert len(journal.entries) > 5
    assert host.edit("calc.py", "a - b", "a + b") == ""
    assert (host.root / "test_calc.py").read_text() == TESTS
