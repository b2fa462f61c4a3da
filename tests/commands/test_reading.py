"""Every place of a line that a shell runs is read, whatever stands around it; a program that no table knows, too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.commands.parser import check_command

PLACES = (
    "echo S", 'echo "S"', "echo a'b'S", "S", "! S", "S | cat", "true | cat S", "S && true", "false || S", "(S)",
    "{ S; }",
    "X=S", "X=S true", "X=1 Y=S true", 'X="S" true', "X+=S true", "GIT_DIR=S env", "A[0]=S", "x[0S]=1", "a=(S)",
    "a=(1 S)",
    "export X=S", 'export X="S"', "export A=1 X=S", "declare X=S", "declare -a x=(S)", "declare -r X=S", "readonly X=S",
    "typeset X=S", "f() { local X=S; }; f", "unset xS", "env X=S true", "eval X=S",
    "echo $((0S))", "((0S))", "echo $[0S]", "let x=0S", "for ((i=0S; i<0; )); do :; done",
    "if S; then :; fi", "if true; then S; fi", "if false; then :; elif S; then :; fi", "if false; then :; else S; fi",
    "while S; false; do :; done", "until S; true; do :; done", "for i in S; do :; done", "for i in 1; do S; done",
    "for i in 1 2; do X=S true; done", "case S in x) ;; esac", "case x in S) ;; esac", "case x in x) S ;; esac",
    "select i in 1 S; do break; done </dev/null", "[[ -n S ]]", "[[ a = S ]]", "[[ x =~ S ]]", "[ -n S ]", "test S",
    "echo ${x:-S}", 'echo "${x:-S}"', "X=${x:-S}", "export X=${x:=S}", "x=1; echo ${x:+S}", "x=1; echo ${x/S/}",
    "x=1; echo ${x//S/}", "x=1; echo ${x#S}", "x=1; echo ${x:0S}", "x=(1); echo ${x[0S]}",
    "echo >>/dev/nullS", "echo 2>/dev/nullS >/dev/null", "cat </dev/nullS", "cat <<< S", 'cat <<< "S"', "cat <(S)",
    "X=1 >/dev/nullS true", "cat <<E\nS\nE", "cat <<E\n$HOME S\nE", "cat <<-E\n\tx S $HOME\nE", "cat <<E | cat S\nx\nE",
    "f() { S; }; f", "f() { :; } >/dev/nullS; f", "f() (S); f", "time S", "coproc { S; }; wait", "S &\nwait", "\nS # x",
    "true; # it's\nX=S true", "export X=$(echo S)", "declare -x X=$(Y=S true)", "X=$(export Y=S) true",
)  # fmt: skip
"""Lines that a shell runs with something in the place of `S`."""

DOLLAR, BACKTICKS = "$(git push -f)", "`git push -f`"

STARTED = (
    "mapfile -C 'git push -f' -c 1 x < f", "numactl -C 0 git push -f", "fakeroot git push -f", "ssh-agent git push -f",
    "ssh-agent sh -c 'git push -f'", "sg root 'git push -f'", "sg root -c 'git push -f'",
    "systemd-run --user git push -f",
    "hyperfine 'git push -f'", "hyperfine --prepare 'git push -f' ls", "direnv exec . git push -f",
    "./with git push -f",
    "firejail --quiet bash -c 'git push -f'", "conda run -n x rm -rf ~", "$SUDO rm -rf /usr",
    "perf stat sudo git push -f",
    "parallel 'git push -f' ::: x", "coproc X { git push -f; }", "op run -- terraform apply",
    "python run.py git push -f",
    "fakeroot env -S 'git push -f'",
)  # fmt: skip
"""Commands that are started by a program that no table knows, or by one that hands a text to a shell."""

SPOKEN_OF = (
    "./notify 'git push -f is forbidden'", "./tool git status", "brew install git gh", "./x rm -rf build", "./x now",
    "cowsay git push -f", "rg git push -f", 'say() { echo "$@"; }; say git push -f', "./cli env set A",
    "./cli find / x",
    "apt-get install -y git docker make", "./bot deploy", "parallel echo ::: 'git push -f'", "docker run x rm -rf /",
    "export X='$(git push -f)'", "cat <<'E'\n`git push -f`\nE", "cat <<\\E\n$(git push -f)\nE",
    "cat <<E\n\\`git push -f\\`\nE",
    "cat <<'E' > notes.md\nRun `git reset --hard`, or $(git push -f).\nE", "X=$(git status) make",
    "echo a\\`git push -f\\`b",
    "jq . <(curl x)", "./tool <(curl x)", "pip install ansible x",
)  # fmt: skip
"""Honest lines that are near to those."""


@pytest.mark.parametrize("substitution", [DOLLAR, BACKTICKS])
def test_a_substitution_is_read_in_every_place(substitution: str) -> None:
    assert not [place for place in PLACES if check_command(place.replace("S", substitution)).hit is None]


@pytest.mark.slow
def test_a_shell_runs_what_stands_in_each_of_those_places(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("NO BASH HERE: what it runs is not compared with what is read")
    mark = tmp_path / "mark"
    idle = []
    for place in PLACES:
        mark.unlink(missing_ok=True)
        line = place.replace("S", f"$(echo >{mark})")
        subprocess.run([bash, "-c", line], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        idle += [] if mark.exists() else [place]
    assert not idle


@given(st.lists(st.sampled_from(PLACES), min_size=2, max_size=3))
def test_places_within_places_are_read(places: list[str]) -> None:
    line = "git push -f"
    for place in places:
        line = place.replace("S", f"$({line}\n)")
    assert check_command(line).hit is not None


def test_nested_backticks_are_read() -> None:
    assert check_command("echo `echo \\`git push -f\\``").hit is not None
    assert check_command("x=`a \\`b \\\\\\`git push -f\\\\\\`\\``").hit is not None


def test_a_program_that_no_table_knows_may_start_its_words() -> None:
    assert not [line for line in STARTED if check_command(line).hit is None]


def test_words_that_only_speak_of_a_command_are_none() -> None:
    assert not [(line, why) for line in SPOKEN_OF if (why := check_command(line).reason)]


@pytest.mark.parametrize("inner", ["x=$(x=status)", "(x=status)", "f() { x=status; }", "y=$(git() { :; })"])
def test_a_value_set_in_a_subshell_is_gone_after_it(inner: str) -> None:
    assert check_command(f"x=push; {inner.replace('x=$', 'y=$')}; git $x -f").hit is not None
