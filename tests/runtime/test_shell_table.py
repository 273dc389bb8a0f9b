"""The table of reading forms: what a row does not list asks, in every spelling; what it lists changes nothing.

The rows are parsed here with a parser of its own. The words that are not listed come from a generator, and from the
manuals of the programs on this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.runtime.permissions import Permissions
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_table import READERS, READING, RESPONSE_FILES, WORK
from tests.budget import examples

FOLDER = Path(__file__).parent


def decide(command: str, rule: str, folder: Path = FOLDER) -> str:
    request = shell().approval_request({"command": command}, folder)
    assert request is not None
    return Permissions(allow=[f"shell({rule})"]).decide(request)[0]


def read_rows(section: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the operands and the options of each program and subcommand."""
    rows: dict[str, tuple[list[str], list[str]]] = {}
    for line in section.strip().replace("\n  ", " ").split("\n"):
        if line.startswith("#"):
            continue
        names, operands, options = (part.strip() for part in (line + " ").split(" |", 2))
        programs, _, subcommands = names.partition(": ")
        for program in programs.split(", "):
            for key in [f"{program} {name}" for name in subcommands.split(", ")] if subcommands else [program]:
                assert key not in rows, key
                implied = [] if operands == "code" else ["--help", "--version"]
                rows[key] = operands.split(), [*options.split(), *implied]
    return rows


READ = read_rows(READERS) | read_rows(READING)
WORKING = read_rows(WORK)
ROWS = {**READ, **WORKING}
# All words of these are text.
LISTED = {key: row for key, row in ROWS.items() if row[0] != ["text"]}


def names_of(options: list[str]) -> set[str]:
    return {option.partition("=")[0].removesuffix("[") for option in options}


def has_names(options: list[str]) -> bool:
    return any(re.fullmatch(r"-[^-].+", name) and name != "-NUM" for name in names_of(options))


def is_listed(word: str, options: list[str]) -> bool:
    """Return whether a word is an option of the row, or begins with listed ones that may hide the rest as a value."""
    name = word.partition("=")[0]
    if word.startswith("--") or has_names(options):
        return name in names_of(options)
    flags = {option[1] for option in options if re.fullmatch("-[^-]", option)}
    valued = {option[1] for option in options if re.fullmatch(r"-[^-]\[?=.*", option)}
    if "-NUM" in options and word[1:].isdigit():
        return True
    letters = word[1:].lstrip("".join(flags)) if flags else word[1:]
    return not letters or letters[0] in valued


def test_the_rows_are_distinct_and_their_words_are_well_formed() -> None:
    for key, (operands, options) in ROWS.items():
        assert operands, key
        assert len(options) == len(set(options)), key
        for option in options:
            assert re.fullmatch(r"--?[^-\s=\[][^\s=\[]*(?:\[=\]|=\S*)?", option), (key, option)
        if has_names(options):
            assert not any("[=]" in option for option in options if not option.startswith("--")), key


# --------------------------------------------------------------------------------------- words that are not listed

LONG = st.text(string.ascii_lowercase + "-", min_size=2, max_size=12).map(lambda text: f"--{text.strip('-') or 'x'}")
SHORT = st.text(string.ascii_letters + string.digits, min_size=1, max_size=4).map(lambda text: f"-{text}")
VALUES = ["", " value", "=value", "=/etc/x", " -", "value"]
WORDS = st.lists(st.sampled_from(["a", "src/b.py", "'c d'", "1"]), max_size=2).map(" ".join)
QUOTES = ["{}", "'{}'", '"{}"', "\\{}", "-''{rest}", "{}''"]
WRAPPERS = ["", "timeout 5 ", "nice -n 5 ", "env ", "nohup ", "command ", "sudo ", "xargs ", "A=b ", "/usr/bin/", "./"]


def abbreviations(options: list[str]) -> list[str]:
    """Return shortened long options, which GNU getopt accepts."""
    long = [name for name in names_of(options) if name.startswith("--")]
    return [name[:end] for name in long for end in range(4, len(name))]


