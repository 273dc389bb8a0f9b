"""What a wildcard of a permission rule covers of common programs, as data: a row a program.

A row is `programs | operands | options` or `programs: subcommands | operands | options`; indented lines continue it.
What a row does not list is not covered, and asks. `--help` and `--version` are covered too, except for `code`.

Options have to be spelled exactly so. `-k` has no value, `-k=` has one (`-kx`, `-k x`; `--key=x`, `--key x`), `-k[=]`
may have one in the same word (`-kx`; `--key=x`), `-o=/dev/null` only has values that match this glob, and `-NUM` is any
number. Options of one letter may be combined (`-la`), unless the row has names with one dash (`-name`).

Operands (words that are no options) are covered as follows:

- `any`, `none`, or at most `1`; `+*`, those that match this glob; `!*=*`, those that do not
- `web`: those that are an address with `http://`, with `https://`, or without a scheme
- `with -t --list`: any after one of these options
- `script`: a script of sed or awk that only reads, then any
- `code`: none, and the program has to have one of the options, because it runs code from its input otherwise
- `text`: all words, also those with a dash
"""

# Programs of which every option only reads.
READERS = r"""
groups, hostid, logname, sleep, tty, whoami | any |
basename | any | -a -s= -z --zero
cat | any | -A -b -E -e -n -s -T -t -u -v
cksum, md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum | any | -a= -b -c -l= -t -w -z --binary
  --check --quiet --zero
cmp | any | -b -i= -l -n= -s --bytes= --quiet
comm | any | -1 -2 -3 -z
cut | any | -b= -c= -d= -f= -n -s -z --bytes= --complement --delimiter= --fields=
df | any | -a -B= -H -h -i -k -l -P -T -t= -x= --all --human-readable --output[=]
diff | any | -a -B -b -c -C= -d -E -F= -i -I= -L= -N -n -p -q -r -s -S= -T -t -u -U= -w -W= -X= -x= -y -Z --brief
  --color[=] --exclude-from= --exclude= --ignore-all-space --ignore-case --new-file --normal --recursive
  --report-identical-files --side-by-side --text --unified[=]
dirname, printenv | any | -0 -z --zero
du | any | -0 -a -b -B= -c -D -d= -H -h -k -L -l -m -P -S -s -t= -x -X= --all --dereference --exclude-from= --exclude=
  --human-readable --max-depth= --summarize --time-style=
echo, expr, false, seq, true | text |
free | any | -b -c= -g -h -k -l -m -s= -t -v -w
grep, egrep, fgrep | any | -a -A= -b -B= -c -C= -D= -d= -E -e= -F -f= -G -H -h -I -i -L -l -m= -n -NUM -o -P -q -R -r -s
  -T -U -V -v -w -x -y -Z -z --after-context= --before-context= --binary --color[=] --colour[=] --context= --count
  --dereference-recursive --directories= --exclude-dir= --exclude-from= --exclude= --extended-regexp --file=
  --files-with-matches --files-without-match --fixed-strings --ignore-case --include= --invert-match --line-number
  --max-count= --no-filename --only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename
  --word-regexp
head, tail | any | -c= -F -f -n= -NUM -q -s= -v -z --bytes= --follow[=] --lines= --quiet
hexdump, hd | any | -b -C -c -d -e= -f= -n= -o -s= -v -x --format=
id | any | -a -G -g -n -r -u -Z -z --zero
join | any | -1= -2= -a= -e= -i -j= -o= -t= -v= -z --ignore-case
jq | any | -a -C -c -e -f= -h -j -L= -M -n -R -r -S -s --arg= --argjson= --compact-output --raw-output --slurp
ls | any | -1 -A -a -B -b -C -c -D -d -F -f -G -g -H -h -i -I= -k -L -l -m -N -n -o -p -Q -q -R -r -S -s -t -T= -U -u -v
  -w= -X -x -Z --all --almost-all --color[=] --dereference --directory --format= --full-time --group-directories-first
  --human-readable --recursive --reverse --size --sort= --time-style= --zero
lsblk | any | -a -b -D -d -e= -f -i -I= -J -l -M -m -N -n -O -o= -P -p -r -S -s -t -T[=] -v -w= -x= -z --all --json
  --list --output=
nproc | any | --all
od | any | -a -A= -b -c -d -f -i -j= -l -N= -o -s -S= -t= -v -w[=] -x --format=
paste | any | -d= -s -z
pgrep, pidof | any | -A -a -c -d= -f -G= -g= -i -l -n -o -O= -P= -q -r= -s= -t= -U= -u= -v -w -x --count --delimiter=
  --full --ignore-case --list-full
ps | any | -A -a -c -C= -d -e -F -f -G= -g= -H -j -L -l -M -m -N -O= -o= -P -p= -q= -s= -T -t= -U= -u= -V -w -y -Z
  --columns= --forest --format= --lines= --no-headers --sort=
pwd, type | any | -a -f -L -P -p -t
readlink, realpath | any | -e -f -L -m -n -P -q -s -v -z --canonicalize --quiet --relative-to= --zero
rev, tac | any | -0 -b -r -s= --zero
stat | any | -c= -f -L -t --dereference --format= --printf=
tr | any | -C -c -d -s -t --complement --delete
uname | any | -a -i -m -n -o -p -r -s -v --all
uptime, w, who | any | -a -b -d -f -H -h -i -l -m -p -q -r -s -T -t -u -w --all --count
wc | any | -c -L -l -m -w --chars --words
which, whereis | any | -a -b -B= -f -l -m -M= -s -S= -u
"""
# Programs of which some options only read.
READING = r"""
ar: t, tv, tO, p | any |
awk, mawk, gawk, nawk | script | -F= -v= --assign= --posix --re-interval --sandbox
column | any | -c= -d -e -H= -J -L -l= -N= -n= -O= -o= -R= -s= -t -T= -W= -x --json
curl | 1 web | -# -0 -4 -6 -A= -e= -f -G -g -H=!@* -I -i -k -L -m= -N -o=/dev/null -r= -S -s -v -w=%{http_code}
  -w=%{http_code}\n --compressed --connect-timeout= --fail --get --head --header=!@* --include --insecure --location
  --max-time= --output=/dev/null --show-error --silent --user-agent= --verbose
date | +* | -d= -f= -I[=] -R -r= -u --date= --file= --iso-8601[=] --reference= --resolution --rfc-3339= --rfc-email
  --universal --utc
dig | any | -4 -6 -t= -v -x=
dmesg | none | -d -e -f= -H -J -k -l= -L[=] -P -r -T -t -u -x --color[=] --ctime --human --json --level= --since=
  --time-format= --until=
docker, podman | none | -v
docker, podman: ps, images, info, inspect, port, top, stats, diff, history, version | any | -a -f= -l -n= -q -s -t --all
  --filter= --format= --human --latest --no-stream --quiet --since= --size --tail= --timestamps --until=
docker: logs, compose logs | any | -f -n= -t --follow --no-color --no-log-prefix --since= --tail= --timestamps --until=
docker: container ls, image ls, network ls, volume ls, system df, compose ps, compose version | any | -a -f= -q -v --all
  --filter= --format= --quiet --services --tail=
fd, fdfind | any | -0 -1 -a -c= -d= -E= -e= -F -g -H -I -i -L -l -p -q -s -S= -t= -u --exclude= --extension= --hidden
  --ignore-case --max-depth= --no-ignore --quiet --type=
file | any | -0 -b -e= -F= -h -i -k -L -l -m= -N -n -r -s -v --brief --dereference --exclude= --mime-type
find | any | -a -amin= -and -atime= -cmin= -ctime= -depth -empty -executable -false -gid= -group= -H -iname= -inum=
  -ipath= -iregex= -L -links= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer= -newermt= -not -o -or -P
  -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -size= -true -type= -uid= -user=
  -writable -xdev -xtype=
getfacl | any | -a -d -n -R -t
gh: pr list, pr view, pr status, pr diff, pr checks, issue list, issue view, issue status, run list, run view,
  workflow list, workflow view, repo view, repo list, release list, release view, label list, search code,
  search commits, search issues, search prs, search repos | any | -A= -a= -B= -b= -c -e= -H= -j= -L= -l= -q= -R= -S= -s=
  -u= --assignee= --author= --base= --branch= --color= --comments --head= --job= --jq= --json= --limit= --log
  --log-failed --name-only --patch --repo= --search= --state= --status= --verbose --workflow=
gh: api | !*://* | -i -q= -t= --include --jq= --paginate --silent --slurp --template=
git | none | -P -v --html-path --literal-pathspecs --man-path --no-optional-locks --no-pager --no-replace-objects
git: log, show, diff, whatchanged, rev-list, diff-tree, diff-index, diff-files, range-diff | any | -a -b -B[=] -c -C[=]
  -D -E -F -g -G= -i -I= -L= -l= -m -M[=] -n= -NUM -P -p -R -r -s -S= -t -u -U= -W -w -X[=] -z --abbrev-commit
  --abbrev[=] --after= --all --author= --before= --binary --branches[=] --cached --cc --check --color-words[=]
  --color[=] --committer= --compact-summary --count --date-order --date= --decorate[=] --diff-filter= --exclude=
  --exit-code --find-copies[=] --first-parent --follow --format= --full-index --graph --grep= --ignore-all-space
  --ignore-space-change --max-count= --merge-base --merges --name-only --name-status --no-color --no-ext-diff
  --no-merges --no-patch --no-walk --numstat --oneline --parents --patch --pickaxe-all --pretty[=] --quiet --relative[=]
  --remotes[=] --reverse --shortstat --since= --skip= --staged --stat[=] --summary --tags[=] --text --topo-order
  --unified= --until= --word-diff[=]
git: shortlog | any | -c -e -n -s --all --author= --committer --email --group= --no-merges --numbered --since= --summary
  --until=
git: reflog | none | -n= -NUM --all --date= --format= --oneline --pretty[=]
git: reflog show, reflog exists | any | -n= -NUM --all --date= --format= --oneline --pretty[=]
git: stash list, stash show, notes list, notes show | any | -n= -NUM -p -u --date= --format= --include-untracked
  --name-only --name-status --numstat --oneline --patch --stat[=]
git: status | any | -b -s -u[=] -v -z --branch --ignored[=] --porcelain[=] --short --show-stash --untracked-files[=]
  --verbose
git: ls-files, ls-tree | any | -c -d -f -i -k -l -m -o -r -s -t -u -v -X= -x= -z --abbrev[=] --cached --deleted
  --directory --eol --error-unmatch --exclude-from= --exclude-standard --exclude= --format= --full-name --full-tree
  --ignored --modified --name-only --name-status --others --stage
git: grep | any | -a -A= -B= -c -C= -E -e= -F -f= -G -H -h -I -i -L -l -m= -n -NUM -o -P -p -q -r -v -W -w -z
  --after-context= --and --before-context= --cached --color[=] --column --context= --count --extended-regexp
  --files-with-matches --files-without-match --fixed-strings --full-name --heading --ignore-case --invert-match
  --line-number --max-count= --name-only --no-color --only-matching --or --perl-regexp --quiet --text --untracked
  --word-regexp
git: blame, annotate | any | -b -c -C[=] -e -f -l -L= -M[=] -n -p -s -t -w --abbrev= --date= --first-parent --porcelain
  --show-email --since=
git: describe, name-rev | any | --abbrev= --all --always --contains --exact-match --exclude= --first-parent --match=
  --name-only --refs= --tags
git: rev-parse | any | -q --abbrev-ref[=] --absolute-git-dir --all --branches[=] --git-common-dir --git-dir
  --is-inside-work-tree --quiet --remotes[=] --short[=] --show-cdup --show-prefix --show-toplevel --tags[=] --verify
git: cat-file, show-ref, for-each-ref, merge-base, cherry, count-objects, check-ignore, check-attr, check-mailmap, var |
  any | -a -d -e -H -l -n -p -q -s -t -v -z --abbrev[=] --all --batch-check[=] --batch[=] --contains= --count=
  --dereference --format= --hash[=] --head --heads --human-readable --ignore-case --is-ancestor --merged= --no-index
  --quiet --sort= --stdin --tags --verbose --verify
git: bundle verify, bundle list-heads, submodule status, help, version | any | -a -g -q --all --build-options --cached
  --guides --quiet --recursive
git: branch | with --list | -a -i -r -v --abbrev[=] --all --color[=] --contains= --format= --ignore-case --list
  --merged= --no-color --remotes --show-current --sort= --verbose
git: tag | with -l --list | -i -l -n[=] --color[=] --contains= --format= --ignore-case --list --merged= --sort=
git: remote, worktree list | none | -v -z --porcelain --verbose
git: remote get-url | any | --all --push
git: remote show | with -n | -n
git: symbolic-ref | 1 | -q --no-recurse --quiet --recurse --short
git: config | with --get --get-all --get-regexp --get-urlmatch | -l -z --bool --default= --get --get-all --get-regexp
  --get-urlmatch --global --int --list --name-only --path --show-origin --system --worktree
git: config get, config list | any | -z --all --default= --global --name-only --regexp --show-origin --system --worktree
go: version, doc, help, mod graph, mod why, mod verify | any | -all -c -cmd -m -short -src -u -v
go: env | any | -changed -json
go: list | any | -deps -e -f= -find -json -m -retracted -test -u -versions
gofmt, goimports, gofumpt | any | -d -e -l -s
host | any | -4 -6 -a -d -l -t= -v
hostname | none | -A -a -d -f -I -i -s -y
iconv | any | -c -f= -l -t= --from-code= --list --to-code=
arch, hostnamectl, timedatectl, ifconfig, route, arp, swapon | none |
mount | none | -l
ulimit | none | -a -c -d -f -H -i -l -m -n -p -q -r -S -s -t -u -v -x
declare, export, getopts, jobs, let, local, read, readonly, typeset, unset, wait | none | -l
ip: a, addr, address, l, link, m, maddr, n, neigh, r, ro, route, ru, rule, tunnel, netns | none |
ip | none | -0 -4 -6 -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -r -resolve -s
  -statistics -stats
ip: a show, a s, a list, addr show, addr list, addr ls, address show, l show, link show, link list, link ls, neigh show,
  r show, r list, route show, route list, route get, rule show, rule list, netns list | any |
journalctl | any | -a -b[=] -e -f -F= -g= -k -m -N -n= -o= -p= -q -r -S= -t= -U= -u= -x --all --boot[=] --disk-usage
  --dmesg --field= --grep= --lines= --list-boots --no-pager --output= --priority= --quiet --reverse --since= --unit=
  --until= --user
kubectl | none | -n= --namespace=
kubectl: get, describe, top, explain, events, version, cluster-info, api-resources, api-versions, auth can-i,
  config view, config get-contexts, config current-context, rollout status, rollout history | any | -A -L= -l= -n= -o=
  -w --all-namespaces --field-selector= --namespace= --no-headers --output= --recursive --selector= --show-labels
  --sort-by= --watch
kubectl: logs | any | -c= -f -l= -n= -p --all-containers --container= --follow --namespace= --previous --selector=
  --since= --tail= --timestamps
less | !+* | -A -a -c -E -e -F -G -g -I -i -M -m -N -n -Q -q -R -r -S -s -U -u -W -w -X --chop-long-lines --ignore-case
  --quit-if-one-screen
lsattr | any | -a -d -l -R -v
lspci | any | -d= -n -t -v -x
lsusb | any | -d= -t -v
man, apropos, whatis | !*/* | -a -d -e= -f -I -i -K -k -L= -S= -s= -W -w --all --ignore-case
namei | any | -l -n -v -x
nm, objdump, readelf, size | any | -A -a -B -C -D -d -e -f -g -H -h -j= -l -n -p -R -r -S -s -T -t -u -V -W -w -x -z
npm | none | -v --silent
npm: ls, list, ll, la, view, info, show, v, outdated, why, root, prefix, search, ping, whoami, audit, config get,
  config list | !fix | -a -g -l -p -r --all --audit-level= --depth= --global --json --long --omit= --prod --production
  --recursive
npm: version | none | --json
nslookup | any |
ping, ping6, tracepath, traceroute | any | -4 -6 -A -a -b -c= -D -i= -L -l= -M= -m= -n -O -q -r -s= -t= -U -v -W= -w=
pip, pip3: list, freeze, show, check, inspect, index versions, config list, config get, cache info, cache list,
  cache dir, debug, help | any | -a -l -o -q -u -v --all --exclude= --files --format= --json --outdated --pre --quiet
  --verbose
printf | !*%[!bcdEeFfGgiosuXx%]* |
rg | any | -. -0 -a -A= -b -B= -c -C= -d= -E= -e= -F -f= -g= -H -I -i -j= -L -l -M= -m= -N -n -o -P -p -q -r= -S -s -T=
  -t= -U -u -v -w -x --after-context= --before-context= --binary --case-sensitive --color= --column --context= --count
  --file= --files --files-with-matches --files-without-match --fixed-strings --follow --glob-case-insensitive --glob=
  --heading --hidden --iglob= --ignore-case --invert-match --json --line-number --max-count= --max-depth= --multiline
  --no-filename --no-heading --no-ignore --no-ignore-vcs --no-line-number --only-matching --pretty --quiet --regexp=
  --replace= --smart-case --sort= --text --trim --type-list --type= --unrestricted --vimgrep --with-filename
  --word-regexp
sed, gsed | script | -E -e= -n -r -s -u -z --expression= --posix --quiet --regexp-extended --sandbox
shuf | any | -e -i= -n= -r -z
sort | any | -b -C -c -d -f -g -h -i -k= -M -m -n -R -r -s -S= -t= -u -V -z --check[=] --field-separator=
  --human-numeric-sort --ignore-case --key= --merge --numeric-sort --reverse --sort= --stable --unique --version-sort
  --zero-terminated
ss | any | -0 -4 -6 -a -A= -e -F= -f= -H -h -i -l -M -m -n -O -o -p -r -S -s -T -t -u -V -w -x -Z -z --all --listening
  --numeric --processes
strings | any | -a -d -e= -f -n= -NUM -o -s= -T= -t= -U= -w --all --bytes=
sysctl | !*=* | -A -a -b -e -N -n -r= -X -x --all
systemctl | none | -a -l -n= -o= -p= -q -t= --all --failed --full --lines= --no-legend --no-pager --output= --plain
  --property= --quiet --state= --type= --user --value
systemctl: status, show, cat, is-active, is-enabled, is-failed, is-system-running, get-default, list-units,
  list-unit-files, list-timers, list-sockets, list-jobs, list-dependencies | any | -a -l -n= -o= -p= -q -t= --all
  --failed --full --lines= --no-legend --no-pager --output= --plain --property= --quiet --reverse --state= --type=
  --user --value
tar, bsdtar, gtar | !*:* with -t --list | -a -f=!*:* -J -j -p -t -v -w -z --exclude= --file=!*:* --gzip --list --verbose
test, [ | any | -a -b -c -d -e -ef -eq -f -G -g -ge -gt -h -k -L -le -lt -N -n -ne -nt -O -o -ot -p -r -S -s -t -u -w -x
  -z
tree | any | -A -a -ad -aL= -C -D -d -F -f -g -h -i -I= -J -l -L= -N -n -p -P= -Q -r -S -s -t -U -u -v -X -x --dirsfirst
  --du --gitignore --ignore-case --noreport --prune
uniq | 1 | -c -D -d -f= -i -s= -u -w= -z --count --ignore-case --unique
unzip | with -l -p -t -v -z -Z | -1 -2 -C -c -h -l -M -m -p -q -s -t -v -Z -z
wget | 1 web with -O --output-document --spider | -4 -6 -c -d -O=- -q -S -T= -t= -U= -v -w= --header=!@* --no-verbose
  --output-document=- --quiet --spider --timeout= --tries= --user-agent=
xxd | 1 | -a -b -C -c= -cols= -d -E -e -g= -h -i -l= -len= -n= -o= -p -ps -r -s= -seek= -u -v
yq | any | -C -c -e -j -M -n -P -r -S
# Interpreters, editors, and what talks to other machines or schedules commands.
bash, dash, fish, ksh, sh, zsh, bun, elixir, ghci, groovy, guile, iex, jshell, racket, Rscript, R, scala, swift,
  ts-node, tsx, ed, emacs, ex, more, nano, nvim, vi, view, vim, bc, dc, m4, gdb, lldb, mongosh, mysql, psql, redis-cli,
  sqlite3, fzf, screen | code | --help --version
tclsh, wish, erl, expect, osascript, most, pico, ftp, nc, ncat, netcat, socat, telnet, at, batch | code |
python, python2, python3, pypy, pypy3 | code | -V -VV --help --version
deno, julia, lua, luajit, node, perl, php, ruby | code | -v --help --version
java | code | -fullversion -version --help --version
ssh, tmux | code | -V
crontab | code | -l
# Compilers, converters, archives, transfers and package managers.
as, c++, cc, clang, clang++, cmake, cpp, dmd, fpc, g++, gcc, gdc, gfortran, ghc, javac, kotlinc, ld, ld.bfd, ld.gold,
  ld.lld, ldc2, lld, nasm, nvcc, ocamlc, ocamlopt, scalac, swiftc, tcc, valac, yasm, zig | none | -dumpmachine
  -dumpversion
7z, 7za, 7zz, cpio, zip, composite, convert, ctags, etags, ffmpeg, gs, magick, mogrify, montage, pdftk, pdftocairo,
  pdftohtml, pdftops, pdftotext, pdftoppm, pdfimages, pdfunite, ps2pdf, qpdf, sox, tesseract, objcopy, editcap, tcpdump,
  tidy, csplit, rsync, scp, sftp, http, https, xh, lynx, w3m, links, elinks, aria2c, ansible, ansible-playbook, helm,
  openssl, pg_dump, mysqldump | none |
pip, pip3, poetry, uv | none | -V
# These run a program that a file of the folder names, or a version that it selects from anywhere, also for `--version`.
cargo, rustc, rustdoc, rustfmt, rustup, rust-analyzer, rust-gdb, rust-gdbgui, rust-lldb, rls, cargo-clippy, cargo-fmt,
  cargo-miri, clippy-driver, mise, rtx, asdf, volta, corepack, pnpm, pnpx, yarn, yarnpkg, bazel, bazelisk | code |
clang-format | any | -n --dry-run --style=
dpkg, dpkg-query | with -l -L -s -S | -L -l -S -s --list
rpm | with -q -qa -qf -qi -ql | -q -qa -qf -qi -ql
apt, apt-cache, brew, dnf, snap: list, show, search, policy, info, depends, rdepends, madison, deps, outdated, leaves |
  !*/* !*.rb !*.json !*.gz | -a -q -v --all --installed --json --upgradable
"""
# What is run for its effect. These options do not select another program, configuration or file to write. Of a row with
# subcommands, the rule itself has to contain the subcommand: `shell(go test *)`.
WORK = r"""
make, gmake | !*[=$]* | -B -b -d -i -j[=] -k -l[=] -n -q -R -r -S -s -t -v -w --always-make --dry-run --ignore-errors
  --jobs[=] --no-print-directory --print-directory --question --quiet --silent
pytest | any | -h -k= -l -m= -n= -p=no:* -q -r= -s -v -x --co --collect-only --color= --cov-report=term* --cov[=]
  --disable-warnings --durations= --exitfirst --failed-first --ff --import-mode= --last-failed --lf --log-cli-level=
  --log-level= --maxfail= --no-cov --no-header --no-summary --quiet --show-capture= --showlocals --stepwise --tb=
  --timeout= --verbose
cargo: build, bench, check, clippy, doc, fmt, run, test | any | -F= -j= -p= -q -r -v --all --all-features --all-targets
  --bin= --check --doc --example= --exclude= --features= --frozen --jobs= --lib --locked --no-default-features
  --no-fail-fast --no-run --offline --package= --profile= --quiet --release --test= --tests --verbose --workspace
docker, podman: run | any | -d -e= -i -P -p= -t -u= -w= --detach --env= --interactive --name= --publish= --pull= --rm
  --tty --workdir=
git: clone | any | -b= -j= -l -n -q -s -v --branch= --depth= --filter= --jobs= --quiet --recurse-submodules[=]
  --single-branch --verbose
git: checkout, switch, commit, revert, cherry-pick, rebase | any | -a -B= -b= -C= -c= -d -f -F= -m= -n -p -q -s -t -u -v
  --abort --all --allow-empty --amend --author= --continue --create= --date= --detach --dry-run --file= --fixup= --force
  --merge --message= --onto= --no-edit --no-verify --patch --quiet --signoff --track[=] --verbose
go: build, test, vet, run | any | -a -bench= -benchmem -benchtime= -count= -cover -covermode= -cpu= -failfast -json
  -list= -n -p= -parallel= -race -run= -short -skip= -tags= -timeout= -trimpath -v -x
"""
# They take the lines of a file for options if a word is `@file`: such a word is never covered.
_RESPONSE_FILE_NAMES = """
7z 7za 7zr 7zz addr2line amdclang ar aria2c armclang as bison buck buck2 bugpoint c++ c++filt cc cl clang clang++
clang-apply-replacements clang-change-namespace clang-check clang-cl clang-cpp clang-doc clang-extdef-mapping
clang-format clang-include-fixer clang-move clang-query clang-refactor clang-rename clang-reorder-fields clang-repl
clang-scan-deps clang-tidy clangd cpp csc cython dart dlltool dllwrap dmd dmypy dotnet dsymutil dwp elfedit em++ emar
emcc esptool esptool.py exiftool find-all-symbols flang flang-new fpc fsc g++ gcc gcov gcov-dump gcov-tool gdc gfortran
ghc gnat gnatmake gold gprof gprofng groovy groovyc hipcc icc icpc icpx icx ifort ifx include-what-you-use jar java
javac javadoc javap jdeps jimage jlink jmod jpackage jshell kotlin kotlinc ktlint ld ld.bfd ld.gold ld.lld ld.mold
ld64.lld ldc2 ldmd2 lib link llc lld lld-link lldb lli llvm-ar llvm-as llvm-bcanalyzer llvm-cat llvm-cov llvm-cxxdump
llvm-cxxfilt llvm-dis llvm-dwarfdump llvm-extract llvm-ifs llvm-link llvm-lto llvm-lto2 llvm-mc llvm-mca llvm-ml
llvm-modextract llvm-mt llvm-opt-report llvm-pdbutil llvm-profdata llvm-profgen llvm-rc llvm-reduce llvm-rtdyld
llvm-split llvm-stress llvm-symbolizer llvm-tblgen llvm-undname llvm-xray lto lto-dump mcs mlir-opt modularize mold
msbuild mypy nasm nim nm nmake nvcc objcopy objdump ocamlc ocamlopt opt pp-trace py.test pytest qpdf ranlib readelf
rustc rustdoc sancov scala scalac size strings strip swift swift-frontend swiftc tcc tsc valac vbc verilator wasm-ld
windmc windres yasm zig
"""
RESPONSE_FILES = frozenset(_RESPONSE_FILE_NAMES.split())
