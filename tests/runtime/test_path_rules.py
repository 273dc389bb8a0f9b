"""Rules for paths: a relative pattern stays inside the working folder, and guarded names need a rule of their own."""

import re
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.runtime.guarded_names import has_guarded_part
from segue.runtime.permissions import Permissions
from segue.runtime.sandbox import resolve
from segue.runtime.tools import standard_tools
from tests.budget import examples
from tests.runtime.tool_runner import run_for_text

TOOLS = {tool.name: tool for tool in standard_tools()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A working folder `root` with a link to a folder inside and one to a folder outside, and the folder by a link."""
    tmp_path = tmp_path_factory.mktemp("tree")
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "src").mkdir(parents=True)
    outside.mkdir()
    for path in (root / "a.py", root / "src" / "b.py", outside / "c.py"):
        path.write_text("text")
    (root / "inner").symlink_to("src")
    (root / "outer").symlink_to(outside)
    (tmp_path / "link").symlink_to(root)
    return SimpleNamespace(root=root, outside=outside, link=tmp_path / "link")


def expand(text, tree):
    names = {"ROOT": tree.root, "OUT": tree.outside, "LINK": tree.link, "TOP": tree.root.parent}
    return re.sub("|".join(names), lambda match: str(names[match[0]]), text)


def decide(tree, path, *, tool="write_file", folder=None, **rules):
    folder = folder or tree.root
    request = TOOLS[tool].approval_request({"path": expand(path, tree), "content": ""}, folder)
    assert request is not None
    texts = {action: [f"{tool}({expand(rule, tree)})" for rule in found] for action, found in rules.items()}
    return Permissions(folder=folder, **texts).decide(request)[0]


# (the pattern that is allowed, the path, the decision)
ALLOW = [
    ("*.py", "a.py", "allow"),
    ("*.py", "src/b.py", "allow"),
    ("*.py", "./src/../a.py", "allow"),
    ("*.py", "ROOT/a.py", "allow"),
    ("*.py", "inner/b.py", "allow"),
    ("*", "a.py", "allow"),
    ("./src/*", "src/b.py", "allow"),
    ("ROOT/*", "a.py", "allow"),
    ("ROOT/src/*", "src/b.py", "allow"),
    ("OUT/*", "OUT/c.py", "allow"),
    ("OUT/*", "../outside/c.py", "allow"),
    ("OUT/*", "outer/c.py", "allow"),
    ("OUT/c.py", "OUT/c.py", "allow"),
    ("TOP/*", "OUT/c.py", "allow"),
    ("*.py", "/usr/x.py", "ask"),
    ("*.py", "OUT/c.py", "ask"),
    ("*.py", "../outside/c.py", "ask"),
    ("*.py", "outer/c.py", "ask"),
    ("*.py", "src/../../outside/c.py", "ask"),
    ("*", "/usr/x", "ask"),
    ("*", "outer/c.py", "ask"),
    ("**", "OUT/c.py", "ask"),
    ("**/*.py", "OUT/c.py", "ask"),
    ("**/*.py", "/x.py", "ask"),
    ("?usr/x", "/usr/x", "ask"),
    ("*/usr/x", "/usr/x", "ask"),
    ("*usr/x", "/usr/x", "ask"),
    ("../*", "../outside/c.py", "ask"),
    ("../outside/*", "../outside/c.py", "ask"),
    ("src/../../outside/*", "OUT/c.py", "ask"),
    ("outer/*", "outer/c.py", "ask"),
    ("inner/*", "inner/b.py", "ask"),
    ("/*", "a.py", "ask"),
    ("/src/*", "src/b.py", "ask"),
    ("src/*", "/src/b.py", "ask"),
    ("OUT/*", "OUT/../root/a.py", "ask"),
]
# (the pattern that is denied, the path, the decision) where all else is allowed
DENY = [
    ("*.py", "a.py", "deny"),
    ("*.py", "/usr/x.py", "deny"),
    ("*.PY", "outer/c.py", "deny"),
    ("/*", "a.py", "deny"),
    ("TOP/*", "a.py", "deny"),
    ("TOP/*/a.py", "a.py", "deny"),
    ("ROOT/*", "a.py", "deny"),
    ("LINK/*", "a.py", "deny"),
    ("OUT/*", "outer/c.py", "deny"),
    ("outer/*", "outer/c.py", "deny"),
    ("outer/*", "OUT/c.py", "deny"),
    ("inner/*", "src/b.py", "deny"),
    ("inner/b.py", "src/b.py", "deny"),
    ("../outside/*", "OUT/c.py", "deny"),
    ("LINK/outer/*", "OUT/c.py", "deny"),
    ("src/*", "a.py", "allow"),
    ("OUT/*", "a.py", "allow"),
    ("*root*", "a.py", "allow"),
]


@pytest.mark.parametrize(("pattern", "path", "decision"), ALLOW)
@pytest.mark.parametrize("tool", ["write_file", "read_file"])
def test_patterns_that_allow(pattern, path, decision, tool, tree):
    is_needed = tool == "write_file" or not resolve(expand(path, tree), tree.root).is_inside
    assert decide(tree, path, tool=tool, allow=[pattern]) == (decision if is_needed else "allow")


@pytest.mark.parametrize(("pattern", "path", "decision"), DENY)
def test_patterns_that_deny(pattern, path, decision, tree):
    assert decide(tree, path, allow=["*", "/*"], deny=[pattern]) == decision


def test_a_working_folder_behind_a_link(tree):
    assert decide(tree, "a.py", folder=tree.link, allow=["LINK/*"]) == "allow"
    assert decide(tree, "a.py", folder=tree.link, allow=["ROOT/*"]) == "allow"
    assert decide(tree, "LINK/a.py", folder=tree.link, deny=["ROOT/*"]) == "deny"


@pytest.mark.parametrize("rule", ["read_file(TOP/*/a.py)", "read_file(ROOT/a.py)", "glob(/*/a.py)", "read_file(a.py)"])
def test_search_skips_what_an_absolute_pattern_denies(rule, tree):
    permissions = Permissions(deny=[expand(rule, tree)], folder=tree.root)
    (glob,) = (tool for tool in standard_tools(permissions=permissions) if tool.name == "glob")
    assert run_for_text(glob, tree.root, pattern="**/*.py").split() == ["src/b.py"]


@pytest.mark.parametrize("pattern", ["a\0b/*", "a\0b", "/", "~", "."])
def test_odd_patterns_match_nothing(pattern, tree):
    assert decide(tree, "src/b.py", allow=[pattern]) == "ask"
    assert decide(tree, "src/b.py", deny=[pattern]) == "ask"


@pytest.mark.parametrize("pattern", ["./run.sh *", "~/run.sh *", "ROOT/run.sh *"])
def test_patterns_of_the_shell_are_no_paths(pattern, tree):
    pattern = expand(pattern, tree)
    request = TOOLS["shell"].approval_request({"command": pattern.replace("*", "x")}, tree.root)
    assert request is not None
    assert Permissions(allow=[f"shell({pattern})"], folder=tree.root).decide(request)[0] == "allow"
    assert Permissions(deny=[f"shell({pattern})"], folder=tree.root).decide(request)[0] == "deny"


STEPS = st.sampled_from(["a.py", "src", "inner", "outer", "..", ".", "root", "outside", "new"])
GLOBS = st.lists(st.sampled_from(["*", "**/", "?", "a", "src/", ".py", "../", "./", "outer/"]), min_size=1, max_size=4)


@examples(0.3)
@given(path=st.lists(STEPS, min_size=1, max_size=5).map("/".join), is_absolute=st.booleans(), pattern=GLOBS)
def test_no_relative_pattern_allows_a_path_outside(path, is_absolute, pattern, tree):
    given = f"ROOT/{path}" if is_absolute else path
    if not resolve(expand(given, tree), tree.root).is_inside:
        assert decide(tree, given, allow=["".join(pattern)]) == "ask"


# ----------------------------------------------------------------------------------------------------------- guarded

GUARDED = """
.claude/settings.json .cursor/mcp.json .gemini/settings.json .codex/config.toml .zed/tasks.json .qwen/settings.json
.opencode/x .devcontainer/devcontainer.json .devcontainer.json .github/workflows/ci.yml .github/actions/x/action.yml
.pre-commit-config.yaml .vimrc .exrc .nvim.lua .gdbinit .lldbinit .lldbinit-Xcode mise.toml .mise.toml mise.local.toml
.gitattributes .tool-versions .envrc .husky/pre-commit .vscode/tasks.json .idea/x .aider.conf.yml .emacs.d/init.el
.dir-locals.el lefthook.yml .gitlab-ci.yml .circleci/config.yml .git/config .ssh/id .cargo/config.toml .Rprofile .irbrc
.git-credentials bitbucket-pipelines.yml .config/nvim/init.lua .config/fish/config.fish
.local/bin/x .tmux.conf .kiro/x .windsurf/x x.code-workspace
.github/hooks/x.json .nvim/x.lua .lazy.lua mise-tasks/x .mise-tasks/x .yarn/releases/x.cjs .cirrus.yml .cirrus.star
.yarn/plugins/x .vs/tasks.vs.json .lvimrc .gitpod.yml .replit .agents/x .autoenv.zsh
appveyor.yml .appveyor.yml Jenkinsfile .tekton/x.yaml .semaphore/semaphore.yml .bazelrc .envrc.local .run/x.run.xml
.ctags.d/x.ctags .pi/settings.json lefthook.toml .lefthook.json lefthook-local.yml .lefthook-local.yaml
.lefthook-local.toml .lefthook/pre-commit/x.sh mise/config.toml mise/config.local.toml mise/config.ci.toml
rust-toolchain rust-toolchain.toml .huskyrc .huskyrc.js .git-hooks/pre-commit .simple-git-hooks.json
.simple-git-hooks.js simple-git-hooks.cjs hk.pkl prek.toml captainhook.json .drone.yaml .build.yml .builds/x.yml
.zuul.yaml cloudbuild.yaml .ycm_extra_conf.py .amp/settings.json .vibe/config.toml .rvmrc
"""
FOLDERS = """
.claude .cursor .gemini .codex .zed .devcontainer .github/workflows .github .husky .vscode .idea .opencode .qwen .git
.config .local
"""
UNGUARDED = """
AGENTS.md CLAUDE.md GEMINI.md .cursorrules .github/CODEOWNERS .github/copilot-instructions.md github/workflows/ci.yml
workflows/ci.yml claude/x .gitignore .config/app.toml vimrc Makefile package.json .env .editorconfig
mise/x.py mise/x/config.toml lefthook/x.yml lefthook.md local/bin/x .env.local run/x yarn/x .yarn/cache/x.zip agents/x
"""


@pytest.mark.parametrize("name", [*GUARDED.split(), *FOLDERS.split()])
def test_guarded_names_need_a_rule_without_a_glob(name, tree):
    for place, spelled in product(["{}", "deep/er/{}", "outer/{}", "OUT/{}"], [name, name.upper(), name.title()]):
        assert resolve(expand(place.format(spelled), tree), tree.root).is_guarded
    assert decide(tree, name, allow=["*", "/*"]) == "ask"
    assert decide(tree, name, allow=[name]) == "allow"


@pytest.mark.parametrize("name", UNGUARDED.split())
def test_other_names_follow_the_rules(name, tree):
    assert decide(tree, name, allow=["*"]) == "allow"
    assert not has_guarded_part(name.split("/"))