@examples(5)
@given(st.data())
def test_a_word_that_is_not_listed_asks(data: st.DataObject) -> None:
    """In every spelling, at every place, behind every wrapper, for every rule with a wildcard that lacks the word."""
    key = data.draw(st.sampled_from(sorted(LISTED)))
    operands, options = LISTED[key]
    candidates = [LONG, SHORT]
    if short := abbreviations(options):
        candidates.append(st.sampled_from(short))
    word = data.draw(st.one_of(candidates).filter(lambda word: not is_listed(word, options)))
    spelled = data.draw(st.sampled_from(QUOTES)).format(word, rest=word[1:]) + data.draw(st.sampled_from(VALUES))
    before = "" if "code" in operands else data.draw(WORDS)
    wrapper = data.draw(st.sampled_from(WRAPPERS))
    command = " ".join(f"{wrapper}{key} {before} {spelled} {data.draw(WORDS)}".split())
    program = key.split()[0]
    rules = [f"{program} *", f"{wrapper}{program} *"] if before else [f"{key} *", f"{program} *", f"{wrapper}{key} *"]
    assert decide(command, data.draw(st.sampled_from(rules))) == "ask", command


def test_the_words_of_the_table_itself_are_no_operands() -> None:
    for key, (operands, _) in LISTED.items():
        for kind in set(operands) & {"none", "code"}:
            assert decide(f"{key} {kind}", f"{key} *") == "ask"


def test_the_programs_of_the_documentation_are_in_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()
    table = page.partition("### Reading forms")[2].partition("## Processes")[0]
    columns = [line.split("|")[1] for line in table.split("\n") if line.startswith("| `")]
    programs = re.findall("`([^`]+)`", " ".join(columns))
    assert len(programs) > 40
    assert not [
        program
        for program in programs
        if program not in ROWS and not any(key.startswith(f"{program} ") for key in ROWS)
    ]


@examples(1)
@given(st.data())
def test_no_value_hides_an_option(data: st.DataObject) -> None:
    """An option with a value, a combined one, or `--` before it does not cover an option that is not listed."""
    key = data.draw(st.sampled_from(sorted(key for key, (_, options) in LISTED.items() if options)))
    _, options = LISTED[key]
    listed = data.draw(st.sampled_from(options)).partition("=")[0].removesuffix("[").replace("NUM", "5")
    word = data.draw(st.one_of(LONG, SHORT).filter(lambda word: not is_listed(word, options)))
    if not re.fullmatch(r"-\d+[A-Za-z]?", word):
        assert decide(f"{key} {listed} {word}", f"{key} *") == "ask", (key, listed, word)


RISKS = [
    "$X",
    '"$X"',
    "$(x)",
    "`x`",
    "${X:-x}",
    "{-x,y}",
    "[-]x",
    "-{x,y}",
    "> x",
    "< x",
    "<<< x",
    "<(x)",
    "& x",
    "; x",
]


@pytest.mark.parametrize("key", sorted(READ))
def test_what_the_shell_may_expand_to_an_option_asks(key: str, tmp_path: Path) -> None:
    is_reader = key in read_rows(READERS)
    for risk in RISKS:
        if not is_reader or not re.fullmatch(r"\"?\$X\"?|[-{\[].*", risk):
            assert decide(f"{key} {risk}", f"{key} *", tmp_path) == "ask", risk
    (tmp_path / "-x").touch()
    if not is_reader:
        assert decide(f"{key} *", f"{key} *", tmp_path) == "ask"
        assert decide(f"{key} *x", f"{key.split(maxsplit=1)[0]} *", tmp_path) == "ask"


AT_PROGRAMS = """
addr2line ar as c++filt gcc g++ cc clang clang++ clang-format clang-tidy gfortran ld ld.gold ld.lld llc lli llvm-link
nm objcopy objdump ranlib readelf size strings strip windres dlltool elfedit gprof rustc rustdoc java javac javadoc jar
jlink kotlinc scalac swiftc tsc dotnet csc ghc dmd ldc2 nvcc pytest mypy llvm-nm gcc-ar x86_64-linux-gnu-objdump
arm-none-eabi-gcc-13 clang-tidy-15 /usr/bin/nm
"""


