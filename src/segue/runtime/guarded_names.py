"""Names of files and folders that run automatically, control what may run, or contain secrets.

No rule with a glob covers a path with such a name in it, at any depth and in any letter case. Files with instructions
for models (`AGENTS.md`, `.cursorrules`) are not guarded: they are text, and run nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

# In turn: version control and its hooks, continuous integration, agents, editors and debuggers, environments of a
# folder, shells and sessions, interpreters and package managers, secrets, the user's configuration.
# A name with a slash is guarded only in that folder; the folder itself is guarded as a target.
_NAMES = """
.git .gitmodules .gitconfig .gitattributes .lfsconfig .githooks .hg .hgrc .svn .bzr .jj .sl git~*
.pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .husky .huskyrc .huskyrc.* .overcommit.yml
.lefthook .lefthook-local lefthook*.y*ml lefthook*.toml lefthook*.json .lefthook*.y*ml .lefthook*.toml .lefthook*.json
.git-hooks .simple-git-hooks.* simple-git-hooks.* hk.pkl prek.toml captainhook.json

.github/workflows .github/actions .github/hooks .gitea/workflows .gitea/actions .forgejo/workflows .forgejo/actions
.circleci .gitlab-ci.yml .travis.yml .drone.y*ml .build.yml .builds .zuul.yaml cloudbuild.yaml .woodpecker
.woodpecker.y*ml .buildkite azure-pipelines.yml bitbucket-pipelines.yml .cirrus.yml .cirrus.star appveyor.yml
.appveyor.yml jenkinsfile .tekton .semaphore

.segue .segue.toml .mcp.json .claude .claude.json .cursor .gemini .codex .opencode opencode.json opencode.jsonc .qwen
.aider* .amazonq .augment .cline .continue .copilot .crush crush.json .crush.json .factory .goose .junie .kilocode
.kiro .roo .roomodes .trae .windsurf .agent .agents .openhands .qoder .rovodev .warp .pi .amp .vibe .grok .iflow .kimi
.codebuddy .tabnine

.vscode .idea .zed .fleet .helix .nova .devcontainer .devcontainer.json *.code-workspace *.sublime-project .vim .vimrc
.gvimrc _vimrc .exrc .nvimrc .nvim.lua .nexrc .emacs .emacs.d .dir-locals.el .dir-locals-2.el .spacemacs .gdbinit
.gdbearlyinit .lldbinit* .pdbrc .pdbrc.py .nvim .lazy.lua .run .ctags.d .vs .theia .lvimrc .local.vimrc _gvimrc
.gitpod.yml .replit .ycm_extra_conf.py

.envrc .envrc.* .direnv mise.toml .mise.toml mise.*.toml .mise.*.toml mise/config*.toml .mise .tool-versions .asdfrc
.rtx.toml .rvmrc rust-toolchain rust-toolchain.toml .flox devbox.json mise-tasks .mise-tasks .autoenv .autoenv.zsh
.autoenv_leave.zsh

.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .inputrc .zshrc .zshenv
.zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .oh-my-zsh .xprofile .xinitrc .xsession
.xsessionrc .pam_environment .tmux.conf .screenrc .lesskey .lessfilter .local/bin

.pythonrc .pythonrc.py .irbrc .pryrc .rprofile .renviron .ghci .octaverc .psqlrc .sqliterc .curlrc .wgetrc .gemrc
.condarc .cargo .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .yarn/releases .yarn/plugins .yarn/sdks
.yarn/patches .bazelrc

.mylogin.cnf .my.cnf .pypirc .netrc .pgpass .git-credentials .ssh .gnupg .aws .azure .kube .docker .terraformrc

.config/fish .config/segue .config/git .config/gcloud .config/gh .config/autostart .config/systemd
.config/environment.d .config/nvim .config/vim .config/helix .config/zed .config/emacs .config/mise .config/direnv
.config/opencode .config/goose .config/crush .config/pip .config/gdb .config/tmux .config/zsh .config/bash
.config/plasma-workspace
"""


def _split_names() -> tuple[frozenset[str], frozenset[str], re.Pattern[str]]:
    """Return the names, the folders of those with a slash, and a pattern of those with a glob."""
    names = _NAMES.split()
    parents = frozenset(entry.partition("/")[0] for entry in names if "/" in entry)
    globs = (re.escape(entry).replace(r"\*", "[^/]*") for entry in names if "*" in entry)
    return frozenset(names), parents, re.compile("|".join(globs))


_EXACT, _PARENTS, _GLOBS = _split_names()


def has_guarded_part(parts: Iterable[str]) -> bool:
    """Return whether a path has a guarded name in it, or ends in a folder that may hold guarded ones (`.github`)."""
    before = ""
    for part in parts:
        if is_guarded_name(part, before):
            return True
        before = part
    return may_hold_guarded(before)


def is_guarded_name(name: str, folder: str = "") -> bool:
    """Return whether a name is guarded in a folder of this name."""
    part = _normalize_name(name)
    pair = f"{_normalize_name(folder)}/{part}"
    return part in _EXACT or pair in _EXACT or any(map(_GLOBS.fullmatch, (part, pair)))


def may_hold_guarded(name: str) -> bool:
    """Return whether names are guarded in a folder of this name that are not guarded elsewhere (`.github`)."""
    return _normalize_name(name) in _PARENTS


@lru_cache(maxsize=8_192)
def _normalize_name(name: str) -> str:
    """Return a file name normalized as by file systems that ignore case and invisible characters."""
    kept = name
    if not name.isascii():
        composed = unicodedata.normalize("NFKC", name)
        kept = "".join(letter for letter in composed if unicodedata.category(letter) != "Cf")
    return kept.partition(":")[0].rstrip(". ").casefold() or name
