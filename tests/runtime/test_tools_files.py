"""Reading, searching and changing real files."""

import codecs
import os
import stat

import pytest

from segue.canonical.blocks import Media
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import Context, ToolError
from segue.runtime.toolbox import Toolbox
from segue.runtime.tools import standard_tools
from segue.runtime.tools.read import list_dir, read_file
from segue.runtime.tools.search import glob, grep
from segue.runtime.tools.write import edit_file, write_file
from tests.runtime.mcp_server import PIXEL
from tests.runtime.tool_runner import RecordingApprover, run, run_for_text, run_with_approval

# -------------------------------------------------------------------------------------------------------- reading


def test_lines_are_numbered_and_ranges_go_on(tmp_path):
    (tmp_path / "a").write_text("".join(f"line {n}\n" for n in range(1, 13)))
    assert run_for_text(read_file(), tmp_path, path="a").startswith(" 1\tline 1\n 2\tline 2\n")
    part = run_for_text(read_file(), tmp_path, path="a", start_line=11, lines=1)
    assert part == "11\tline 11\n[lines 11 to 11 of 12; continue with start_line=12]"
    assert run_for_text(read_file(), tmp_path, path="a", start_line=12) == "12\tline 12\n[lines 12 to 12 of 12]"
    assert run_for_text(read_file(), tmp_path, path="a", lines=2, numbered=False).startswith("line 1\nline 2\n[")
    with pytest.raises(ToolError, match="has 12 lines; line 13 is past its end"):
        run(read_file(), tmp_path, path="a", start_line=13)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße\n".encode(), "1\tGrüße"),
        (codecs.BOM_UTF8 + "Grüße\n".encode(), "1\tGrüße"),
        (codecs.BOM_UTF16_LE + "Grüße\n".encode("utf-16-le"), "1\tGrüße\n[read as utf-16-le]"),
        ("Grüße\n".encode("cp1252"), "1\tGrüße\n[read as cp1252]"),
        (b"a\r\nb\r\n", "1\ta\n2\tb"),
        (b"a\rb\r", "1\ta\n2\tb"),
        (b"no end", "1\tno end"),
        (b"a\x1b[31mred\n", "1\ta\x1b[31mred"),
    ],
)
def test_encodings(data, text, tmp_path):
    (tmp_path / "a").write_bytes(data)
    assert run_for_text(read_file(), tmp_path, path="a") == text


def test_binary_file_is_reported(tmp_path):
    (tmp_path / "empty").touch()
    assert run_for_text(read_file(), tmp_path, path="empty") == "empty is empty"
    (tmp_path / "program").write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(ToolError, match="program is not a text: a program, 7 bytes"):
        run(read_file(), tmp_path, path="program")
    with pytest.raises(ToolError, match="is a folder; list_dir"):
        run(read_file(), tmp_path, path=".")
    (tmp_path / "README.md").touch()
    with pytest.raises(ToolError, match=r"there is no readme\.txt; there is README\.md"):
        run(read_file(), tmp_path, path="readme.txt")
    with pytest.raises(ToolError, match="is not a folder"):
        run(read_file(), tmp_path, path="empty/a")


def test_a_picture_is_shown(tmp_path):
    (tmp_path / "dot").write_bytes(PIXEL)
    _, picture = run(read_file(), tmp_path, path="dot").content
    assert isinstance(picture, Media)
    assert (picture.kind, picture.mime) == ("image", "image/png")
    (tmp_path / "huge").write_bytes(PIXEL + b"\0" * 4_000_000)
    with pytest.raises(ToolError, match="too large to be shown"):
        run(read_file(), tmp_path, path="huge")


def test_a_file_that_does_not_fit_into_memory_is_read_in_parts(tmp_path):
    with (tmp_path / "log").open("wb") as file:
        for number in range(1, 300_001):
            file.write(b"%d %s\n" % (number, b"x" * 80))
    output = run_for_text(read_file(), tmp_path, path="log", start_line=250_000, lines=2)
    assert output.startswith("250000\t250000 xxx")
    assert "continue with start_line=250002" in output
    (tmp_path / "long").write_bytes(b"y" * 25_000_000)
    output = run_for_text(read_file(), tmp_path, path="long")
    assert "longer than 2,000 characters" in output
    assert len(output) < 3_000