@pytest.mark.parametrize("program", sorted({*RESPONSE_FILES, *AT_PROGRAMS.split()}))
def test_a_file_of_options_asks(program: str, tmp_path: Path) -> None:
    """As an operand, as a value, after an operand, and behind options that only the rule lists."""
    for word in ("@opts", "'@opts'", '"@"opts', "\\@opts", "@*", "@{a,b}", "{@a,b}", "[@]opts", "@$X"):
        for before in ("", "a", "-j", "-x", "--plugin", "-- ", "-- a", "-t a", "t"):
            command = f"{program} {before} {word}"
            assert decide(command, f"{program} *", tmp_path) == "ask", command
            assert decide(f"timeout 5 {command}", f"{program} {before} *".replace("  ", " "), tmp_path) == "ask", (
                command
            )
    (tmp_path / "@opts").touch()
    for word in ("*", "?opts", "[!a]opts", "[[:punct:]]opts", "*s"):
        assert decide(f"{program} -x {word}", f"{program} -x *", tmp_path) == "ask", word


def test_a_rule_may_contain_a_file_of_options() -> None:
    assert decide("gcc @opts", "gcc @opts") == decide("gcc @opts -O2", "gcc @opts -O2 *") == "allow"
    assert decide("npm install @a/b", "npm install *") == "allow"


@pytest.mark.parametrize("word", ["[!a]x", "[^a]pre=x", "[[:punct:]]-pre=x", "[+-9]-pre=x", "*", "?-pre=x"])
def test_a_glob_that_a_file_turns_into_an_option_asks(word: str, tmp_path: Path) -> None:
    (tmp_path / "--pre=x").touch()
    assert decide(f"rg a {word}", "rg *", tmp_path) == "ask"


@pytest.mark.parametrize("key", sorted(WORKING))
def test_work_needs_a_rule_with_its_subcommand(key: str) -> None:
    program, *subcommand = key.split()
    assert decide(key, f"{key} *") == "allow"
    assert decide(key, f"{program} *") == ("ask" if subcommand else "allow")
    assert decide(f"{key} x", "*") == "allow"


# ------------------------------------------------------------------------------------------ the manuals of the programs

MANUALS = """
date sort uniq ls grep find sed diff head tail cat wc cut tr stat file du df tar shuf xxd less hostname sysctl dmesg ss
journalctl systemctl mount ps od hexdump column tree curl wget unzip iconv uname id comm join paste jq pgrep free
rsync ssh scp gcc python3 node perl bash zip openssl docker npm pip cargo make pytest man
"""
OPTION = re.compile(r"(?<![\w/<=.-])(--?[A-Za-z0-9][\w-]*)")


def read_manual(program: str, folder: Path) -> set[str]:
    """Return all options in the help text of a program."""
    done = [run(f"{program} {option}", folder) for option in ("--help", "-h")[: 1 + (program in ("unzip", "xxd"))]]
    return set(OPTION.findall(b" ".join(part.stdout + part.stderr for part in done).decode(errors="replace")))


