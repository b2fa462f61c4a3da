"""What a model may look at: right, whole where it fits, bounded where it does not."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.core.prompts.feedback import OUTPUT_LIMIT
from jumar.runtime import read_tools

FILES = {
    "a.py": b"one\ntwo\nthree",
    "src/b.py": "x = '\u2028\x0c'\r\ny = {e}\r\n".encode(),
    "src/c.bin": b"\xff\xfe",
    "src/d.bin": b"one\0two",
    "srcs/e.py": b"",
}


def rows(answer: dict[str, object], key: str) -> list[str]:
    """The rows of *answer*."""
    found = answer[key]
    assert isinstance(found, list)
    return found


def test_a_folder_is_listed_by_its_whole_name() -> None:
    assert read_tools.list_files(FILES, "") == {"ok": True, "files": sorted(FILES)}
    assert read_tools.list_files(FILES, "src") == {"ok": True, "files": ["src/b.py", "src/c.bin", "src/d.bin"]}
    assert read_tools.list_files(FILES, "src/") == read_tools.list_files(FILES, "src")
    assert read_tools.list_files(FILES, "a.py") == {"ok": True, "files": ["a.py"]}


def test_an_empty_repository_has_no_files_and_an_unknown_folder_is_an_error() -> None:
    assert read_tools.list_files({}, "") == {"ok": True, "files": []}
    assert "no file or folder 'sr'" in str(read_tools.list_files(FILES, "sr")["error"])
    assert "no file or folder 'sr'" in str(read_tools.search_files(FILES, "x", "sr")["error"])


@pytest.mark.parametrize(
    ("path", "start", "end", "shown", "text"),
    [
        ("a.py", 1, 0, "1-3 of 3", "one\ntwo\nthree"),
        ("a.py", 2, 2, "2-2 of 3", "two\n"),
        ("a.py", 2, 99, "2-3 of 3", "two\nthree"),
        ("src/b.py", 1, 1, "1-1 of 2", "x = '\u2028\x0c'\r\n"),
        ("srcs/e.py", 1, 0, "0-0 of 0", ""),
    ],
)
def test_lines_are_counted_as_in_a_traceback(path: str, start: int, end: int, shown: str, text: str) -> None:
    assert read_tools.read_lines(FILES, path, start, end) == {"ok": True, "lines": shown, "text": text}


@pytest.mark.parametrize(
    ("path", "start", "end", "why"),
    [
        ("b.py", 1, 0, "no file 'b.py'"),
        ("src", 1, 0, "no file 'src'"),
        ("src/c.bin", 1, 0, "no UTF-8"),
        ("a.py", 0, 0, "a.py has 3 lines, counted from 1; 0 to 3 are not there"),
        ("a.py", 4, 9, "4 to 9 are not there"),
        ("a.py", 3, 2, "3 to 2 are not there"),
        ("a.py", 1, -1, "1 to -1 are not there"),
    ],
)
def test_what_cannot_be_read_says_why(path: str, start: int, end: int, why: str) -> None:
    answer = read_tools.read_lines(FILES, path, start, end)

    assert answer["ok"] is False
    assert why in str(answer["error"])


def test_a_long_file_is_cut_after_a_whole_line_and_can_be_read_on() -> None:
    whole = "".join(f"line number {n}\n" for n in range(1, 3001))
    files, texts, start = {"long.py": whole.encode()}, list[str](), 1
    while start <= 3000:
        answer = read_tools.read_lines(files, "long.py", start, 0)
        texts.append(str(answer["text"]))
        first, last = str(answer["lines"]).partition(" ")[0].split("-")
        assert int(first) == start
        assert len(texts[-1]) <= OUTPUT_LIMIT
        start = int(last) + 1

    assert "".join(texts) == whole


def test_one_line_that_is_too_long_shows_its_head_and_tail() -> None:
    answer = read_tools.read_lines({"a": b"<" + b"x" * 50_000 + b">\nend\n"}, "a", 1, 0)

    text = str(answer["text"])
    assert (text[0], text[-2:], answer["lines"]) == ("<", ">\n", "1-1 of 2")
    assert len(text) <= OUTPUT_LIMIT


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("o", "", ["a.py:1: one", "a.py:2: two"]),
        ("^t", "a.py", ["a.py:2: two", "a.py:3: three"]),
        ("e}$", "", ["src/b.py:2: y = {e}"]),
        ("= {e}", "", ["src/b.py:2: y = {e}"]),
        (r"\{e\}", "", ["src/b.py:2: y = {e}"]),
        ("e{2}", "", ["a.py:3: three"]),
        ("[{]", "src", ["src/b.py:2: y = {e}"]),
        ("nothing", "", []),
        (r"^[\w' ]+= [({]", "", ["src/b.py:2: y = {e}"]),
        (r"(?i:O)(?=n).(?<=n)", "a.py", ["a.py:1: one"]),
        ("[[o]ne", "a.py", ["a.py:1: one"]),
    ],
)
def test_a_search_finds_lines(pattern: str, path: str, found: list[str]) -> None:
    assert read_tools.search_files(FILES, pattern, path) == {"ok": True, "matches": found}


@pytest.mark.parametrize(
    "pattern",
    [
        "(", "[a", "*", "(?<n", r"\L<x>", "(?P<a>x)(?P=b)", "(?:(?R))*a", "(a)(?1)", "(?P<n>a)(?&n)", "(?P<n>a)(?P>n)",
        "(?|a|b)", r"\K", r"\X", "(?<=a+)b", "(?b)a",
    ],
)  # fmt: skip
def test_a_pattern_that_is_none_is_told(pattern: str) -> None:
    assert "is no regular expression" in str(read_tools.search_files(FILES, pattern, "")["error"])


@pytest.mark.slow
def test_a_pattern_that_takes_for_ever_is_given_up() -> None:
    files = {f"{n}.txt": b"a" * 40 + b"b\n" for n in range(50)}
    began = monotonic()

    answer = read_tools.search_files(files, "(a|aa)+$", "", 0.2)

    assert monotonic() - began < read_tools.SEARCH_SECONDS
    assert "takes too long" in str(answer["error"])


@pytest.mark.slow
def test_no_line_may_take_all_the_time_there_is() -> None:
    began = monotonic()

    answer = read_tools.search_files({"a.txt": b"a" * 40 + b"b\n"}, "(a|aa)+$", "", 60.0)

    assert monotonic() - began < 30
    assert "takes too long" in str(answer["error"])


def test_all_that_is_shown_is_bounded() -> None:
    deep = {f"{'d' * 200}/{n}.py": b"x" * 1000 + b"\n" for n in range(500)}

    files, found = read_tools.list_files(deep, ""), read_tools.search_files(deep, "x", "")

    assert len("\n".join(rows(files, "files"))) <= OUTPUT_LIMIT
    assert len(rows(files, "files")) + int(str(files["more"])) == 500
    assert len("\n".join(rows(found, "matches"))) <= OUTPUT_LIMIT
    assert found["more"] is True


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(st.sampled_from("ab\n\r\u2028 "), max_size=40), st.integers(-1, 12), st.integers(-1, 12))
def test_what_is_read_is_a_piece_of_the_file(text: str, start: int, end: int) -> None:
    answer = read_tools.read_lines({"f": text.encode()}, "f", start, end)

    if answer["ok"]:
        count = len(text.split("\n")) - text.endswith("\n") if text else 0
        assert str(answer["text"]) in text
        assert str(answer["lines"]).endswith(f" of {count}")
    if start == 1 and end == 0:
        assert answer["text"] == text


TOO_MUCH = {
    "(" * 500 + ")" * 500: "at most 200",
    "(?i)" + "ſ" * 3000: "at most 200",
    "(" * 30 + "a" + ")+" * 30: "groups 30 deep",
    "[)(]" * 20 + "(" * 9 + ")" * 9: "groups 9 deep",
    "((((a{1000}){1000}){1000}){1000})": "counted repeats",
    "(?:(?:a{2,101}){,10}){10}": "counted repeats",
    "a{" + "9" * 190 + "}": "counted repeats",
    "(?x)#[\n((((((((((((a)+)+)+)+)+)+)+)+)+)+)+)+#]": "flag x",
    "(?#[)((((((((((((a)+)+)+)+)+)+)+)+)+)+)+)+(?#])": "a comment",
    "(?i-x:a)": "flag x",
    "(?:(?R))*a": "is no regular expression",
}


@pytest.mark.slow
def test_what_would_take_the_machine_is_refused() -> None:
    child = (
        "import json, sys; from jumar.runtime import read_tools\n"
        "files = {'a.py': b'a' * 50_000}\n"
        "print(json.dumps([read_tools.search_files(files, p, '').get('error', '') for p in json.load(sys.stdin)]))"
    )
    most = 1 << 30
    ran = subprocess.run(
        [sys.executable, "-c", child],
        input=json.dumps(list(TOO_MUCH)),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )

    for said, why in zip(json.loads(ran.stdout), TOO_MUCH.values(), strict=True):
        assert why in said


PIECES = st.sampled_from([
    "a", "b", ".", r"\w", "[ab]", "[^a]", "ſ", "K", "ß", "|", "^", "$", r"\b", "(", "(?:", "(?=", "(?!", "(?<=", "(?>",
    "(?i:", "(?(1)", "(?P<n>", "(?P=n)", r"\1", ")", ")", ")+", ")*", "){2,}", "){1,3}", "+", "*", "?", "*+", "{2,}",
    "{100}", "{", "}", "{}", "{,}", "[", "[^", "]", "[[:alpha:]]", "&&", "--", r"\p{L}", r"\R", "(?R)", "(?1)", "(?|",
    "(?&n)", r"\N{DIGIT ONE}", r"\N{", "\\", "#", "(?#", "(?x)", "(?i)", "{e<=1}", "\0", "\n", "\ud800", "٣",
])  # fmt: skip
GROUPS = st.recursive(
    st.sampled_from(["a", "b", "a|b", ".", "ſ", r"\w"]),
    lambda inner: st.builds(
        "{}{}{}){}".format,
        st.sampled_from(["(", "(?:", "(?=", "(?>", "(?i:"]),
        inner,
        inner | st.sampled_from(["", "|a", "|"]),
        st.sampled_from(["", "+", "*", "{2,}", "{1,3}", "?", "*+", "+?"]),
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join) | st.builds("{}{}".format, GROUPS, st.sampled_from(["", "b", "$"])))
def test_whatever_is_searched_for_comes_to_an_answer_in_time(pattern: str) -> None:
    files = {"a.py": b"b" + b"a" * 3000 + b"\n" + b"ab " * 1000, "b.py": "ſKß".encode() * 1000}
    began = monotonic()

    answer = read_tools.search_files(files, pattern, "", 0.05)

    assert monotonic() - began < 3
    assert answer["ok"] or answer["error"]