def test_list_dir(tmp_path):
    (tmp_path / "b").write_text("12345")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert run_for_text(list_dir(), tmp_path) == "sub/\nb (5 bytes)\nlink -> /etc/passwd"
    assert run_for_text(list_dir(), tmp_path, path="sub") == "sub is empty"
    with pytest.raises(ToolError, match="is not a folder"):
        run(list_dir(), tmp_path, path="b")


# ------------------------------------------------------------------------------------------------------ searching


@pytest.fixture
def project(tmp_path):
    for name, text in {
        "main.py": "import os\n\ndef main():\n    return os\n",
        "src/a.py": "def helper():\n    pass\n",
        "src/deep/b.ts": "function helper() {}\n",
        "src/deep/c.py": "# nothing\n",
        "build/out.py": "def helper(): built\n",
        "node_modules/x/y.py": "def helper(): foreign\n",
        ".git/config": "helper\n",
        ".hidden/d.py": "def helper(): hidden\n",
        "keep.log": "helper\n",
        "drop.log": "helper\n",
        ".gitignore": "build/\n*.log\n!keep.log\n# no rule\n\n/src/deep/b.*\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data.bin").write_bytes(b"helper\0helper")
    (tmp_path / "away").symlink_to("/")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "*.py"}, ["main.py", ".hidden/d.py", "src/a.py", "src/deep/c.py"]),
        ({"pattern": "./src/*.py"}, ["src/a.py"]),
        ({"pattern": "src/**/*.py"}, ["src/a.py", "src/deep/c.py"]),
        ({"pattern": "**/*.{ts,log}"}, ["keep.log"]),
        ({"pattern": "*.ts", "ignored": True}, ["src/deep/b.ts"]),
        ({"pattern": "*.py", "path": "src"}, ["src/a.py", "src/deep/c.py"]),
        ({"pattern": "dee?"}, ["src/deep/"]),
        ({"pattern": "[!m]*.py", "path": "src"}, ["src/a.py", "src/deep/c.py"]),
        ({"pattern": "passwd"}, []),
    ],
)
def test_glob(arguments, found, project):
    output = run_for_text(glob(), project, **arguments)
    assert [line for line in output.split("\n") if not line.startswith("no match")] == found


def test_glob_is_limited(project):
    assert run_for_text(glob(), project, pattern="*.py", limit=1).split("\n")[1].startswith("[the first 1;")
    with pytest.raises(ToolError, match="relative to path"):
        run(glob(), project, pattern="../*")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": r"def \w+\("}, ["main.py:3:", ".hidden/d.py:1:", "src/a.py:1:"]),
        ({"pattern": "^def helper"}, [".hidden/d.py:1:", "src/a.py:1:"]),
        ({"pattern": "HELPER", "ignore_case": True, "glob": "*.py"}, [".hidden/d.py:1:", "src/a.py:1:"]),
        ({"pattern": "helper()", "literal": True}, [".hidden/d.py:1:", "src/a.py:1:"]),
        ({"pattern": "helper", "glob": "src/**/*.ts", "ignored": True}, ["src/deep/b.ts:1:"]),
        ({"pattern": "helper() {}", "ignored": True, "path": "src"}, []),
        ({"pattern": r"helper\(\) {}", "ignored": True, "path": "src"}, ["src/deep/b.ts:1:"]),
        ({"pattern": "return", "path": "main.py"}, ["main.py:4:"]),
        ({"pattern": "import os$"}, ["main.py:1:"]),
        ({"pattern": "root:"}, []),
    ],
)
def test_grep(arguments, found, project):
    output = [line for line in run_for_text(grep(), project, **arguments).split("\n") if not line.startswith("[")]
    assert len(output) == len(found)
    assert all(line.startswith(start) for line, start in zip(output, found, strict=True))


