"""Scripts of sed and awk: those that are taken for harmless write no file and run no program."""

from __future__ import annotations

import shutil
import string
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.runtime.tools.shell_scripts import is_harmless_awk, is_harmless_sed
from tests.budget import examples

HARMLESS_SED = r"""
s#a#b#
s,a/b,c/d,g
s@a@b@;s%c%d%
1,10p
$d
/a/,+3d
0~3p
/foo/!d
/a/I,/b/{s/x/y/;p}
/x/{ s/a/b/; p }
:a;N;$!ba;s/\n/ /g
y/abc/def/
s/[[:space:]]*$//
s/\//-/g
s/[\/]/-/
2i hello; w x
s/[^]]*]//
s/^[^[:space:]]*x/[/
s_a_b_;s+a+b+;s=a=b=;s~a~b~;s-a-b-;s!a!b!
$a\ text
1!G;h;$!d
"""
RISKY_SED = r"""
w x
W x
e
1e ls
r x
s/a/b/w x
s#a#b#e
s/a/b/gw x
s/a/b/ w x
s/a/b/;w x
/a/w x
/a/{p;w x
\%a%w x
y/a/b/w x
ba;w x
s/a\
s;a;b;w
s/[/a/;s/]/b/w x
s/a/b
q 5w
s[.[touch x #][e;a[
s[[:alpha:]]!M[w x|s|s[
s/[[:alpha:]/]/;s|/w x|x|
s/[[=a=]/]/;s|/w x|x|
s/[[.a.]/]/;s|/w x|x|
s/[]/]/;s|/w x|x|
s/[^]/]/;s|/w x|x|
s/[\][]/]/;s|/w x|x|
s/[\[:alpha:]/]/;s|/w x|x|
/[[:alpha:]/]/;s|/w x|x|
y/[/]/]/
\cREcw x
\,a,p
#n
a
a\
a text\
"""
HARMLESS_AWK = r"""
$3 > 5 {print}
$3>5
NR > 1 { print $NF }
$1 > 3 && /foo/ { print $1 "|" $2 }
/a|b/ {print}
$1 ~ /x[|]y/ { print "a" }
{ if ($2 >= 10) print $1; n++ } END { print n/2 }
{ a[$1] += $2/10 } END { for (k in a) if (a[k] > 3) print k, a[k] }
length > 80 { print FILENAME ":" FNR }
{ printf "%s|%s\n", $1, $2 } # a > b
{ print ">" }
{ print ($1 > 5 ? "a" : "b"), f(($2 > 3)) }
"""
RISKY_AWK = r"""
{print > "x"}
{print >> "x"}
{print $1 | "sh"}
{ print |& "x" }
{print "}" > "x"}
{print "\"" > "x"}
/"/ {print > "x"}
{ print /a/ > "f" }
{ x = /"/; print > "f"; y = "" }
BEGIN { printf("a") > "x" }
{ print(a)(b) > "x"}
"ls" | getline
BEGIN { system("ls") }
@load "x"
{ print $1 > $2 }
{ print ($1 > 5) > "x" }
{ print ")" ($1) > "x" }
{ print (1 > 2); print > "x" }
{ if (x) /"/; print > "f" }
/[]/]/ { print /]/ > "f" }
$1 ~ /[[:alpha:]/]/ { print 1 }; $2 > 3
"""


def rows(table: str) -> list[str]:
    return table.strip().split("\n")


@pytest.mark.parametrize("script", rows(HARMLESS_SED))
def test_harmless_sed(script: str) -> None:
    assert is_harmless_sed(script)


@pytest.mark.parametrize("script", [*rows(RISKY_SED), "a foo\nw x", ":a\nw x", "s\na\nb\nw x", "b\nw x", "p" * 2_001])
def test_risky_sed(script: str) -> None:
    assert not is_harmless_sed(script)