@pytest.mark.parametrize("program", MANUALS.split())
def test_every_option_of_a_manual_is_listed_or_asks(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    options = ROWS[program][1] if program in ROWS else ["--help", "--version"]
    found = {word for word in read_manual(program, tmp_path) if not is_listed(word, options)}
    for word in found:
        for spelled in (word, f"{word}=x", f"{word} x", f"'{word}'", f"a {word}"):
            assert decide(f"{program} {spelled}", f"{program} *") == "ask", spelled


GIT = [
    *("branch", "tag", "config", "remote", "stash", "log", "show", "diff", "grep", "status", "blame", "reflog"),
    *("ls-files", "describe", "rev-parse", "worktree", "for-each-ref", "cat-file", "symbolic-ref", "checkout", "clone"),
]


@pytest.mark.parametrize("name", GIT)
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_every_option_of_git_is_listed_or_asks(name: str, tmp_path: Path) -> None:
    text = run(f"git init -q; git {name} -h 2>&1", tmp_path).stdout.decode()
    words = {word.replace("[no-]", "") for word in re.findall(r"(?<![\w<=.-])(--?(?:\[no-\])?\w[\w-]*)", text)}
    words |= {word.replace("--", "--no-", 1) for word in words if word.startswith("--")}
    words -= {"-h"}
    options = ROWS.get(f"git {name}", ([], []))[1]
    assert words
    for word in words:
        if not is_listed(word, options):
            rule = f"git {name} *" if f"git {name}" in ROWS else "git *"
            assert decide(f"git {name} {word}", rule) == decide(f"git {name} {word}=x", rule) == "ask", word


# --------------------------------------------------------------------------------------------- reading forms, for real

FORMS = r"""
date; date -u +%s; date -d '2 days ago' +%F; date -Is; date -r a.txt
ls -la; ls -lR --color=never; ls *; stat a.txt; stat -c %s a.txt; file a.txt; du -sh .; df -h .; wc -l a.txt b.txt
cat -n a.txt; head -n 1 a.txt; tail -c 3 a.txt; sort -rn a.txt; sort -u -k1,1 -t , a.txt b.txt; uniq -c a.txt
grep -rn a .; grep -c b a.txt; cut -c1 a.txt; diff a.txt b.txt; diff -ru sub . ; cmp a.txt b.txt; od -c a.txt; xxd a.txt
find . -name '*.txt' -newer a.txt; find . -type f -size +0c -print0; find . -maxdepth 1 -printf '%p\n'
sed -n 1,2p a.txt; sed 's/a/b/g;/x/d' a.txt; sed -E -e 's/(a)/\1/' a.txt; awk -F, '{ print $1 }' a.txt
awk '$1 > 1 { n++ } END { print n }' a.txt; tr a-z A-Z; tar tf t.tar; tar -tvf t.tar; tar --list --file=t.tar
md5sum a.txt; sha256sum -c sums; shuf -n 1 a.txt; column -t a.txt; hostname; id -un; uname -a; ps -ef; free -m; uptime
mount; ulimit -n; ip a; ss -tln; sysctl -n kernel.ostype; jq . j.json; iconv -f utf-8 -t latin1 a.txt; test -f a.txt
git status --porcelain; git log --oneline -3 --stat; git show --stat HEAD; git diff HEAD; git branch -a; git tag -l
git branch --contains HEAD; git remote -v; git config --list; git config --get user.name; git stash list; git grep -n a
git ls-files -o --exclude-standard; git blame a.txt; git describe --all; git rev-parse --show-toplevel; git reflog
git cat-file -p HEAD; git for-each-ref; git worktree list; git shortlog -sn HEAD; git symbolic-ref HEAD
git ls-tree HEAD; git branch --list 'x*'; git tag -n3; git stash show; git check-ignore a.txt
git merge-base HEAD HEAD; git name-rev HEAD
python3 --version; bash --version; make --version; gcc --version; node --version; perl -v; unzip -l z.zip; less -R a.txt
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name, text in (("a.txt", "b,1\na,2\n"), ("b.txt", "b,1\nc,3\n"), ("sub/c.txt", "x\n"), ("j.json", "{}")):
        (tmp_path / name).write_text(text)
    set_up = """
        tar cf t.tar a.txt; md5sum a.txt > sums; git init -q; git add a.txt b.txt sub; git commit -qm first
        git tag v1; echo change >> b.txt; git stash -q; echo change >> a.txt; git status
    """
    run(set_up, tmp_path)
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    home = {"HOME": str(folder / "sub"), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PAGER": "cat"}
    author = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", **home, **author}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


def describe(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the mode, the time of the last change and the content of every file and folder.

    Git keeps the times of files in its index, and renews them whenever it has read the files.
    """
    entries: dict[str, tuple[int, int, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        name, known = str(path.relative_to(folder)), path.lstat()
        if name not in (".git", ".git/index"):
            content = path.read_bytes() if path.is_file() else b""
            entries[name] = known.st_mode, known.st_mtime_ns, content
    return entries


def test_reading_forms_are_allowed_and_change_nothing(workspace: Path) -> None:
    before = describe(workspace)
    commands = [part.strip() for line in FORMS.strip().split("\n") for part in split_commands(line)]
    ran = 0
    for command in commands:
        program = command.split()[0]
        assert decide(command, f"{program} *", workspace) == "allow", command
        if shutil.which(program) is not None:
            run(command, workspace)
            assert describe(workspace) == before, command
            ran += 1
    assert ran > 60


def split_commands(line: str) -> list[str]:
    """Split at `;` outside of quotes."""
    return re.split(r";(?=(?:[^']*'[^']*')*[^']*$)", line)
