"""The wider scopes that an approval prompt offers for a shell command: `git log *`, then `git *`.

They are allow rules like any others: their wildcards cover reading forms only, and every part of a command has to be
matched. None is offered for programs that run any code or are dangerous with any arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from segue.runtime.tool_types import ApprovalScope
from segue.runtime.tools.shell_commands import inner_command_tokens

_MAX_PARTS = 3
_MAX_PATTERN = 60
# Shells, interpreters and runners; what deletes or overwrites; what acts as another user, elsewhere or on processes;
# what changes the folder of the commands after it.
_NEVER_NAMES = """
sh bash dash ksh zsh fish python python2 python3 pypy node deno bun perl ruby php lua java osascript expect script
eval exec source awk gawk sed make cmake npx uvx pipx bunx
rm rmdir shred dd mkfs truncate unlink mv cp ln install tee rsync chmod chown chgrp chattr setfacl
sudo su doas ssh scp sftp telnet nc ncat socat curl wget ftp docker podman kubectl helm ansible terraform
kill killall pkill reboot shutdown systemctl service crontab at mount umount iptables
cd pushd popd xargs parallel find fd env export set unset alias read
"""
_NEVER = frozenset(_NEVER_NAMES.split())
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_WITH_SUBCOMMANDS_NAMES = """
git gh glab hg jj svn npm pnpm yarn cargo go pip pip3 uv poetry pdm hatch rustup brew apt apt-get dnf bundle gem mix
dotnet gradle mvn swift flutter dart terraform bazel just nx turbo tox nox composer
"""
_WITH_SUBCOMMANDS = frozenset(_WITH_SUBCOMMANDS_NAMES.split())


def list_scopes(commands: Sequence[str], tool: str) -> tuple[ApprovalScope, ...]:
    """Return the scopes for the simple commands of a command, the narrowest first."""
    if not 0 < len(commands) <= _MAX_PARTS:
        return ()
    narrow: dict[str, None] = {}
    wide: dict[str, None] = {}
    for command in commands:
        tokens = inner_command_tokens(command)
        program = tokens[0] if tokens else ""
        name = re.sub(r"[\d.]+$", "", program.rpartition("/")[2])
        if not name or {name, program} & _NEVER or set("*?()") & set(program) or len(program) > _MAX_PATTERN:
            return ()
        has_subcommand = name in _WITH_SUBCOMMANDS and len(tokens) > 1 and _SUBCOMMAND.fullmatch(tokens[1])
        wide[f"{program} *"] = None
        narrow[f"{program} {tokens[1]} *" if has_subcommand else f"{program} *"] = None
    return tuple(
        ApprovalScope(", ".join(patterns), tuple(f"{tool}({pattern})" for pattern in patterns))
        for patterns in ([narrow] if narrow == wide else [narrow, wide])
    )
