"""Permission rules, approvals and the parts of shell commands."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.errors import InputError
from segue.runtime.environ import child_environment, secret_variables
from segue.runtime.permission_rules import parse_rule
from segue.runtime.permissions import Permissions
from segue.runtime.tool_types import ApprovalRequest
from segue.runtime.tools.fetch import fetch_url
from segue.runtime.tools.shell import shell
from segue.runtime.tools.shell_commands import find_commands, split_simple_commands
from tests.budget import examples
from tests.runtime.tool_runner import RecordingApprover
from tests.work import count_work

WRITE = ApprovalRequest("write_file", "src/a.py", "write src/a.py")
READ = ApprovalRequest("read_file", "src/a.py", "read src/a.py", needed=False)
GUARDED = ApprovalRequest("write_file", ".git/config", "write .git/config", allowed_by="name")
FETCH = ApprovalRequest("fetch_url", "https://docs.example.com/a/b?c=d", "fetch")
LINKED = ApprovalRequest("write_file", "real/a.py", "write", aliases=("alias/a.py",))

TABLE = [
    # (question, rules, what comes of it)
    (WRITE, {}, "ask"),
    (READ, {}, "allow"),
    (WRITE, {"allow": ["write_file"]}, "allow"),
    (WRITE, {"allow": ["write_file(src/*)"]}, "allow"),
    (WRITE, {"allow": ["write_file(./src/*)"]}, "allow"),
    (WRITE, {"allow": ["write_file(**/*.py)"]}, "allow"),
    (WRITE, {"allow": ["write_file(*.py)"]}, "allow"),
    (WRITE, {"allow": ["write_*"]}, "allow"),
    (WRITE, {"allow": ["*"]}, "allow"),
    (WRITE, {"allow": ["write_file(src)"]}, "ask"),
    (WRITE, {"allow": ["write_file(src/a)"]}, "ask"),
    (WRITE, {"allow": ["write_file(SRC/*)"]}, "ask"),
    (WRITE, {"allow": ["edit_file", "read_file"]}, "ask"),
    (WRITE, {"allow": ["write_file"], "ask": ["write_file(src/*)"]}, "ask"),
    (WRITE, {"allow": ["write_file(src/a.py)"], "ask": ["*"]}, "ask"),
    (WRITE, {"allow": ["write_file(src/a.py)"], "deny": ["write_file"]}, "deny"),
    (WRITE, {"ask": ["write_file"], "deny": ["write_file(SRC/A.PY)"]}, "deny"),
    (READ, {"ask": ["read_file(src/*)"]}, "ask"),
    (READ, {"deny": ["read_file(src/*)"]}, "deny"),
    (READ, {"deny": ["read_file(other/*)"]}, "allow"),
    (GUARDED, {"allow": ["*", "write_file", "write_file(*)", "write_file(.git/*)"]}, "ask"),
    (GUARDED, {"allow": ["write_file(.git/config)"]}, "allow"),
    (GUARDED, {"allow": ["write_file(.git/config)"], "deny": ["write_file(.git/*)"]}, "deny"),
    (FETCH, {"allow": ["fetch_url(https://docs.example.com/*)"]}, "allow"),
    (FETCH, {"allow": ["fetch_url(https://*.example.com/*)"]}, "allow"),
    (FETCH, {"allow": ["fetch_url(http://docs.example.com/*)"]}, "ask"),
    (FETCH, {"allow": ["fetch_url(https://docs.example.com/b*)"]}, "ask"),
    (LINKED, {"allow": ["write_file(alias/*)"]}, "ask"),
    (LINKED, {"allow": ["write_file(real/*)"]}, "allow"),
    (LINKED, {"allow": ["write_file(real/*)"], "deny": ["write_file(alias/*)"]}, "deny"),
]


@pytest.mark.parametrize(("question", "rules", "verdict"), TABLE)
def test_rules(question, rules, verdict):
    assert Permissions(**rules).decide(question)[0] == verdict


def test_a_host_is_not_found_in_a_path():
    rules = Permissions(allow=["fetch_url(https://*.example.com/*)"])
    for address in ("https://evil.com/x.example.com/", "https://evil.com?.example.com/", "https://a@evil.com/"):
        assert rules.decide(ApprovalRequest("fetch_url", address, "fetch"))[0] == "ask"


# (the tool, its subject, a pattern, whether it allows this)
SIBLINGS = [
    ("fetch_url", "https://docs.example.com/a", "docs.example.com/*", False),
    ("fetch_url", "https://evil.com/docs.example.com/a", "*docs.example.com/*", False),
    ("fetch_url", "https://evil.com/r?u=https://good.com/", "*/r?u=https://good.com/*", False),
    ("fetch_url", "https://evil.com/", "*", True),
    ("fetch_url", "https://good.com/", "http*://good.com/*", True),
    ("fetch_url", "https://good.com.evil.com/", "https://good.com*", False),
    ("fetch_url", "https://good.com:8443/", "https://good.com/*", False),
    ("fs__read", '{"path":"/srv/a.txt"}', '{"path":"/srv/*"}', True),
    ("fs__read", '{"path":"/srv/../etc/passwd"}', '{"path":"/srv/*"}', False),
    ("fs__read", '{"path":"/srv/a/.."}', '{"path":"/srv/*"}', False),
    ("fs__read", '{"path":"/work\\\\..\\\\x"}', '{"path":"/work*"}', False),
    ("fs__read", '{"path":"file:///srv/%2e%2e/x"}', '{"path":"file:///srv/*"}', False),
    ("fs__read", '{"path":"/srv/../a"}', '{"path":"/srv/../*"}', True),
    ("fs__read", '{"path":"/srv/../a"}', "*", True),
    ("fs__read", '{"text":"wait... and see"}', '{"text":"*"}', True),
]


@pytest.mark.parametrize(("tool", "subject", "pattern", "is_allowed"), SIBLINGS)
def test_a_wildcard_stays_within_what_its_rule_names(tool, subject, pattern, is_allowed):
    verdict = Permissions(allow=[f"{tool}({pattern})"]).decide(ApprovalRequest(tool, subject, "call"))[0]
    assert verdict == ("allow" if is_allowed else "ask")
    assert Permissions(allow=[f"{tool}({subject})"]).decide(ApprovalRequest(tool, subject, "call"))[0] == "allow"


@pytest.mark.parametrize(
    "url", ["https://a.example/b/..%2fc", "https://a.example/b%2F../c", "https://a.example/b/%2e%2e%5cc"]
)
def test_encoded_dots_of_an_address_need_an_exact_rule(url, tmp_path):
    question = fetch_url(look_up=lambda *_: ("93.184.216.34",)).approval_request({"url": url}, tmp_path)
    assert question is not None
    assert Permissions(allow=["fetch_url(https://a.example/*)"]).decide(question)[0] == "ask"
    assert Permissions(allow=[f"fetch_url({question.subject})"]).decide(question)[0] == "allow"


@pytest.mark.parametrize(
    "name", ["DBPASS", "CREDS", "MYKEY", "APP_SK", "DB_PW", "MY_PWD", "DB_PASS", "MYSQLPWD", "KEYS"]
)
def test_secret_is_detected_by_name(name):
    assert secret_variables({name: "blue-moon"}) == {name}


@pytest.mark.parametrize(
    "value",
    [
        "sk-ant-api03-abcdefgh",
        "sk-abcdefghij",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-1234567890-abc",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "sk_live_abcdefghijkl",
        "ghp_abcdefghijklmnopqrst",
        "glpat-abcdefghijklmnopqrst",
        "-H 'Authorization: Bearer abcdef123456789'",
    ],
)
def test_secret_is_detected_by_format(value):
    assert secret_variables({"PLAIN": value}) == {"PLAIN"}


def test_secrets_of_an_unchanged_environment_are_searched_for_once():
    environ = {f"NAME_{number}": f"value {number}" for number in range(50)} | {"A_TOKEN": "blue-moon"}
    first = count_work(lambda: child_environment(environ))
    assert count_work(lambda: child_environment(environ)) < first / 4
    assert "NAME_1" not in child_environment(environ | {"NAME_1": "a blue-moon"})
    assert "A_TOKEN" in child_environment(environ, keep=["A_TOKEN"])


def test_common_variables_are_not_secrets():
    plain = {
        "PWD": "/home/me/project",
        "OLDPWD": "/home/me",
        "SSH_ASKPASS": "/usr/bin/ask",
        "HOME": "/home/me",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "EDITOR": "vi",
        "LS_COLORS": "rs=0:di=01;34",
        "USER": "me",
        "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1",
        "VIRTUAL_ENV": "/home/me/.venv",
        "PROXY": "http://proxy.example:8080",
    }
    assert child_environment(plain) == plain


SHELL = [
    # (command, allowed patterns, what comes of it)
    ("git log --format=x --output=.bashrc -1", ["git log *"], "ask"),
    ("git log --outp .bashrc", ["git log *"], "ask"),
    ("git log '--output=.bashrc'", ["git *"], "ask"),
    ("git log --out\\put=.bashrc", ["git log *"], "ask"),
    ("git log {--output=.bashrc,-1}", ["git log *"], "ask"),
    ("git log ${X:---output=.bashrc}", ["git log *"], "ask"),
    ("git log x$IFS--output=.bashrc", ["git log *"], "ask"),
    ("git log && git log --output=a", ["git log *"], "ask"),
    ("git -c core.pager=sh log", ["git *"], "ask"),
    ("git -ccore.pager=sh log", ["git *"], "ask"),
    ("git --exec-path=. log", ["git *"], "ask"),
    ("git fetch --upload-pack=./x", ["git *"], "ask"),
    ("git grep -Osh x", ["git *"], "ask"),
    ("find . -exec rm {} +", ["find *"], "ask"),
    ("find . -delete", ["find *"], "ask"),
    ("find . -fprint x", ["find *"], "ask"),
    ("sort -ro x y", ["sort *"], "ask"),
    ("sort -o x y", ["sort *"], "ask"),
    ("sort -o x y", ["sort -o x *"], "allow"),
    ("sort -ro x y", ["sort -o x *"], "ask"),
    ("git log --output=x -1", ["git log --output=x *"], "allow"),
    ("sed -i s/a/b/ x", ["sed *"], "ask"),
    ("tar xf x --to-command=sh", ["tar *"], "ask"),
    ("git log --oneline --no-color -n 3 --stat", ["git log *"], "allow"),
    ("git status --short", ["git status *"], "allow"),
    ("pytest -x -q tests/a_test.py::test_b", ["pytest *"], "allow"),
    ("grep -ico 'a-$' x", ["grep *"], "allow"),
    ("find . -name '*.py' -type f", ["find *"], "allow"),
    ("ls -la src", ["ls *"], "allow"),
    ("git log --output=x", ["git log --output=x"], "allow"),
    ("git log", ["git log *"], "allow"),
    ("git log -p", ["git log *"], "allow"),
    ("git logout", ["git log *"], "ask"),
    ("git log; rm -rf /", ["git log *"], "ask"),
    ("git log && git diff", ["git log *", "git diff *"], "allow"),
    ("git log && git diff", ["git *"], "allow"),
    ("git log && git diff", ["git log *"], "ask"),
    ("git log | head -3", ["git log *", "head *"], "allow"),
    ("git log | sh", ["git log *"], "ask"),
    ("git log & rm x", ["git log *"], "ask"),
    ("git log\nrm x", ["git log *"], "ask"),
    ("git log $(rm x)", ["git *"], "ask"),
    ("git log `rm x`", ["git *"], "ask"),
    ('git log "$(rm x)"', ["git *"], "ask"),
    ("git log '$(rm x)'", ["git *"], "allow"),
    ("git log > x", ["git *"], "ask"),
    ("git log >> .bashrc", ["git *"], "ask"),
    ("git log < x", ["git *"], "ask"),
    ("git log <(rm x)", ["git *"], "ask"),
    ("git log 2>&1", ["git log"], "allow"),
    ("git log 2>/dev/null | head", ["git log", "head"], "allow"),
    ("git log >/dev/nullx", ["git *"], "ask"),
    ("git log 2>&1x", ["git *"], "ask"),
    ("(git log)", ["git *", "(git *"], "ask"),
    ("{ git log; }", ["*"], "ask"),
    ("if git log; then rm x; fi", ["*"], "ask"),
    ("for x in a; do rm $x; done", ["*"], "ask"),
    ("git log # it's\nrm -rf /'", ["git *"], "ask"),
    ("git log 'unfinished", ["git *"], "ask"),
    ("eval rm", ["*"], "ask"),
    ("git log -- {a,b}.txt ${HOME}", ["git *"], "allow"),
    ("echo 'a; b' \"c && d\" e\\;f", ["echo *"], "allow"),
    ("GIT_PAGER=evil git log", ["git *"], "ask"),
    ("git log > x", ["git log > x"], "allow"),
    ("", ["*"], "ask"),
]


@pytest.mark.parametrize(("command", "patterns", "verdict"), SHELL)
def test_rules_of_the_shell(command, patterns, verdict, tmp_path):
    question = shell().approval_request({"command": command}, tmp_path)
    assert question is not None
    assert Permissions(allow=[f"shell({pattern})" for pattern in patterns]).decide(question)[0] == verdict


@pytest.mark.parametrize("command", ["ls $(pwd) > x; (a)", "a && b", "x"])
def test_the_rule_for_the_whole_shell_allows_everything(command, tmp_path):
    question = shell().approval_request({"command": command}, tmp_path)
    assert question is not None
    assert Permissions(allow=["shell"]).decide(question)[0] == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "ls; rm -rf x",
        "ls && rm -rf x",
        "sudo rm -rf x",
        "FOO=1 rm -rf x",
        "/bin/rm -rf x",
        "r''m -rf x",
        "echo $(rm -rf x)",
        "if true; then rm -rf x; fi",
        "env -i rm -rf x",
        "(rm -rf x)",
        "RM -rf x",
    ],
)
def test_a_rule_that_denies_looks_into_the_command(command, tmp_path):
    question = shell().approval_request({"command": command}, tmp_path)
    assert question is not None
    assert Permissions(allow=["shell"], deny=["shell(rm *)"]).decide(question)[0] == "deny"


@examples(0.5)
@given(
    st.lists(
        st.sampled_from(["a", " ", "'", '"', "\\", ";", "&", "|", "\n", "$(", "`", "#", ">", "(", "x=1"]), max_size=12
    )
)
def test_parts_hold_no_operator_that_a_shell_would_see(pieces):
    """Each part, read alone, is again one simple command: nothing hides in it."""
    text = "".join(pieces)
    parts = split_simple_commands(text)
    find_commands(text)
    for part in parts or ():
        assert split_simple_commands(part) == (part,)


# -------------------------------------------------------------------------------------------------------- asking


def check_permission(permissions, question, answer):
    return asyncio.run(permissions.check(question, answer))


def test_once_always_and_no():
    rules = Permissions()
    once, always, no = RecordingApprover("once"), RecordingApprover("always"), RecordingApprover("no")
    assert check_permission(rules, WRITE, once) is None
    assert "the user rejected this call" in (check_permission(rules, WRITE, no) or "")
    assert check_permission(rules, WRITE, always) is None
    assert check_permission(rules, WRITE, no) is None
    assert len(no.questions) == 1
    other = ApprovalRequest("write_file", "src/b.py", "write src/b.py")
    assert check_permission(rules, other, no) is not None


def test_an_answer_does_not_outdo_a_rule_that_denies():
    rules = Permissions(deny=["write_file(src/*)"])
    somebody = RecordingApprover("always")
    assert "denied: the deny rule" in (check_permission(rules, WRITE, somebody) or "")
    assert somebody.questions == []


def test_always_answers_a_rule_that_asks():
    rules = Permissions(ask=["read_file"])
    assert check_permission(rules, READ, RecordingApprover("always")) is None
    assert check_permission(rules, READ, None) is None


def test_denial_without_approver_names_the_missing_rule():
    output = check_permission(Permissions(), WRITE, None) or ""
    assert 'allow = ["write_file(src/a.py)"]' in output
    assert Permissions(allow=["write_file(src/a.py)"]).decide(WRITE)[0] == "allow"
    assert "requires approval of each call" in (check_permission(Permissions(ask=["write_file"]), WRITE, None) or "")


@pytest.mark.parametrize("command", ["ls $(pwd) > 'x y'", "a\nb", 'say "hi" $(*)', "f(x)"])
def test_the_rule_that_is_named_does_it(command, tmp_path):
    question = shell().approval_request({"command": command}, tmp_path)
    assert question is not None
    assert Permissions(allow=[f"shell({command})"]).decide(question)[0] == "allow"


def test_a_denial_does_not_name_a_rule_that_would_not_allow_the_call(tmp_path):
    question = shell().approval_request({"command": "date *"}, tmp_path)
    output = check_permission(Permissions(allow=["shell(date *)"], folder=tmp_path), question, None) or ""
    assert "are wildcards in rules" in output
    assert "allow =" not in output


@pytest.mark.parametrize("command", ["python -c 'print(2*3)'", 'sed -i "s/a*/b/w x" y', "sort -o x a\\*b"])
def test_a_rule_with_a_quoted_wildcard_is_exact(command, tmp_path):
    question = shell().approval_request({"command": command}, tmp_path)
    assert question is not None
    assert Permissions(allow=[f"shell({command})"], folder=tmp_path).decide(question)[0] == "allow"
    assert Permissions(allow=[f"shell({command.split()[0]} *)"], folder=tmp_path).decide(question)[0] == "ask"


def test_one_question_at_a_time():
    async def go():
        rules = Permissions()
        asked = []

        async def approve(question):
            asked.append(question)
            await asyncio.sleep(0)
            return "always"

        output = await asyncio.gather(*(rules.check(WRITE, approve) for _ in range(5)))
        assert output == [None] * 5
        assert len(asked) == 1

    asyncio.run(go())


@pytest.mark.parametrize("text", ["", "write_file(", "write_file)", "two words", "(x)", "write_file()"])
def test_invalid_rule(text):
    with pytest.raises(InputError, match="is not a valid rule") as error:
        Permissions(deny=["read_file", text])
    assert error.value.path == "deny[1]"


def test_paths_in_rules_are_those_of_the_tools(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert parse_rule(f"write_file({tmp_path.resolve()}/src/*)", folder=tmp_path).pattern == "src/*"
    assert parse_rule("read_file(~/notes/*)").pattern == "/home/somebody/notes/*"


def test_a_pattern_that_would_take_for_ever_does_not():
    rule = parse_rule("shell(" + "*a" * 30 + "b)")
    assert not rule.matches_subject("a" * 50_000)


# --------------------------------------------------------------------------------------------------- environment

ENVIRON = {
    "PATH": "/bin",
    "HOME": "/home/x",
    "LANG": "C",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "KEYBOARD": "de",
    "TOKENIZERS": "fast",
    "OPENAI_API_KEY": "sk-1234567890",
    "ANTHROPIC_API_KEY": "sk-ant",
    "aws_region": "eu",
    "AWS_REGION": "eu",
    "GITHUB_TOKEN": "ghp_1234567890",
    "DB_PASSWORD": "hunter2",
    "CLIENT_SECRET": "s",
    "GOOGLE_APPLICATION_CREDENTIALS": "/x.json",
    "DATABASE_URL": "postgres://me:pass@host/db",
    "PLAIN_URL": "https://host/path",
    "COPY": "ghp_1234567890",
    "HEADER": "Bearer sk-1234567890",
    "ODD": "odd-name-secret",
    "PEM": "-----BEGIN PRIVATE KEY-----",
}
HARMLESS = {"PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "KEYBOARD", "PLAIN_URL"}


def test_secrets_stay_here():
    assert set(child_environment(ENVIRON, keys=["ODD"])) == HARMLESS
    assert set(child_environment(ENVIRON, keys=["ODD"], keep=["GITHUB_TOKEN", "AWS_*"])) == HARMLESS | {
        "GITHUB_TOKEN",
        "AWS_REGION",
    }


def test_a_short_secret_does_not_take_everything_along():
    assert secret_variables({"X_TOKEN": "1", "N": "1"}) == {"X_TOKEN"}
