"""The risky and the harmless options and operands of common programs, as data.

A row is a list of programs, or of `program/subcommand`, and then of tokens. A risky token runs another program or
writes a file:

- `-x` is a short option, `-exec` an option with one dash, `-fdump-*` all options that begin with `-fdump-`
- `--pre` is a long option
- `word` is an operand; in the row of a subcommand, an operand after the subcommand

Harmless tokens:

- `-x=`, `-enc=` and `--name=` are options with a value, `-ab?` are the short options `-a` and `-b`
- `--cov?` is a long option whose name looks like a risky one
- `-p=no:*?` is an option with a value that matches the pattern, `-e=@inside?` with a path inside the working folder

`@…` is a check of the operands, which `shell_risks` defines, or a property of the program: it writes to none of its
operands (`@reads`), it writes to some (`@writes`), its long options have one dash (`@names`).
"""

# Programs without a risky option that write to none of their operands.
READERS = """
basename cat cksum cmp column comm cut df diff dirname du echo egrep expand false fgrep fold free getent grep groups
head hexdump host id join jq ls lsblk lscpu md5sum nl nproc od paste pgrep ping ps pwd readlink realpath rev seq sha1sum
sha256sum sha512sum sleep stat strings tac tail tr true tty uname uptime wc which whoami
"""
RISKS = r"""
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
deno -c -A eval --inspect --allow-all --allow-run --allow-write --allow-ffi
java @names @response -javaagent -agentlib -agentpath -Xrun* -Xdebug -Xlog* -XX:On* -XX:Flags* -XX:VMOptionsFile*
  -XX:ErrorFile* -XX:LogFile* -XX:HeapDumpPath* -XX:StartFlightRecording*
javac @names @response -d -s -h -J* -processor -processorpath -Xplugin
kotlinc,scalac,groovyc @names -d -script -J* -Xplugin -e
lua -e -l -i
ts-node,tsx -e -p -r -C= --eval --print --require --import
node --test? -e -p -r -i -C= --eval --print --require --import --loader --experimental-loader --env-file
  --openssl-config --inspect --cpu-prof --heap-prof --prof --heapsnapshot-signal --redirect-warnings
  --trace-event-file-pattern --diagnostic-dir --test-reporter --test-reporter-destination --snapshot-blob
  --build-snapshot --run
perl -e -E -i -M -m -I -d -D -x -s -S
php -r -B -R -E -F -c -d -z -S
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

curl @curl -o=/dev/null? --output=/dev/null? -w=%{http_code}? -w=%{http_code}\n? -sSLfkIvgiN46#0? -A= -e= -H= -m= -X=
  -r= -y= -Y= -z= -C= -U= -u= -o -O -J -T -K -d -F -x -c -b -D -E -w -Q -n -t --output --output-dir --remote-name
  --remote-name-all --remote-header-name --upload-file --config --data --data-ascii --data-binary --data-raw
  --data-urlencode --json --form --form-string --proxy --preproxy --socks4 --socks4a --socks5 --cookie
  --socks5-hostname --proxy-header --cookie-jar --dump-header --cert --key --netrc --netrc-file --next --url
  --url-query --resolve --connect-to --doh-url --unix-socket --abstract-unix-socket --interface --trace --trace-ascii
  --stderr --libcurl --hsts --alt-svc --etag-save --engine --variable --write-out --quote --telnet-option
  --haproxy-clientip --header= --max-time= --request= --user-agent= --referer= --range= --retry= --connect-timeout=
  --cacert= -: @second
wget -qcNSv46? -O -o -a -i -P -e -x -B -T= -t= -w= -U= -Q= --output-document --output-file --append-output
  --input-file --execute --use-askpass --post-file --post-data --body-file --body-data --config --load-cookies
  --save-cookies --warc-file --directory-prefix --proxy --ca-certificate --private-key --header= --user-agent=
  --timeout= --tries= @second
http,https -d -o -f --download --output --form --proxy --session --session-read-only --cert --offline @second
ftp,telnet,socat @operands
nc,ncat,netcat -e -c -l -x -X --exec --sh-exec --lua-exec --proxy
rsync -e -M -T --rsh --rsync-path --daemon --config --temp-dir --log-file --files-from --write-batch --partial-dir
scp -o -S -F -D -J -i
sftp -b -o -S -F -D -J -s -i -P=
ssh -vqtTnNaAxXC46? -o -F -E -D -L -R -W -S -J -w -i -I -O -l= -p= -b= -B= -c= -e= -m= @second

tar,bsdtar,gtar @tar --file?
7z,7za,7zz x e -o -w
ar x xv -x r rc rcs rcsD cr crs crD q qc d m -r -d -q -m
cpio -i -p -o -O -F -I --extract --create --pass-through --rsh-command
unzip @unzip
zip -T -TT -m -O -b -o -u -f -d --unzip-command --test --move

git --no-pager? --diff-filter? --show-prefix? -c -C -o -O --git-dir --work-tree --exec-path --config-env --upload-pack
  --receive-pack --output --ext-diff --textconv --output-directory --open-files-in-pager --extcmd --template
  --separate-git-dir --sendmail-cmd --smtp-server --exec --build-fake-ancestor config bisect filter-branch filter-repo
  hook difftool mergetool instaweb daemon send-email imap-send credential credential-store credential-cache submodule
  shell remote-ext remote-fd upload-pack receive-pack gui citool web--browse fast-import p4 svn archimport cvsimport
  cvsexportcommit cvsserver quiltimport bugreport diagnose for-each-repo format-patch mailinfo mailsplit merge-file
  merge-index merge-one-file pack-objects unpack-file http-backend http-push scalar fsmonitor--daemon @transport
  @reads
git/apply @writes
git/branch,git/switch -cC?
git/bundle create
git/cat-file --filters --filter=
git/clone -u --upload-pack --filter= @writes
git/commit -c= -C=
git/fetch,git/rev-list --filter=
git/help -w -i --web --info
git/init @writes
git/lfs install update
git/maintenance start register
git/worktree @writes
git/log,git/show,git/diff -c? -C= -S= -G= -L= -n= -U=
git/status -u=
git/ls-files -co?
git/grep -co? -C= -e=
git/blame -c? -C= -L=
git/rebase -x -i --exec --interactive
git/archive --remote --exec
git/mv @writes
git/rm @writes
gh api alias config extension auth codespace ssh-key gpg-key secret variable browse -w -D -O --web --dir --template=
  --log? --log-failed?

autoconf -o
cmake @names -P -C -E -B -S -D -G -T -U --build --install --preset --trace-redirect --graphviz --open
cc,c++,gcc,g++,clang,clang++,gfortran,nvcc @names @compiler @response -o -B -c -S -E -wrapper -specs -fplugin*
  -save-temps -MF -MD -MMD -MJ -dumpdir -dumpbase -T -Xlinker -Xassembler -Xpreprocessor -Xclang -Xcompiler -Xarch*
  -Wa -Wp -load -aux-info -fdump-* -fsave-* -foptimization-record* -fmodules-cache-path -fcrash-diagnostics*
  -fdiagnostics-add-output -iplugindir -ccbin --target= --serialize-diagnostics
cpp @second -o -B -wrapper -specs -MF -MD -MMD -D= -I= -U= -x= -Wp -fplugin*
ld,ld.bfd,ld.gold,ld.lld,lld @names -o -T -plugin --plugin --Map --dependency-file --out-implib @response -Map
  -out-implib -soname= -rpath= -rpath-link= -z= -l= -L= -m= -e= -h= --dynamic-list?
as,nasm,yasm @names -o -l -a* -MD -MF @response
tcc @names -o -run -c
ghc @names -o -e -odir -hidir -outputdir -pgm* -F -c -fplugin* -dumpdir
ocamlc,ocamlopt @names -o -pp -ppx -c -plugin -dump-into-file
swiftc,swift @names --build-path --scratch-path --package-path --disable-sandbox -o -load-plugin* -emit-* -Xcc
  -Xlinker -Xclang-linker -Xfrontend
dmd,ldc2 @names -of* -od* -run -o* -D* -X* -lib
valac,fpc,gdc @names -o* -d -X* -Fe*
zig @names -femit-* -o
make,gmake -f -C -E -I -o= -W= --file --makefile --directory --eval --include-dir @assignments
ninja -f -C -t -j= -k= -l=
rustc @names -o -C -L -l -Z --target= --out-dir --emit --codegen --extern --sysroot
cargo --target= -C -Z --config --target-dir --manifest-path --out-dir --artifact-dir --root --path --git install
  publish login
go @names -exec -toolexec -o -C -overlay -modfile -ldflags -gcflags -asmflags -vettool -outputdir -cpuprofile
  -memprofile -blockprofile -mutexprofile -trace -coverprofile -work -w -u -pkgdir -buildmode generate install get
  tool
rake -f -e -E -p -r -I -R --rakefile --execute --require --libdir
composer -d --working-dir exec global config
dotnet --filter= --configuration= -c= -r= -f= -v= -o -d --diag --output --results-directory --settings
  --artifacts-path tool exec fsi script nuget
terraform @names -chdir -out -state -state-out -backup -plugin-dir -generate-config-out -from-module -auto-approve
turbo --filter= --cwd --token --api
mkdocs -d -f
xcodebuild @names -derivedDataPath -resultBundlePath -archivePath -exportPath -exportArchive -toolchain -xctestrun
gradle @names -b -c -I -p -D -P -g --init-script --build-file --settings-file --include-build
mvn @names -f -s -gs -t -gt -D -P -l -D=skipTests*? -D=skipITs*? -D=maven.test.skip*? -D=test=*? --file --settings
  --global-settings --toolchains --log-file
npm -C -c --save? --save-dev? --save-exact? --save-optional? --save-peer? --save-prod? --save-bundle? --prefix
  --script-shell --shell --call --userconfig --globalconfig --node-options --registry --git --editor --init-module
  --viewer config explore edit publish token adduser login link set
pnpm -C -c --save-dev? --save-exact? --save-optional? --save-peer? --save-prod? --dir --script-shell --node-options
  --registry config publish link
yarn --cwd --use-yarnrc --script-shell --registry config publish link plugin set
pip,pip3 -e=@inside? --editable=@inside? -c=@inside? -t -e -i -f -c -d -w -o -r= --dest --wheel-dir --target --prefix
  --root --src --log --report --index-url --extra-index-url --find-links --editable --python --config-settings
  --global-option --build-option --proxy --cache-dir --trusted-host config
uv --directory --project --config-file --index-url --extra-index-url --index --target --prefix --with --python -p -f
  publish
poetry -C -P --directory --project config publish self
pytest --co? --log-cli? --import-mode? --cov-report=term*? -qvxslh? -p=no:*? @response -p -c -o -k= -m= -n= -r= -W=
  --rootdir --confcutdir --override-ini --basetemp --junitxml --junit-xml --log-file --pastebin --pdb? --pdbcls --cov?
  --cov-config --cov-report --html --report-log --resultlog --debug --config-file --inifile
eslint --ext? -c -f -o --config --format --output-file --rulesdir --parser --plugin --resolve-plugins-relative-to
  --cache-location
jest --coverage? -c --config --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --testRunner --runner
  --reporters --transform --resolver --testEnvironment --testResultsProcessor --coverageDirectory --outputFile --env
mypy -c -m= -p= --config-file --python-executable --install-types --cache-dir --junit-xml --shadow-file
prettier --config --plugin --write -w
ruff --config --output-file -o --cache-dir --add-noqa
clang-format -i
gofmt,goimports,gofumpt -w
tidy -m -o -f --output-file --error-file --write-back
m4 -F -o -d --freeze-state --debugfile
coverage -d -o --rcfile --data-file
coverage/run -m
black,isort -c -C -o -O
tox -c -x --override --conf --workdir --result-json -e=
nox -f --noxfile --envdir
tsc -p=@inside? --project=@inside? --build=@inside? -b=@inside? -p --project --target= --build -b --outDir --outFile
  --declarationDir --generateTrace --tsBuildInfoFile

pdftotext,pdftoppm,pdftocairo,pdftohtml,pdftops,pdfimages @names @second -f= -l= -r= -x= -y= -W= -H= -rx= -ry=
  -scale-to= -enc= -eol= -opw= -upw=
pdfseparate,pdfattach,pdf2ps,ps2pdf,ps2ascii,ps2ps,pdfcrop,epstopdf,pngcrush,tesseract,editcap,mksquashfs,qpdf,bspatch
  @names @second
pdfunite,wkhtmltopdf,wkhtmltoimage,weasyprint,ebook-convert,sox @names @last
convert,magick,montage,composite,mogrify,pdftk,objcopy @operands
ffmpeg @names -i= @operands
gs @names -o -s* -dNOSAFER -c -f
ctags,etags -f -o -L= --options --options-maybe --optlib-dir --data-dir
fzf --preview --bind --listen --become --with-shell --tmux

docker,podman --filter= --target= -v -H -c -l --volume --mount --privileged --pid --ipc --uts --userns --device
  --cap-add --security-opt --network --net --volumes-from --entrypoint --env-file --host --context --config
  --cgroup-parent --cidfile --iidfile --output cp plugin --url --connection --hooks-dir --runtime --conmon
kubectl -f -k -s --filename --kustomize --kubeconfig --server --as --token --raw cp edit proxy config plugin exec
  debug attach
kubectl/logs -f?
helm --post-renderer --post-renderer-args --kubeconfig -f=
ansible,ansible-playbook -i=@inside? -i -a -m -M --module-path
at,batch,csplit,screen @operands
tmux -c -f -C new-session new new-window neww split-window splitw run-shell run if-shell if respawn-pane
  respawn-window send-keys send pipe-pane source-file source display-popup popup
crontab @operands
dd @operands
gdb @names -x -ex -ix -iex -p -c -cd --command --eval-command --init-command --args --batch
lldb -o -s -O -S -k -K -Q --one-line --source --source-before-file
mysql -e -o --execute --tee --pager --init-command --defaults-file --defaults-extra-file --plugin-dir
openssl @names -out -keyout -engine -provider -provider-path -config -writerand -rand
patch -o -d -i= -p= -D= -r --output --directory --reject-file
psql -c -f -o -L -v -h= -p= -U= -d= --command --file --output --log-file --set --variable
pg_dump,pg_dumpall -f -F= -h= -p= -U= -d= --file
mysqldump -r -T --result-file --tab
split @operands
sqlite3 -cmd -init -A @second
tcpdump -w -z -Z -F -W= -c= -i= -s=
tee --output-error
"""