@pytest.mark.parametrize("script", [":x;a\\\nw x", "bx;a\\\nw x", "a\\\nw x", "a\\ \nw x", "p # c\nw x", "# c\np"])
def test_no_sed_command_continues_on_the_next_line(script: str) -> None:
    assert not is_harmless_sed(script)


@pytest.mark.parametrize("delimiter", sorted(set(string.printable) - set("-/|,:#@%!_+=~")))
def test_a_delimiter_of_sed_without_another_meaning(delimiter: str) -> None:
    for script in ("s{0}a{0}b{0}", "y{0}a{0}b{0}", "\\{0}a{0}p"):
        assert not is_harmless_sed(script.format(delimiter))


@pytest.mark.parametrize(
    "script", [*rows(HARMLESS_AWK), "{ print $1,\n $2 }\n$1 > 2", "{ print $1\n if ($2 > 3) n++ }"]
)
def test_harmless_awk(script: str) -> None:
    assert is_harmless_awk(script)


@pytest.mark.parametrize(
    "script",
    [
        *rows(RISKY_AWK),
        '{ if (x) /"/; print > "f"; # "\n}',
        '{ print $1,\n $2 > "f" }',
        '{ print \\\n > "x" }',
        '{ print # x\n}{ print "#" > "f" }',
    ],
)
def test_risky_awk(script: str) -> None:
    assert not is_harmless_awk(script)


# What may stand between a `print` and the rest of it on the next line.
CONTINUATIONS = [", ", " || ", " && ", ",", " ?1:", " ? 1 :", " ? "]
BREAKS = [
    "\n",
    "\n\n",
    " # c\n",
    "# }\n",
    " #\n#;\n",
    "\n # c\n",
    "\n\t\n",
    "\\\n",
    " # c \\\n;\n",
    ' # "\\a"; \\\n',
    "\r\n",
]


@pytest.mark.parametrize("end", CONTINUATIONS)
@pytest.mark.parametrize("line", BREAKS)
def test_a_print_of_awk_goes_on_after_a_new_line(end: str, line: str) -> None:
    for start in ("print 1", "print (1)", "printf 1", "if (1) print 1", "do print 1", "if (0) 0; else print 1"):
        for target in ('> "x"', '>> "x"', '| "sh"', '|& "sh"', ">= x"):
            assert not is_harmless_awk(f"BEGIN {{ {start}{end}{line}2 {target} }}")


@pytest.mark.parametrize("line", BREAKS)
def test_a_print_of_awk_begins_after_a_new_line(line: str) -> None:
    for start in ("do", "else", "{", "if (x)", "while (x)", "for (;;)", "x > 1;"):
        assert not is_harmless_awk(f'{{ {start}{line}print 1 > "x" }}')


def run_in_sandbox(script: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run GNU sed, which refuses commands that write or run in its sandbox."""
    return subprocess.run(["sed", "--sandbox", *options, script], input=b"", capture_output=True, check=False)


PARTS = (
    "s / # [ ] ^ \\ w_x e p d a i { } ; 1 $ , ! y g r_x : a ba t x &"
    " s/a/b/ s#a#b# [/] W_y 1e | N c q5 F [[:alpha:] /] s| | | ~2 +3 I M"
)
SCRIPTS = st.lists(
    st.sampled_from(["\n", " ", *(part.replace("_", " ") for part in PARTS.split())]), min_size=1, max_size=9
)


@pytest.fixture(scope="module")
def sandbox() -> None:
    if shutil.which("sed") is None or run_in_sandbox("p").returncode:
        pytest.skip("sed has no sandbox")


@pytest.mark.usefixtures("sandbox")
@examples(1)
@given(SCRIPTS.map("".join).filter(is_harmless_sed))
def test_sed_accepts_harmless_scripts_in_its_sandbox(script: str) -> None:
    assert b"sandbox" not in run_in_sandbox(script).stderr
    assert b"sandbox" not in run_in_sandbox(script, "--posix").stderr