def test_grep_shows_what_stands_around(tmp_path):
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1, 21)))
    assert run_for_text(grep(), tmp_path, pattern="^(3|5|15)$", context=1).split("\n") == [
        *("a-2-2", "a:3:3", "a-4-4", "a:5:5", "a-6-6", "--", "a-14-14", "a:15:15", "a-16-16")
    ]
    output = run_for_text(grep(), tmp_path, pattern="1", limit=3)
    assert output.split("\n") == [
        "a:1:1",
        "a:10:10",
        "a:11:11",
        "[there are more matches; narrow the pattern or the path]",
    ]
    assert run_for_text(grep(), tmp_path, pattern="1", files_only=True) == "a"
    assert "more" not in run_for_text(grep(), tmp_path, pattern="^2", limit=2)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "a*a*a*a*a*a*a*a*b", "(.*a){25}b"])
def test_a_pattern_that_would_take_for_ever_does_not(pattern, tmp_path):
    (tmp_path / "a").write_text("a" * 20_000 + "!\n")
    assert "no match" in run_for_text(grep(), tmp_path, pattern=pattern)


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "a{99999}{99999}", "x" * 3000])
def test_invalid_pattern_is_reported(pattern, tmp_path):
    with pytest.raises(ToolError, match="pattern"):
        run(grep(), tmp_path, pattern=pattern)


def test_unreadable_files_are_not_found(project):
    permissions = Permissions(deny=["read_file(src/*)"])
    tools = {tool.name: tool for tool in standard_tools(permissions=permissions)}
    assert "src" not in run_for_text(tools["grep"], project, pattern="helper")
    assert "src/a.py" not in run_for_text(tools["glob"], project, pattern="*.py")
    with pytest.raises(ToolError, match=r"a rule denies reading src/a\.py"):
        run(tools["grep"], project, pattern="helper", path="src/a.py")


@pytest.mark.parametrize("deny", ["read_file(src/*)", "{tool}(src/*)"])
@pytest.mark.parametrize(("name", "pattern"), [("grep", "helper"), ("glob", "*.py")])
def test_rules_of_a_toolbox_apply_to_searches(project, deny, name, pattern):
    allowed, denied = (
        run_for_text(Toolbox(standard_tools(), project, Permissions(deny=rules)).find(name), project, pattern=pattern)
        for rules in ([], [deny.format(tool=name)])
    )
    assert "src/a.py" in allowed
    assert "src/a.py" not in denied


# ------------------------------------------------------------------------------------------------------- writing


