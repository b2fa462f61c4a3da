"""An agent that is none of ours works under the same rules: what it does around them is undone before it is seen."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from jumar.core.state import events as ev
from jumar.core.state.budget import Budget
from jumar.core.state.external_agent import ExternalAgentSettings
from jumar.core.state.settings import Price
from jumar.core.state.stop import StopReason
from jumar.core.state.test_policy import Gate, TestPolicy
from jumar.errors import BadInput
from jumar.task.agent_command import (
    fill_placeholders,
    has_placeholder,
    refuse_relative_script,
    split,
    split_command,
)
from support.judging.samples import sampled
from support.processes import fake_provider as wire
from support.processes.external_run import FILES, KEY, Outing, Terms, looking
from support.worlds.run_world import program

RED = "test_app.py::test_8"
STRICT = Terms(gate=Gate.STRICT)

DEEP = 'python3 -c \'import os; [(os.mkdir("d"), os.chdir("d")) for _ in range(1500)]\''
"""More folders within folders than Python has frames."""

OVER, UNREAD = "rm app.py; mkfifo app.py", "touch $(printf 'x\\377')"
LINKS = "os.symlink(sys.argv[1], here)"

WAYS = {
    "sed": "sed -i 's/8/17/' app.py",
    "python": "python3 -c \"open('app.py', 'w').write('PASSING = 17')\"",
    "git apply": "sed -i s/8/17/ app.py; git diff > $TMPDIR/x; git stash -q; git apply --whitespace=nowarn $TMPDIR/x",
    "git stash pop": "sed -i 's/8/17/' app.py; git stash -q; git stash pop -q",
    "git checkout": "sed -i 's/8/17/' app.py; git commit -qam x; git checkout -q HEAD~; git checkout -q -",
    "mv over": "cp app.py other; echo 'PASSING = 17' > other; mv other app.py",
    "same size and time": "touch -r app.py $TMPDIR/then; sed -i 's/8/9/' app.py; touch -r $TMPDIR/then app.py",
    "executable": "chmod +x app.py",
    "closed folder": "echo x >> src/sums.py; chmod 000 src/sums.py; chmod 500 src",
    "symbolic link": "echo 'PASSING = 17' > $TMPDIR/app.py; rm app.py; ln -s $TMPDIR/app.py app.py",
    "linked folder": "mv src $TMPDIR/src; echo x >> $TMPDIR/src/sums.py; ln -s $TMPDIR/src src",
    "hard link": "ln app.py $TMPDIR/hard; echo 'PASSING = 17' > $TMPDIR/hard",
    "deleted": "rm app.py",
    "renamed folder": "mv src source",
    "new file": "echo x > src/new.py; echo y > top.py; mkdir -p a/b",
    "no test": "echo x >> docs/notes.md",
    "the tests": "echo 'PASSING' > test_app.py",
    "everything": "rm -rf src docs app.py test_app.py",
}
"""Ways to change a file that no claim covers, by name: what a shell is told."""


class TestAnAgentWithAShell:
    """Under the strict gate it never has an uncovered change at a call of its model."""

    @pytest.mark.proof
    def test_has_no_uncovered_change_at_any_call(self, tmp_path: Path) -> None:
        """Each way is tried, found to have changed something, and gone when the call arrives; the next one begins."""
        seen: list[tuple[str, dict[str, tuple[str, int]]]] = []
        outings: list[Outing] = []

        def see(outing: Outing, received: wire.Received) -> None:
            seen.append((received.body["messages"][0]["content"], outing.snapshot()))

        script = f"""
            WAYS = json.loads({json.dumps(json.dumps(WAYS))})

            def state():
                out = {{}}
                for folder, folders, files in os.walk("."):
                    folders[:] = [f for f in folders if f != ".git"]
                    for name in (*files, *folders):
                        path = os.path.join(folder, name)
                        file = os.path.isfile(path)
                        out[path] = file and (os.path.islink(path), os.access(path, os.X_OK), open(path, "rb").read())
                return out

            for name, command in WAYS.items():
                before = state()
                subprocess.run(command, shell=True)
                after = state()
                ask(name if before != after else "nothing happened: " + name)
                assert state() == before, name
        """
        with wire.Server(looking(outings, see)) as server:
            outing = Outing(tmp_path, script, server, STRICT)
            outings.append(outing)
            untouched = outing.snapshot()
            outing.run()
        assert outing.said() == "", "the agent found every change undone"
        assert [name for name, _ in seen][: len(WAYS)] == list(WAYS)
        for name, files in seen:
            assert files == untouched, name
        assert outing.snapshot() == untouched
        assert len(outing.reverts()) >= len(WAYS)
        assert all("changed around the tools" in why for _, why in outing.reverts())

    @pytest.mark.parametrize(
        "start",
        [
            pytest.param("Popen([sys.executable, '-c', STORM])", id="child", marks=pytest.mark.proof),
            pytest.param("Popen([sys.executable, '-c', STORM], start_new_session=True, env={})", id="session",
                         marks=pytest.mark.proof),
            pytest.param("Popen(['sh', '-c', f'setsid {sys.executable} -c \"$0\" & exit', STORM], env={})", id="orphan",
                         marks=pytest.mark.proof),
            pytest.param("Popen([sys.executable, '-c', THREADS], start_new_session=True)", id="dead first thread",
                         marks=pytest.mark.slow),
            pytest.param("threading.Thread(target=exec, args=(STORM, {}), daemon=True).start()", id="thread",
                         marks=pytest.mark.proof),
        ],
    )  # fmt: skip
    def test_whose_other_processes_write_all_the_time_has_none_either(self, tmp_path: Path, start: str) -> None:
        seen: list[dict[str, tuple[str, int]]] = []
        outings: list[Outing] = []

        def see(outing: Outing, _received: wire.Received) -> None:
            seen.append(outing.snapshot())

        script = f"""
            STORM = '''
            import itertools, os
            for n in itertools.count():
                with open("app.py", "a") as file:
                    file.write(f"# {{n}}")
                with open("storm", "w") as file:
                    file.write(str(n))
            '''.replace("            ", "")
            THREADS = f'''
            import ctypes, threading
            threading.Thread(target=exec, args=({{STORM!r}}, {{{{}}}})).start()
            ctypes.CDLL(None).syscall(60, 0)
            '''.replace("            ", "")
            Popen = subprocess.Popen
            {start}
            for n in range(6):
                until(lambda: os.path.exists("storm"))  # it writes again, after everything was put back
                ask("call")
            sys.stdout.write("done")
            sys.stdout.flush()
            os._exit(0)
        """
        with wire.Server(looking(outings, see)) as server:
            outing = Outing(tmp_path, script, server, STRICT)
            outings.append(outing)
            untouched = outing.snapshot()
            outing.run()
        assert outing.said() == "done"
        assert len(seen) >= 6
        assert all(files == untouched for files in seen)
        assert outing.snapshot() == untouched

    @pytest.mark.slow
    def test_that_has_the_kernel_set_it_going_again_ends_the_run(self, tmp_path: Path) -> None:
        """A timer of the kernel's may send SIGCONT to a process that is stopped: what it does then is seen."""
        script = """
            import ctypes, itertools
            class Event(ctypes.Structure):
                _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("more", ctypes.c_char * 52)]
            clock, timer = ctypes.CDLL("librt.so.1"), ctypes.c_void_p()
            assert clock.timer_create(1, ctypes.byref(Event(None, 18)), ctypes.byref(timer)) == 0
            once = (ctypes.c_long * 4)(0, 0, 0, 300_000_000)  # newer kernels forget one whose signal was ignored
            threading.Thread(target=lambda: [write("storm", str(n)) for n in itertools.count()], daemon=True).start()
            for n in range(20):
                until(lambda: os.path.exists("storm"))
                assert clock.timer_settime(timer, 0, once, None) == 0
                ask()
        """
        outings: list[Outing] = []

        def see(outing: Outing, _received: wire.Received) -> None:
            deadline = time.monotonic() + 5
            while not (outing.workspace / "storm").exists() and time.monotonic() < deadline:
                os.sched_yield()

        with wire.Server(looking(outings, see)) as server:
            outing = Outing(tmp_path, script, server, STRICT)
            outings.append(outing)
            untouched = outing.snapshot()
            end = outing.run()
        assert end.stop is StopReason.INFRA
        assert "went on by itself" in end.why
        assert len(outing.calls()) == 1
        assert outing.snapshot() == untouched

    @pytest.mark.slow
    def test_that_kills_what_supervises_it_ends_the_run(self, tmp_path: Path) -> None:
        """What it left running, with nothing of ours in its environment, could write in every later turn."""
        script = """
            last = "import time; [time.sleep(0.01) for _ in range(300)]"
            subprocess.Popen([sys.executable, "-c", last], env={}, start_new_session=True)
            ask()
            supervisor = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(int(supervisor), 9)
            write("app.py", "")
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, STRICT)
            end = outing.run()
        assert end.stop is StopReason.INFRA
        assert "nobody knows what" in end.why
        assert outing.turns() == []

    @pytest.mark.parametrize("way", sampled([LINKS, "write(here, 'a file')", "pass"], LINKS, "pass"))
    def test_that_moves_its_folder_away_gets_it_again_and_no_other_is_touched(self, tmp_path: Path, way: str) -> None:
        elsewhere = tmp_path / "elsewhere"
        (elsewhere / ".git").mkdir(parents=True)
        for name in (".git/HEAD", "precious"):
            (elsewhere / name).write_text("data")
        script = f"""
            here = os.getcwd()
            os.rename(here, here + "-%s" % os.getpid())
            {way}
            print(ask()[0], sorted(os.listdir(here)))
            os.rename(here, here + "-%s-again" % os.getpid())
            {way}
        """
        with wire.Server() as server:
            terms = Terms(gate=Gate.STRICT, words=(str(elsewhere),), budget=Budget(turns=2))
            outing = Outing(tmp_path, script, server, terms)
            untouched = outing.snapshot()
            outing.run()
        assert outing.said() == "200 ['app.py', 'docs', 'src', 'test_app.py']\n"
        assert not outing.workspace.is_symlink()
        assert outing.snapshot() == untouched
        assert sorted(p.name for p in elsewhere.rglob("*")) == [".git", "HEAD", "precious"]

    @pytest.mark.slow
    def test_that_takes_away_what_it_prints_into_ends_the_run_in_one_sentence(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            outing = Outing(tmp_path, "sh('rm -r ../output')\nask()", server, STRICT)
            end = outing.run()
        assert end.stop is StopReason.INFRA
        assert "cannot read" in end.why

    @pytest.mark.slow
    def test_leaves_nothing_behind_that_writes_later(self, tmp_path: Path) -> None:
        """What was started in one turn is gone in the next, and the workspace ends as its tree."""
        script = """
            mine = "late-%s" % len(list(pathlib.Path(sys.argv[1]).glob("output/agent-*.txt")))
            late = f"import itertools, time; [(time.sleep(0.01), open({mine!r}, 'a')) for _ in itertools.count()]"
            subprocess.Popen([sys.executable, "-c", late], start_new_session=True, env={})
            until(lambda: os.path.exists(mine))
            print(sorted(p.name for p in pathlib.Path(".").glob("late-*")))
            ask()
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, Terms(words=(str(tmp_path),), budget=Budget(attempts=2)))
            outing.run()
        assert outing.said(1) == "['late-1']\n"
        assert outing.said(2) == "['late-2']\n"
        assert not list(outing.workspace.glob("late-*"))

    @pytest.mark.slow
    def test_that_claims_keeps_its_edit_and_one_that_does_not_loses_it(self, tmp_path: Path) -> None:
        script = f"""
            print(claim("{RED}", "src/sums.py"))
            print(claim("test_app.py::test_0", "app.py"))
            print(claim("{RED}", "test_app.py"))
            write("docs/notes.md", "mine")
            print(claim("{RED}", "app.py"))
            write("app.py", {program(9)!r})
            print(ask()[0], open("app.py").read())
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, msgspec_replace(STRICT, budget=Budget(usd=1.0, attempts=1)))
            end = outing.run()
        lines = outing.said().splitlines()
        assert "'admitted': True" in lines[0]
        assert "is green; claim a test that is red" in lines[1]
        assert "read-only" in lines[2]
        assert "'admitted': True" in lines[3]
        assert "put back: changed around the tools: docs/notes.md" in lines[3]
        assert "edit_claim" not in outing.said(), "it claims in its shell"
        assert lines[4] == f"200 {program(9)}".rstrip("\n")
        assert outing.snapshot()["app.py"][0] == program(9)
        assert end.best is not None
        assert end.best.passed == 9
        claimed = [e.claimed for e in outing.events(ev.Write) if isinstance(e, ev.Write)]
        assert claimed == [(RED,)]

    @pytest.mark.slow
    def test_that_ends_a_refactoring_red_is_told_and_goes_on_and_after_the_third_time_all_goes_back(
        self, tmp_path: Path
    ) -> None:
        script = """
            told = sys.argv[1]
            turn = 1 + ("time 1 of 3" in told) + 2 * ("time 2 of 3" in told)
            print(turn, pathlib.Path("app.py").read_text().strip())
            ask()
            write("app.py", "PASSING = %d\\n" % (4 + turn))
        """
        with wire.Server() as server:
            terms = Terms(gate=Gate.REFACTOR, words=("{prompt}",), budget=Budget(attempts=9))
            outing = Outing(tmp_path, script, server, terms)
            end = outing.run()
        assert end.stop is StopReason.STALLED
        assert [outing.said(n).strip() for n in (2, 3)] == ["2 PASSING = 5", "3 PASSING = 6"]
        assert outing.snapshot()["app.py"][0] == FILES["app.py"]

    @pytest.mark.slow
    def test_whose_claimed_edit_stays_red_is_told_in_its_next_turn(self, tmp_path: Path) -> None:
        script = f"""
            claim("{RED}", "app.py")
            write("app.py", {program(8, "no better")!r})
            ask()
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, STRICT)
            end = outing.run()
        assert end.stop in (StopReason.STALLED, StopReason.ATTEMPTS)
        assert "jumar claim TEST FILE" in outing.prompt(1)
        assert "did not stay" not in outing.prompt(1)
        assert f"- app.py: still red: {RED}" in outing.prompt(2)
        assert outing.snapshot()["app.py"][0] == FILES["app.py"]

    @pytest.mark.slow
    def test_whose_edit_was_not_claimed_is_told_how_it_claims(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            outing = Outing(tmp_path, f"ask()\nwrite('app.py', {program(9)!r})", server, STRICT)
            outing.run()
        assert "run `jumar claim TEST_ID app.py` in the shell" in outing.prompt(2)
        assert "edit_claim" not in outing.prompt(2)

    @pytest.mark.parametrize("way", sampled(["mkfifo pipe", OVER, DEEP, UNREAD], OVER, DEEP, UNREAD))
    def test_that_leaves_what_no_tree_can_hold_has_it_taken_away(self, tmp_path: Path, way: str) -> None:
        script = f"""
            sh({way!r})
            ask()
            write("app.py", {program(17)!r})
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server)
            assert outing.run().stop is StopReason.GREEN

    @pytest.mark.slow
    @pytest.mark.parametrize("call", ["", "ask()"], ids=["unmetered", "metered"])
    def test_that_leaves_a_pipe_has_the_rest_of_its_turn_judged(self, tmp_path: Path, call: str) -> None:
        script = f"""
            write("app.py", {program(17)!r})
            os.mkfifo("pipe")
            {call}
        """
        with wire.Server() as server:
            terms = Terms(outside=ExternalAgentSettings(metered=bool(call)))
            outing = Outing(tmp_path, script, server, terms)
            assert outing.run().stop is StopReason.GREEN
        assert outing.reverts() == [(("pipe",), "changed around the tools: pipe is no regular file any more")]
        assert outing.snapshot()["app.py"][0] == program(17)

    @pytest.mark.slow
    def test_whose_claims_are_refused_turn_after_turn_is_stopped(self, tmp_path: Path) -> None:
        script = """
            for name in ("one", "two", "three"):
                claim(name, "app.py")
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, STRICT)
            end = outing.run()
        assert end.stop is StopReason.STALLED
        assert "three turns in six changed nothing" in end.why
        assert len(outing.turns()) == 3

    @pytest.mark.slow
    def test_that_changed_something_has_three_more_turns_before_it_is_stalled(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            outing = Outing(tmp_path, f"ask(); write('app.py', {program(9)!r})", server, Terms(budget=Budget(usd=1.0)))
            assert outing.run().stop is StopReason.STALLED
        assert len(outing.turns()) == 4

    @pytest.mark.slow
    def test_under_no_gate_changes_what_it_may_and_nothing_else(self, tmp_path: Path) -> None:
        script = f"""
            write("test_app.py", "PASSING")
            write("docs/notes.md", "mine")
            write("app.py", {program(17)!r})
            ask()
            print(open("test_app.py").read(), open("docs/notes.md").read())
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server)
            assert outing.run().stop is StopReason.GREEN
        assert outing.said() == "# the tests\n The total is a sum.\n\n"
        assert outing.snapshot() == {**outing.snapshot(), "app.py": (program(17), 0)}
        assert [paths for paths, _ in outing.reverts()] == [("docs/notes.md", "test_app.py")]


class TestATurn:
    """It is a process of its own, with nothing of the person's, and all of it ends."""

    @pytest.mark.slow
    def test_sees_nothing_of_the_person_s(self, tmp_path: Path) -> None:
        script = """
            print(json.dumps(dict(os.environ)))
            print(json.dumps([os.getcwd(), sys.stdin.read()]))
            ask()
        """
        kept = {"MY_OWN": "yes", "OTHER": "no", "SSH_AUTH_SOCK": "/x"}
        outside = ExternalAgentSettings(variables=("MY_OWN", "NOT_SET"))
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, Terms(environ=kept, outside=outside, budget=Budget(turns=1)))
            outing.run()
        first, second = outing.said().splitlines()
        env, (folder, stdin) = json.loads(first), json.loads(second)
        assert KEY not in first
        assert not {"OTHER", "SSH_AUTH_SOCK", "NOT_SET"} & env.keys()
        assert env["MY_OWN"] == "yes"
        token = env["OPENAI_API_KEY"]
        assert len(token) == 48
        assert env["ANTHROPIC_API_KEY"] == token
        assert env["OPENAI_BASE_URL"] == env["OPENAI_API_BASE"] == env["ANTHROPIC_BASE_URL"] + "/v1"
        assert env["JUMAR_HOST"] == f"{env['ANTHROPIC_BASE_URL']}/{token}"
        assert env["JUMAR_WORKSPACE"] == folder
        assert env["HOME"].startswith(str(tmp_path))
        assert not Path(env["HOME"]).exists(), "its home is gone with it"
        assert env["PATH"].split(":")[-1] == str(Path(sys.executable).parent)
        assert folder == str(outing.workspace)
        assert stdin == outing.prompt()

    @pytest.mark.slow
    def test_has_a_history_of_its_own_that_leads_nowhere(self, tmp_path: Path) -> None:
        """It may do with it what it likes; the next turn has a new one, and no other repository is found."""
        script = """
            run = lambda *words: subprocess.run(("git", *words), capture_output=True, text=True).stdout.strip()
            print([run("log", "--format=%s"), run("remote"), run("status", "--short"), run("stash", "list")])
            ask()
            write("app.py", open("app.py").read() + "# more")
            run("stash")
            outside = pathlib.Path(sys.argv[1])
            sh("rm -rf .git")
            print("above:", run("rev-parse", "--show-toplevel"))
            if not outside.exists():
                outside.mkdir()
                write(outside / "precious", "data")
                os.symlink(outside, ".git")
        """
        elsewhere = tmp_path / "elsewhere"
        os.system(f"git init -q {tmp_path}")  # noqa: S605  a repository that the runs lie in
        terms = Terms(words=(str(elsewhere),), budget=Budget(turns=2, attempts=None))
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, terms)
            outing.run()
        assert outing.said(1).splitlines() == ["['as the turn began', '', '', '']", "above: "]
        assert outing.said(2) == outing.said(1)
        assert (elsewhere / "precious").read_text() == "data"
        assert not os.path.lexists(outing.workspace / ".git")

    @pytest.mark.slow
    @pytest.mark.parametrize("words", [("{prompt}", "{model}"), ("--in={prompt_file}", "{model}")])
    def test_is_told_its_prompt_as_the_command_asks(self, tmp_path: Path, words: tuple[str, str]) -> None:
        script = """
            print(json.dumps([*sys.argv[1:], sys.stdin.read()]))
            ask()
        """
        terms = Terms(instruction="say {model} and {prompt}", words=words, budget=Budget(turns=1))
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, terms)
            outing.run()
        told, name, stdin = json.loads(outing.said())
        assert (name, stdin) == ("gpt-run", "")
        text = Path(told.removeprefix("--in=")).read_text() if told.startswith("--in=") else told
        assert text == outing.prompt()
        assert text.startswith("say {model} and {prompt}\n")

    @pytest.mark.slow
    def test_that_takes_too_long_is_ended_and_what_it_did_is_judged(self, tmp_path: Path) -> None:
        script = f"""
            ask()
            write("app.py", {program(17)!r})
            subprocess.Popen(["sleep", "60"])
            threading.Event().wait()
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, Terms(outside=ExternalAgentSettings(turn_seconds=2.0)))
            assert outing.run().stop is StopReason.GREEN
        assert outing.turns() == [{"exit": None, "why": "its turn took more than 2 s"}]

    @pytest.mark.slow
    def test_is_cut_off_by_the_cap_on_the_time_of_the_run(self, tmp_path: Path) -> None:
        script = """
            ask()
            write("mark", "x")
            threading.Event().wait()
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, Terms(budget=Budget(seconds=1.0)))
            end = outing.run()
        assert (end.stop, end.why) == (StopReason.BUDGET, "the cap on seconds is used up.")
        assert "mark" not in outing.snapshot()

    @pytest.mark.slow
    def test_that_changes_nothing_again_and_again_ends_the_run(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            outing = Outing(tmp_path, "ask()", server)
            assert outing.run().stop is StopReason.STALLED
        assert len(outing.turns()) == 3

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("script", "why"),
        [
            ("print('usage: mini [OPTIONS]'); sys.exit(2)", "did nothing (exit 2: usage: mini [OPTIONS])"),
            ("os.kill(os.getpid(), 9)", "did nothing (exit 137, without a word)"),
            ("write('app.py', 'PASSING = 17')", "changed files without a call through the proxy"),
        ],
    )
    def test_that_did_nothing_or_nobody_knows_at_what_price_ends_the_run(
        self, tmp_path: Path, script: str, why: str
    ) -> None:
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server)
            end = outing.run()
        assert end.stop is StopReason.INFRA
        assert why in end.why
        assert end.best is not None
        assert end.best.passed == 8
        assert outing.snapshot()["app.py"][0] == FILES["app.py"]

    @pytest.mark.slow
    def test_without_a_meter_is_allowed_where_the_person_says_so(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            terms = Terms(outside=ExternalAgentSettings(metered=False))
            outing = Outing(tmp_path, f"write('app.py', {program(17)!r})", server, terms)
            end = outing.run()
        assert end.stop is StopReason.GREEN
        assert "is not known" in end.why

    @pytest.mark.slow
    def test_whose_program_is_gone_ends_the_run_with_a_sentence(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            terms = Terms(outside=ExternalAgentSettings(argv=("/nowhere/agent",)))
            end = Outing(tmp_path, "", server, terms).run()
        assert "cannot start /nowhere/agent: No such file" in end.why


class TestItsCalls:
    """They are the kernel's: reserved, journaled, settled, one after the other."""

    @pytest.mark.slow
    def test_that_could_pass_a_cap_are_not_made_and_the_run_ends(self, tmp_path: Path) -> None:
        script = f"""
            ask("first")
            write("app.py", {program(12)!r})
            status, body = ask("second " * 2000)
            print(status, body["error"]["message"])
        """
        terms = Terms(budget=Budget(usd=0.01), price=Price(input=1.0, output=1.0))
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server, terms)
            end = outing.run()
        assert end.stop is StopReason.BUDGET
        assert len(server.requests) == len(outing.calls()) == 1
        assert "402 jumar: the run has ended (budget: the next call could pass the cap on usd" in outing.said()
        assert end.best is not None
        assert end.best.passed == 12, "what was done before is judged"
        assert outing.snapshot()["app.py"][0] == program(12)

    @pytest.mark.slow
    def test_of_two_processes_at_once_are_all_answered(self, tmp_path: Path) -> None:
        script = f"""
            child = subprocess.Popen([sys.executable, sys.argv[0], "child"]) if len(sys.argv) == 1 else None
            threads = [threading.Thread(target=lambda n=n: print(ask(f"{{len(sys.argv)}}-{{n}}")[0])) for n in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            child and child.wait()
            write("app.py", {program(17)!r})
        """
        with wire.Server(lambda r: wire.reply(r.body["messages"][0]["content"])) as server:
            outing = Outing(tmp_path, script, server)
            assert outing.run().stop is StopReason.GREEN
        assert outing.said().split() == ["200"] * 8
        assert {c.reply.content for c in outing.calls()} == {f"{p}-{n}" for p in (1, 2) for n in range(4)}
        requests = [e for e in outing.events(ev.ModelRequest) if isinstance(e, ev.ModelRequest)]
        assert len(requests) == 8
        assert {(r.tier, r.stage, r.model) for r in requests} == {("mid", "proxy", "openai:gpt-run")}

    @pytest.mark.slow
    def test_that_fail_are_the_agent_s_to_try_again(self, tmp_path: Path) -> None:
        script = f"""
            print(ask()[0])
            print(ask()[0])
            write("app.py", {program(17)!r})
        """
        with wire.Server([wire.rate_limited("7"), wire.reply("yes")]) as server:
            outing = Outing(tmp_path, script, server)
            assert outing.run().stop is StopReason.GREEN
        assert outing.said().split() == ["429", "200"]
        assert [(c.error, c.retry_after) for c in outing.calls()] == [("rate_limit", 7.0), ("", None)]

    @pytest.mark.slow
    def test_in_flight_when_the_agent_dies_are_settled(self, tmp_path: Path) -> None:
        def step(received: wire.Received) -> wire.Step:
            os.kill(int(received.body["messages"][0]["content"]), signal.SIGKILL)
            return wire.reply("too late", tokens=wire.Tokens(50, 5))

        with wire.Server(step) as server:
            outing = Outing(tmp_path, "ask(str(os.getpid()))", server, Terms(budget=Budget(turns=2)))
            end = outing.run()
        assert [(c.input_tokens, c.output_tokens, c.assumed) for c in outing.calls()] == [(50, 5, False)] * 2, end.why
        assert end.tokens == 110
        assert outing.turns()[0] == {"exit": 137}

    @pytest.mark.slow
    def test_in_flight_when_the_run_is_interrupted_are_settled_too(self, tmp_path: Path) -> None:
        never = threading.Event()
        with wire.Server([wire.slow(never)]) as server:
            outing = Outing(tmp_path, "ask()", server)

            def interrupt() -> None:
                assert server.arrived.wait(10)
                outing.halt()

            helper = threading.Thread(target=interrupt)
            helper.start()
            end = outing.run()
            helper.join()
        assert end.stop is StopReason.INTERRUPTED
        assert [(c.error, c.assumed) for c in outing.calls()] == [("cancelled", True)]
        assert not list(outing.folder.glob("*.private"))


class TestACommand:
    """It is words, and no shell reads them."""

    def test_is_split_as_a_shell_splits_it(self) -> None:
        assert split_command("env A='b c' sh -c 'x; y'", os.environ) == ("env", "A=b c", "sh", "-c", "x; y")

    def test_by_its_path_is_named_absolutely(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "agent").write_text("#!/bin/sh\n")
        (tmp_path / "agent").chmod(0o755)
        monkeypatch.chdir(tmp_path)
        assert split_command("./agent {prompt}", os.environ) == (str(tmp_path / "agent"), "{prompt}")

    @pytest.mark.parametrize("command", ["sh agent.sh", "env A=b python3.11 agent.sh --fast"])
    def test_with_a_script_that_lies_here_and_not_in_the_task_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        task = tmp_path / "task"
        task.mkdir()
        (tmp_path / "agent.sh").write_text("")
        monkeypatch.chdir(tmp_path)

        with pytest.raises(BadInput, match=f"where there is no agent.sh; give its absolute path, {tmp_path}/agent.sh"):
            refuse_relative_script(tuple(split(command)), task)
        refuse_relative_script(("sh", str(tmp_path / "agent.sh")), task)
        refuse_relative_script(("mini", "agent.sh"), task)
        (task / "agent.sh").write_text("")
        refuse_relative_script(tuple(split(command)), task)

    @pytest.mark.parametrize(
        ("command", "why"),
        [("", "is empty"), ("  ", "is empty"), ("mini 'x", "no closing quotation"), ("no-such-agent x", "no program")],
    )
    def test_that_is_none_is_refused(self, command: str, why: str) -> None:
        with pytest.raises(BadInput, match=why):
            split_command(command, os.environ)

    @pytest.mark.parametrize(
        ("command", "program"),
        [
            ("sh -c 'echo {prompt}'", "sh"),
            ("/bin/bash -ec {prompt}", "bash"),
            ("bash -o pipefail -c 'mini -t \"{prompt}\" | tee x'", "bash"),
            ("env A=1 nice -n 5 sh -c 'mini -t {prompt}'", "sh"),
            ("timeout 5 python3.12 -c 'print(\"{prompt}\")'", "python3.12"),
            ("node -e 'run(`{prompt}`)'", "node"),
        ],
    )
    def test_that_would_run_the_prompt_as_code_is_refused(self, command: str, program: str) -> None:
        with pytest.raises(BadInput, match=rf"{program} would run .*\{{prompt_file\}}, or .* standard input"):
            split(command)

    @pytest.mark.parametrize(
        "command",
        [
            "sh -c 'mini -t \"$1\"' sh {prompt}",
            "sh -c 'mini < {prompt_file}'",
            "claude -c -p {prompt}",
            "python3 agent.py -c {prompt}",
            "mini --shell sh -t {prompt}",
        ],
    )
    def test_that_takes_the_prompt_as_a_word_is_not(self, command: str) -> None:
        assert "{prompt" in " ".join(split(command))

    def test_takes_what_is_filled_in_as_it_is(self) -> None:
        argv = ("a", "-t={prompt}", "{model}{model}", "{other}")
        assert has_placeholder(argv, "prompt")
        assert not has_placeholder(argv, "prompt_file")
        texts = {"prompt": "{model} $(x) 'y' \0z", "model": "m", "prompt_file": ""}
        assert fill_placeholders(argv, texts) == ("a", "-t={model} $(x) 'y' z", "mm", "{other}")

    def test_has_no_room_for_a_prompt_without_end(self) -> None:
        with pytest.raises(BadInput, match="prompt_file"):
            fill_placeholders(("a", "{prompt}"), {"prompt": "x" * 130_000, "model": "", "prompt_file": ""})


class TestThePrompt:
    """It says what the turn begins with: the same state, the same text."""

    @pytest.mark.slow
    def test_under_no_gate_names_no_claims_and_under_never_no_results(self, tmp_path: Path) -> None:
        with wire.Server() as server:
            terms = Terms(policy=TestPolicy.NEVER, budget=Budget(turns=1), instruction="Write it.")
            outing = Outing(tmp_path, "ask()", server, terms)
            outing.run()
        assert outing.prompt().startswith("Write it.\n\nYou are in the root")
        assert "claim" not in outing.prompt()
        assert "passed" not in outing.prompt()
        assert "whatever is done to them is undone:\ntest_app.py\n" in outing.prompt()

    @pytest.mark.slow
    def test_shows_the_failures_of_what_lies_there(self, tmp_path: Path) -> None:
        script = f"""
            ask()
            write("app.py", {program(12)!r} if "8 of 17" in sys.stdin.read() else {program(3)!r})
        """
        with wire.Server() as server:
            outing = Outing(tmp_path, script, server)
            assert outing.run().stop is StopReason.ATTEMPTS
        assert "8 of 17 passed" in outing.prompt(1)
        assert "FAILED test_app.py::test_8\n" in outing.prompt(1)
        assert "12 of 17 passed" in outing.prompt(2)
        assert "did not stay" not in outing.prompt(2)
        assert "12 of 17 passed" in outing.prompt(3)
        assert "- app.py: 3 of 17 passed, the best has 12" in outing.prompt(3)


def msgspec_replace(terms: Terms, **changes: object) -> Terms:
    """*terms* with *changes*."""
    return Terms(**{name: getattr(terms, name) for name in terms.__struct_fields__} | changes)
