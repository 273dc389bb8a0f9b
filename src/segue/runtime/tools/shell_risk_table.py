"""What is known about the options and operands of common programs, as data.

A row: programs, or `program/subcommand`, then what runs another program or writes a file: `-x` a short option, `-exec`
an option with one dash, `--pre` a long one, `word` an operand. `-x=` and `--name=` are harmless options with a value.
`-ab?` are harmless letters, `--cov?` is a harmless name that would else be taken for a risky one, `--report=term?` is
harmless with this value. `@…` is a check of the operands, which `shell_risks` defines, or a property: the program
writes to no operand (`@reads`), its options have one dash (`@names`).
"""

# Programs without any such option that write to none of their operands.
READERS = """
basename cat cksum cmp column comm cut df diff dirname du echo egrep expand false fgrep fold free grep head hexdump id
join jq ls md5sum nl nproc od paste pgrep ps pwd readlink realpath rev seq sha1sum sha256sum sha512sum sleep stat
strings tac tail tr true tty uname uptime wc which whoami
"""
RISKS = """
file -C
sdiff -o --output
printf,test,[ -v
jobs -x
read,unset,wait,let,getopts @operands
export,declare,typeset,readonly,local @assignments

ag --pager
fd,fdfind -x -X --exec --exec-batch
find @names @reads -exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from
iconv -o
rg @reads -f= -g= -e= -t= -T= -A= -B= -C= -m= -r= -j= -M= -E= --pre --hostname-bin --files?
shuf -o --random-source
sort @reads -o -T -k= -t= -S= --output --compress-program --files0-from --temporary-directory
tree -o -R
uniq -cdDiuz? -f= -s= -w= @second
xxd -c= -g= -l= -s= -n= -o= @second
yq -i -s -f --inplace --split-exp --from-file

awk,nawk,mawk,gawk -f -F= -v= @awk -i -l -o -p -d -D -e -E --file --source --include --load --exec --pretty-print
  --profile --dump-variables --debug -W
sed,gsed -i -I -f -l --line-length --in-place --file --expression @sed

sh,bash,dash,ksh,zsh -c -i -l -o -O --rcfile --init-file
fish -c -C -i --command --init-command
bun -e -p -r --eval --print --preload --require x
deno -c eval
java,javac @names @response -javaagent -agentlib -agentpath
lua -e -l -i
node -e -p -r -i --eval --print --require --import --loader --experimental-loader --env-file --openssl-config
perl -e -E -i -M -m -I -d -D -x -s -S
php -r -B -R -E -F -c -d -z
python,python3 -c -m -i
ruby -e -i -r -I -x -s -S -C

ed @operands
emacs @names -l -f --load --eval --funcall --batch --script -batch -eval -script
vi,vim,nvim,view,ex -c -S -s -u -w -W -i @plus -l -es --cmd --listen --remote --server -U -T
less @reads -o -O -k -P= -p= --lesskey-file --lesskey-src --lesskey-content --log-file --LOG-FILE @plus
man -P -H -C -T -p -X -Z -t -l -R --pager --html --config-file --preprocessor --troff --gxditview --ditroff
  --local-file
more,most @plus
nano -o -C -s -B -S --rcfile --speller --backupdir --operatingdir

curl @curl -sSLfkIvgiN46#0? -A= -e= -H= -m= -X= -r= -y= -Y= -z= -C= -U= -u= -o -O -J -T -K -d -F -x -c -b -D -E -w -Q -n
  -t --output --output-dir --remote-name --remote-name-all --remote-header-name --upload-file --config --data
  --data-ascii --data-binary --data-raw --data-urlencode --json --form --form-string --proxy --preproxy --socks4
  --socks4a --socks5 --cookie --socks5-hostname --proxy-header --cookie-jar --dump-header --cert --key --netrc
  --netrc-file --next --url --url-query --resolve --connect-to --doh-url --unix-socket --abstract-unix-socket
  --interface --trace --trace-ascii --stderr --libcurl --hsts --alt-svc --etag-save --engine --variable --write-out
  --quote --telnet-option --haproxy-clientip --header= --max-time= --request= --user-agent= --referer= --range= --retry=
  --connect-timeout= --cacert= -: @second
wget -qcNSv46? -O -o -a -i -P -e -x -B -T= -t= -w= -U= -Q= --output-document --output-file --append-output --input-file
  --execute --use-askpass --post-file --post-data --body-file --body-data --config --load-cookies --save-cookies
  --warc-file --directory-prefix --proxy --ca-certificate --private-key --header= --user-agent= --timeout= --tries=
  @second
http,https -d -o -f --download --output --form --proxy --session --session-read-only --cert --offline @second
ftp,telnet,socat @operands
nc,ncat,netcat -e -c -l -x -X --exec --sh-exec --lua-exec --proxy
rsync -e -M -T --rsh --rsync-path --daemon --config --temp-dir --log-file --files-from --write-batch --partial-dir
scp -o -S -F -D -J -i
sftp -b -o -S -F -D -J -s -i -P=
ssh -vqtTnNaAxXC46? -o -F -E -D -L -R -W -S -J -w -i -I -O -l= -p= -b= -B= -c= -e= -m= @second

tar,bsdtar,gtar @tar --file?
7z,7za,7zz x e -o -w
ar x -x
cpio -i -p -o -O -F -I --extract --create --pass-through --rsh-command
unzip @unzip
zip -T -TT -m -O -b -o -u -f -d --unzip-command --test --move

git --no-pager? --diff-filter? --check? --show-prefix? -c -C -o -O --git-dir --work-tree --exec-path --config-env
  --upload-pack --receive-pack --output --ext-diff --textconv --output-directory --open-files-in-pager --extcmd
  --template --separate-git-dir --sendmail-cmd --smtp-server --exec config bisect filter-branch hook difftool mergetool
  instaweb daemon send-email credential submodule shell remote-ext upload-pack receive-pack gui citool web--browse
  fast-import p4 svn @transport @reads
git/log,git/show,git/diff -c? -C= -S= -G= -L= -n= -U=
git/status -u=
git/ls-files -co?
git/grep -co? -C= -e=
git/blame -c? -C= -L=
git/rebase -x -i --exec --interactive
git/clone -u --upload-pack
git/archive --remote --exec
git/mv @writes
git/rm @writes
gh api alias config extension auth codespace ssh-key gpg-key secret variable --web

autoconf -o
cmake @names -P -C -E -B -S -D -G -T -U --build --install --preset --trace-redirect --graphviz --open
cc,c++,gcc,g++,clang,clang++ @names -o -B -c -S -E -wrapper -specs -fplugin -save-temps -MF -MD -MMD -dumpdir -T
  -Xlinker @response -load -Xclang
ld @names -o -T -plugin --plugin @response
make,gmake -f -C -E -I -o= -W= --file --makefile --directory --eval --include-dir @assignments
ninja -f -C -t -j= -k= -l=
rustc @names -o -C -L -l --out-dir --emit --codegen --extern --sysroot
cargo --check? -C -Z --config --target-dir --manifest-path --out-dir --artifact-dir --root --path --git install publish
  login
go @names -exec -toolexec -o -C -overlay -modfile -ldflags -gcflags -asmflags -vettool -outputdir -cpuprofile
  -memprofile -blockprofile -mutexprofile -trace -coverprofile -work -w -u -pkgdir -buildmode generate install get
  tool
gradle @names -b -c -I -p -D -P -g --init-script --build-file --settings-file --include-build
mvn @names -f -s -gs -t -gt -D -P -l --file --settings --global-settings --toolchains --log-file
npm -C -c --prefix --script-shell --shell --call --userconfig --globalconfig --node-options --registry --git --editor
  --init-module --viewer config explore edit publish token adduser login link set
pnpm -C -c --dir --script-shell --node-options --registry config publish link
yarn --cwd --use-yarnrc --script-shell --registry config publish link plugin set
pip,pip3 -t -e -i -f -c -r= --target --prefix --root --src --log --report --index-url --extra-index-url --find-links
  --editable --python --config-settings --global-option --build-option --proxy --cache-dir --trusted-host config
uv --directory --project --config-file --index-url --extra-index-url --index --target --prefix --with --python -p -f
  publish
poetry -C -P --directory --project config publish self
pytest --co? --log-level? --log-cli? --log-cli-level? --log-file-level? --import-mode? --cov-report=term?
  --cov-report=term-missing? --cov-report=term-missing:skip-covered? --cov-report=term:skip-covered? @response -p -c -o
  -k= -m= -n= -r= -W= --rootdir --confcutdir --override-ini --basetemp --junitxml --junit-xml --log-file --pastebin
  --pdb? --pdbcls --cov? --cov-config --cov-report --html --report-log --resultlog --debug --config-file --inifile
eslint --ext? -c -f -o --config --format --output-file --rulesdir --parser --plugin --resolve-plugins-relative-to
  --cache-location
jest -c --config --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --testRunner --runner --reporters
  --transform --resolver --testEnvironment --testResultsProcessor --coverageDirectory --outputFile --env
mypy -c -m= -p= --config-file --python-executable --install-types --cache-dir --junit-xml --shadow-file
prettier --check? --config --plugin --write -w
ruff --check? --output-format? --config --output-file -o --cache-dir --add-noqa
black,isort -c -C -o -O --check?
tox -c -x --override --conf --workdir --result-json -e=
nox -f --noxfile --envdir
tsc -p --project --build -b --outDir --outFile --declarationDir --generateTrace --tsBuildInfoFile

docker,podman -v -H -c -l --volume --mount --privileged --pid --ipc --uts --userns --device --cap-add --security-opt
  --network --net --volumes-from --entrypoint --env-file --host --context --config --cgroup-parent --cidfile --iidfile
  --output cp plugin --url --connection --hooks-dir --runtime --conmon
kubectl -f -k -s --filename --kustomize --kubeconfig --server --as --token --raw cp edit proxy config plugin
crontab @operands
dd @operands
gdb @names -x -ex -ix -iex -p -c -cd --command --eval-command --init-command --args --batch
lldb -o -s -O -S -k -K -Q --one-line --source --source-before-file
mysql -e -o --execute --tee --pager --init-command --defaults-file --defaults-extra-file --plugin-dir
openssl @names -out -keyout -engine -provider -provider-path -config -writerand -rand
patch -o -d -i= -p= -D= -r --output --directory --reject-file
psql -c -f -o -L -v -h= -p= -U= -d= --command --file --output --log-file --set --variable
split @operands
sqlite3 -cmd -init -A @second
tcpdump -w -z -Z -F -W= -c= -i= -s=
tee --output-error
"""