def test_write_file(tmp_path):
    assert (
        run_for_text(write_file(), tmp_path, path="a/b/c.txt", content="Grüße\n")
        == "created a/b/c.txt: 1 line, 8 bytes"
    )
    assert (tmp_path / "a/b/c.txt").read_bytes() == "Grüße\n".encode()
    assert run_for_text(write_file(), tmp_path, path="a/b/c.txt", content="x").startswith("replaced")
    assert sorted(path.name for path in (tmp_path / "a/b").iterdir()) == ["c.txt"]
    with pytest.raises(ToolError, match="is a folder"):
        run(write_file(), tmp_path, path="a", content="x")
    with pytest.raises(ToolError, match="lone surrogates"):
        run(write_file(), tmp_path, path="x", content="\ud800")


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "run.sh"
    path.write_text("old")
    path.chmod(0o750)
    with path.open() as reader:
        run(write_file(), tmp_path, path="run.sh", content="new")
        assert reader.read() == "old"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert path.read_text() == "new"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    run(write_file(), tmp_path, path="link", content="new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_cancelled_writer_writes_nothing(tmp_path):
    context = Context(tmp_path)
    context.cancelled.set()
    with pytest.raises(ToolError, match="nothing was written"):
        write_file().run({"path": "a", "content": "x"}, context)
    assert list(tmp_path.iterdir()) == []


def test_the_question_shows_what_changes(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    somebody = RecordingApprover("no")
    run_with_approval(write_file(), tmp_path, {"path": "a", "content": "one\nthree\n"}, approver=somebody)
    run_with_approval(
        edit_file(), tmp_path, {"path": "a", "old_string": "two", "new_string": "three"}, approver=somebody
    )
    for question in somebody.questions:
        assert "-two\n+three" in question.detail
        assert question.subject == "a"
    assert (tmp_path / "a").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a b c", "b", "x", b"a x c"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\nb\n", "a\r\nb", "c\r\nd", b"c\nd\n"),
        (codecs.BOM_UTF8 + "ä\n".encode(), "ä", "ö", codecs.BOM_UTF8 + "ö\n".encode()),
        ("ä\n".encode("cp1252"), "ä", "ö", "ö\n".encode("cp1252")),
        (codecs.BOM_UTF16_BE + "ä".encode("utf-16-be"), "ä", "ö", codecs.BOM_UTF16_BE + "ö".encode("utf-16-be")),
        (b"no end", "end", "", b"no "),
    ],
)
def test_edit_keeps_what_it_does_not_change(before, old, new, after, tmp_path):
    (tmp_path / "a").write_bytes(before)
    (tmp_path / "a").chmod(0o700)
    assert run_for_text(edit_file(), tmp_path, path="a", old_string=old, new_string=new).startswith("edited a")
    assert (tmp_path / "a").read_bytes() == after
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_edit_everywhere(tmp_path):
    (tmp_path / "a").write_text("x y x\nx\n")
    assert "3 places" in run_for_text(edit_file(), tmp_path, path="a", old_string="x", new_string="z", replace_all=True)
    assert (tmp_path / "a").read_text() == "z y z\nz\n"


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ("x", "y", r"occurs 3 times in a \(lines 1, 1, 4\)"),
        ("", "y", "old_string is empty"),
        ("x x", "x x", "are equal"),
        ("  return 1\n    more", "y", "With other whitespace it is at line 2:\n    return 1\nmore"),
        ("retrun 1", "y", "The most similar line is 2:\n    return 1"),
        ("    return 1\nother", "y", "Its first line is line 2, but the lines after it differ"),
        ("nothing like it at all", "y", "is not in a; nothing was changed$"),
    ],
)
def test_edits_that_do_not_fit(old, new, output, tmp_path):
    text = "x x\n    return 1\nmore\nx\n"
    (tmp_path / "a").write_text(text)
    with pytest.raises(ToolError, match=output):
        run(edit_file(), tmp_path, path="a", old_string=old, new_string=new)
    assert (tmp_path / "a").read_text() == text


def test_edits_of_what_is_not_there(tmp_path):
    with pytest.raises(ToolError, match="there is no a"):
        run(edit_file(), tmp_path, path="a", old_string="x", new_string="y")
    (tmp_path / "latin").write_bytes("ä".encode("cp1252"))
    with pytest.raises(ToolError, match="can't represent"):
        run(edit_file(), tmp_path, path="latin", old_string="ä", new_string="日")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_read_only_stays_so(tmp_path):
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        run(write_file(), tmp_path, path="a", content="y")


def test_writers_are_identified_by_resolved_path(tmp_path):
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    for tool in (write_file(), edit_file()):
        assert tool.writes({"path": "link"}, tmp_path) == tool.writes({"path": "./x/../real"}, tmp_path)
        assert tool.writes({}, tmp_path) == ()


@pytest.mark.parametrize("rule", ["read_file(secrets/*)", "grep(secrets/*)"])
def test_grep_reports_why_a_file_is_skipped(rule, tmp_path):
    (tmp_path / "secrets").mkdir()
    for name in ("secrets/a", "secrets/b", "plain"):
        (tmp_path / name).write_text("needle\n")
    (tmp_path / "link").symlink_to("secrets/a")
    tool = next(tool for tool in standard_tools(permissions=Permissions(deny=[rule])) if tool.name == "grep")
    assert run_for_text(tool, tmp_path, pattern="needle").split("\n") == [
        "plain:1:needle",
        "[1 file skipped: links are not followed]",
        "[2 files skipped: a rule denies reading them]",
    ]
