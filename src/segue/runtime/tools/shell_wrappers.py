"""Programs that run the command in their operands: `timeout 5 make`, `env A=b make`, `sudo make`.

Permission rules look through them. A wildcard never selects the program that runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

# A row: a program, or a program and its subcommand, the options before the command (`-n=` has a value, after `-v!` no
# command runs), and the number of operands before the command. Other options are not recognized.
_PLAIN_TABLE = """
builtin
chrt -b -f -i -o -r -R 1
command -p -v! -V!
env -i - -0 -u= --ignore-environment --unset=
exec -c -l -a=
ionice -c= -n= -t --class= --classdata= --ignore
nice -n= --adjustment=
nohup
setsid -c -f -w --ctty --fork --wait
stdbuf -i= -o= -e= --input= --output= --error=
taskset -c 1
time -p -v
timeout -s= -k= -v --signal= --kill-after= --foreground --preserve-status --verbose 1
"""
# They run a command as another user, with other arguments, elsewhere, or later: a rule has to contain them.
_OTHER_TABLE = """
bun/x
bundle/exec
bunx
busybox
caffeinate -d -i -m -s -u -t=
chroot 1
direnv/exec 1
doas -n -s -u= -C=
docker/exec -d -i -t -e= -u= -w= 1
entr -a -c -d -n -p -r -s -z
eatmydata
faketime -f 1
flock -e -n -o -s -u -x -w= -E= 1
gosu 1
hatch/run
ltrace -f -o= -e= -p=
mise/exec -C=
npm/exec -y --yes
npm/x -y --yes
npx -y --yes --no
nsenter -t= -m -u -i -n -p -U -a
parallel -j= -k -X -0 --will-cite
pdm/run
pipenv/run
pipx/run
pkexec --user=
pnpm/dlx
pnpm/exec
podman/exec -d -i -t -e= -u= -w= 1
poetry/run
proxychains -q -f=
proxychains4 -q -f=
runuser -u= -g=
rye/run
script -q -c= -a -e -f
strace -f -o= -e= -p= -s= -t -T -y -v -q -c
su -c= -l
sudo -A -b -E -e -H -i -K -k -n -P -S -s -u= -g= -h= -p= -C= -D= -R= -T= -U= -r= -t= --user= --group= --non-interactive
systemd-run -t -P -u= -p= -d -q -G --user --scope --wait --pty
tsocks
unbuffer -p
unshare -m -u -i -n -p -U -f -r -c
uv/run -q -v
uvx -q
valgrind -q -v
watch -n= -d -t -b -e -g -c -x -q=
xargs -0 -r -t -p -x -n= -P= -I= -i -L= -l -s= -d= -a= -E= --null --no-run-if-empty --max-args= --max-procs= --replace=
yarn/dlx
yarn/exec
"""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=.*", re.DOTALL)
_ADJUSTMENT = re.compile(r"-\d+")


class _Wrapper(Struct, frozen=True):
    is_plain: bool
    flags: frozenset[str]
    values: frozenset[str]
    ends: frozenset[str]
    operands: int


class Unwrapped(Struct, frozen=True):
    """Where the inner command begins, None if none runs, and where the wrappers before it begin.

    `is_plain` is False if a variable is set before it, or if a wrapper is not plain. `is_recognized` is False if the
    options of a wrapper are not known; `start` is then the first word after its name.
    """

    start: int | None
    wrappers: tuple[int, ...] = ()
    is_plain: bool = True
    is_recognized: bool = True


@cache
def _read_tables() -> dict[str, _Wrapper]:
    wrappers: dict[str, _Wrapper] = {}
    for table in (_PLAIN_TABLE, _OTHER_TABLE):
        for line in table.strip().split("\n"):
            name, *tokens = line.split()
            options = [token for token in tokens if not token.isdigit()]
            wrappers[name] = _Wrapper(
                is_plain=table is _PLAIN_TABLE,
                flags=frozenset(token for token in options if token[-1] not in "=!"),
                values=frozenset(token[:-1] for token in options if token.endswith("=")),
                ends=frozenset(token[:-1] for token in options if token.endswith("!")),
                operands=sum(int(token) for token in tokens if token.isdigit()),
            )
    return wrappers


def _is_assignment(word: str) -> bool:
    """Return whether a word before a command sets a variable."""
    return _ASSIGNMENT.fullmatch(word) is not None


def unwrap(words: Sequence[str]) -> Unwrapped:
    """Find the command that runs in the end, behind all assignments and wrappers."""
    at, is_plain = 0, True
    wrappers: tuple[int, ...] = ()
    while True:
        while at < len(words) and _is_assignment(words[at]):
            at, is_plain = at + 1, False
        if at >= len(words):
            return Unwrapped(None, wrappers, is_plain)
        name = words[at].rpartition("/")[2]
        wrapper, after = _read_tables().get(name), at + 1
        if wrapper is None and after < len(words):
            wrapper, after = _read_tables().get(f"{name}/{words[after]}"), after + 1
        if wrapper is None:
            return Unwrapped(at, wrappers, is_plain)
        wrappers = (*wrappers, at)
        is_plain = is_plain and wrapper.is_plain
        inner = _skip_options(words, after, wrapper, name)
        if inner is None:
            return Unwrapped(after, wrappers, is_plain, is_recognized=False)
        if inner < 0:
            return Unwrapped(None, wrappers, is_plain)
        at = inner + wrapper.operands


def _skip_options(words: Sequence[str], at: int, wrapper: _Wrapper, name: str) -> int | None:
    """Return where the operands begin, -1 if an option lets no command run, None if an option is not known."""
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            return at
        option, _, attached = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in wrapper.flags or (name == "nice" and _ADJUSTMENT.fullmatch(word)):
            continue
        if option in wrapper.values:
            at += not attached
            continue
        if word.startswith("--"):
            return None
        for index, letter in enumerate(word[1:], 2):
            if f"-{letter}" in wrapper.ends:
                return -1
            if f"-{letter}" in wrapper.values:
                at += index == len(word)
                break
            if f"-{letter}" not in wrapper.flags:
                return None
    return at
