"""Rules for shell commands: what a wildcard allows, and what a rule that denies finds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.runtime.permissions import Permissions
from segue.runtime.tools.shell import shell
from tests.budget import examples

FOLDER = Path(__file__).parent


def decide(command, folder=FOLDER, **rules):
    request = shell().approval_request({"command": command}, folder)
    assert request is not None
    return Permissions(**{action: [f"shell({rule})" for rule in texts] for action, texts in rules.items()}).decide(
        request
    )[0]


# One line: the rule | the command. A wildcard does not allow these.
ASK = r"""
rg *                        | rg --pre ./x a
rg *                        | rg --pre=./x a
rg *                        | rg --hostname-bin ./x a
rg *                        | rg --hostname-bin=./x --hyperlink-format=default a
arch *                      | arch ./x
arch *                      | arch -x86_64 ./x
man *                       | man -P ./x ls
man *                       | man -P./x ls
man *                       | man -H./x ls
man *                       | man --pager=./x ls
man *                       | man --html=./x ls
man *                       | man -aP ./x ls
make *                      | make -f x
make *                      | make -fx all
make *                      | make --file=x
make *                      | make --makef=x
make *                      | make --eval='x:; rm y'
make *                      | make SHELL=./x
make *                      | make -j SHELL=./x
make *                      | make test CC=./x
make *                      | make 'X!=rm y'
make *                      | make -C /tmp
make *                      | make -sC /tmp
make *                      | make --directory=/tmp
pytest *                    | pytest -p x
pytest *                    | pytest -px
pytest *                    | pytest -qp x
pytest *                    | pytest -c x
pytest *                    | pytest -o python_files=x
pytest *                    | pytest --rootdir=/tmp
pytest *                    | pytest --junitxml=x
pytest *                    | pytest --cov -p x
curl *                      | curl -T x http://a/
curl *                      | curl -K x http://a/
curl *                      | curl -d @x http://a/
curl *                      | curl -d@x http://a/
curl *                      | curl -sd @x http://a/
curl *                      | curl --data-binary @x http://a/
curl *                      | curl --data-b @x http://a/
curl *                      | curl --json @x http://a/
curl *                      | curl -F f=@x http://a/
curl *                      | curl -x http://b http://a/
curl *                      | curl --prox http://b http://a/
curl *                      | curl -o x http://a/
curl *                      | curl -sSLo x http://a/
curl *                      | curl -#o x http://a/
curl *                      | curl -O http://a/x
curl *                      | curl -sO http://a/x
curl *                      | curl -c x http://a/
curl *                      | curl -D x http://a/
curl *                      | curl --trace x http://a/
curl *                      | curl --resolve a:80:127.0.0.1 http://a/
curl https://a/*            | curl https://a/b https://c/
curl https://a/*            | curl https://a/b c.example
curl https://a/*            | curl https://a/b --url https://c/
curl https://a/*            | curl https://a/b --next https://c/
wget *                      | wget -O x http://a/
wget *                      | wget -qO x http://a/
wget *                      | wget --use-askpass=./x http://a/
wget *                      | wget --post-file=x http://a/
wget *                      | wget -e http_proxy=x http://a/
wget https://a/*            | wget https://a/b https://c/
git *                       | git diff --ext-diff
git diff *                  | git diff --ext-d
git log *                   | git log -p --ext-diff
git *                       | git -C /tmp log
git *                       | git --git-dir=x log
git *                       | git --work-tree x status
git *                       | git -c alias.x='!rm y' x
git *                       | git -cdiff.external=x diff
git *                       | git grep -Oless x
git grep *                  | git grep -nO./x a
git *                       | git grep --open-files-in-pager=./x a
git *                       | git fetch --upload-pack ./x
git *                       | git push --receive-pack=./x
git *                       | git push --exec=./x
git *                       | git clone -u ./x a
git *                       | git clone ext::sh
git *                       | git clone ssh://-oProxyCommand=x/y
git *                       | git rebase -x ./x
git *                       | git rebase --exe ./x
git *                       | git config core.pager ./x
git *                       | git bisect run ./x
git *                       | git difftool -x ./x
git *                       | git submodule foreach ./x
git *                       | git archive --remote=x --exec=y a
git *                       | git format-patch -o /tmp a
git *                       | git rm -r .github
git *                       | git mv x .git/hooks/pre-commit
find *                      | find . -name x -exec rm {} ;
find *                      | find . -execdir ./x +
find *                      | find . -ok ./x
find *                      | find -- . -delete
find *                      | find . -fprintf x y
find *                      | find . -fls x
sort *                      | sort -bdfiro x y
sort *                      | sort -ro/tmp/x y
sort *                      | sort --out=x y
sort *                      | sort --compress-program=./x y
sort *                      | sort --compress-prog ./x y
sed *                       | sed -i s/a/b/ x
sed *                       | sed -ni s/a/b/p x
sed *                       | sed -i.bak s/a/b/ x
sed *                       | sed --in-p s/a/b/ x
sed *                       | sed 's/a/b/w y' x
sed *                       | sed 's/a/b/e' x
sed *                       | sed '1w y' x
sed *                       | sed '1e rm x' y
sed *                       | sed -n -e p -e 'w y' x
sed *                       | sed -ne 'w y' x
sed *                       | sed -f x y
awk *                       | awk 'BEGIN { system("rm x") }'
awk *                       | awk '{ print > "x" }' y
awk *                       | awk '{ print | "sh" }' y
awk *                       | awk 'BEGIN { "rm x" | getline }'
awk *                       | awk -f x y
gawk *                      | gawk '@load "x"' y
gawk *                      | gawk -i inplace 1 x
perl *                      | perl -e 'unlink x'
perl *                      | perl -lane 'unlink x' y
perl *                      | perl -pi.bak x
perl *                      | perl -Mx y
python *                    | python -c x
python *                    | python -m x
python3 *                   | python3 -Ic x
python3.12 *                | python3.12 -m x
/usr/bin/python *           | /usr/bin/python -m x
node *                      | node -e x
node *                      | node --require ./x y
node *                      | node --eval=x
node *                      | node -r ./x y
ruby *                      | ruby -rx y
php *                       | php -r x
bash *                      | bash -c x
bash *                      | bash -xec x
sh *                        | sh -c x
less *                      | less +!x y
less *                      | less -o x y
vim *                       | vim +x y
vim *                       | vim -c x y
vim *                       | vim --cmd x y
vi *                        | vi -S x
more *                      | more +/x y
ssh *                       | ssh -o ProxyCommand=./x a
ssh *                       | ssh -oProxyCommand=./x a
ssh *                       | ssh -vo ProxyCommand=./x a
ssh *                       | ssh a rm -rf x
scp *                       | scp -S ./x a b:c
rsync *                     | rsync -e ./x a b:c
rsync *                     | rsync -avze ./x a b:c
rsync *                     | rsync --rsh=./x a b:c
rsync *                     | rsync --rsync-path=./x a b:c
tar *                       | tar xf x.tar
tar *                       | tar -xf x.tar
tar *                       | tar -zxvf x.tar
tar *                       | tar --extract -f x.tar
tar *                       | tar --extr -f x.tar
tar *                       | tar cf x.tar y
tar *                       | tar tf x.tar --to-command=./x
tar *                       | tar tf x.tar --checkpoint=1 --checkpoint-action=exec=./x
tar *                       | tar tf x.tar --checkpoint-a=exec=./x
tar *                       | tar -I ./x -tf x.tar
tar *                       | tar tIf ./x x.tar
tar *                       | tar tf host:x.tar
unzip *                     | unzip x.zip
unzip *                     | unzip -o x.zip -d y
zip *                       | zip -T -TT ./x a.zip b
zip *                       | zip -rTTT ./x a.zip b
gcc *                       | gcc -o x y.c
gcc *                       | gcc -ox y.c
gcc *                       | gcc -wrapper ./x y.c
gcc *                       | gcc -fplugin=./x y.c
gcc *                       | gcc @x
go *                        | go test -exec ./x
go *                        | go test --exec=./x
go *                        | go build -o x
go *                        | go vet -vettool=./x
npm *                       | npm config set script-shell ./x
npm *                       | npm --loglevel silent config set x y
npm *                       | npm --script-shell=./x test
npm *                       | npm -C /tmp test
pip *                       | pip config set x y
pip *                       | pip install --target=/tmp x
docker *                    | docker run -v /:/x y
docker *                    | docker run -itv /:/x y
docker *                    | docker run --volume=/:/x y
docker *                    | docker run --mount type=bind,src=/,dst=/x y
docker *                    | docker run --privileged y
psql *                      | psql -c x
openssl *                   | openssl req -out x
dd *                        | dd of=x
uniq *                      | uniq x y
printf *                    | printf -v PATH x
export *                    | export PATH=x
cargo *                     | cargo --config x build
unknown *                   | unknown --output x
unknown *                   | unknown --output-file=x
unknown *                   | unknown -o x
unknown *                   | unknown -xo/tmp/x
unknown *                   | unknown --with-wrapper=./x
unknown *                   | unknown --askpass ./x
env *                       | env ./x
env *                       | env sh x
env *                       | env A=b git log
env *                       | env -i git log
env *                       | env -S 'git log'
timeout *                   | timeout 5 rm -rf x
nice *                      | nice rm x
nohup *                     | nohup rm x
xargs *                     | xargs rm
sudo *                      | sudo rm x
command *                   | command rm x
npx *                       | npx x
uv run *                    | uv run x
git *                       | timeout 5 git diff --ext-diff
git *                       | timeout 5 rm x
git *                       | timeout --unknown 5 git log
git *                       | time -o x git log
git *                       | env -S git log
git *                       | env -C /tmp git log
git *                       | env A=b git log
git *                       | A=b git log
git *                       | LD_PRELOAD=./x git log
git *                       | GIT_PAGER=./x timeout 5 git log
git *                       | timeout 5 env GIT_PAGER=./x git log
git *                       | A+=b git log
git *                       | GIT_PAGER=./x; git log
git *                       | export GIT_PAGER=./x; git log
*                           | GIT_PAGER=./x; git log
*                           | GIT_PAGER=./x git log
git *                       | sudo git log
git *                       | doas git log
git *                       | xargs git log
git *                       | ls | xargs git log
git *                       | su -c 'git log'
*                           | su -c 'git log'
git *                       | command eval git log
*                           | command eval git log
*                           | builtin source x
*                           | time eval x
*                           | hash -p ./x git
*                           | enable -f ./x git
git *                       | git log *
git log *                   | git log -p *
tar *                       | tar tf x *
sort *                      | sort [-]ox y
sort *                      | sort {-ox,y}
sort *                      | sort "$X-ox" y
sort -o x *                 | sort -o x -o y
git log * --output=x *      | git log "a --output=x " --output=y
cp *                        | cp x .git/hooks/pre-commit
mv *                        | mv .claude y
rm *                        | rm -r .github/workflows
rm *                        | rm -r sub/.Cursor/
tee *                       | tee .vimrc
rm *                        | rm -r .gi*
rm *                        | rm -r sub/.g?t
rm *                        | rm -r {.git,x}
rm *                        | rm -r .gi{t,x}
*                           | {sort,-o,x,y}
*                           | $X y
*                           | ./s*t -l x
test *                      | test -v 'a[$(rm x)]'
[ *                         | [ -v 'a[$(rm x)]' ]
unset *                     | unset 'a[$(rm x)]'
pytest *                    | pytest @x
jobs *                      | jobs -x rm x
python *                    | python x.py --file=.envrc
ls *                        | ls $['$(touch x)']
echo *                      | echo "$[1+$(touch x)]"
echo *                      | echo a$[1]
ls *                        | ls ${a['$(touch x)']}
sed *                       | sed -- '1e touch x' f -ep
sed *                       | sed -n -- 'w x' f -e p
sed *                       | sed -lep '1e touch x' f
sed *                       | sed -l -ep '1e touch x' f
sed *                       | sed --line-length -ep '1e touch x' f
sed *                       | sed -e -- -i s/a/b/ x
uniq *                      | uniq -- a -b
uniq *                      | uniq -c -- a -f
xxd *                       | xxd -- a -b
unzip *                     | unzip -- -l
cargo *                     | cargo rustc -- -C linker=./x
npm *                       | npm -- config set a b
make *                      | make -lW -f x
make *                      | make -lW --eval=x
make *                      | make -lo -C /tmp
curl *                      | curl -PA -ofoo http://a/
curl https://a/*            | curl https://a/b -PA https://c/
wget *                      | wget -AT -Ofile http://a/
psql *                      | psql -FU -fx
patch *                     | patch -zi -ox
tree *                      | tree -L2o x
tree *                      | tree -aL2o x
unzip *                     | unzip -dt x.zip
unzip *                     | unzip -o x.zip -l
unzip *                     | unzip -lo x.zip
unzip *                     | unzip -l x.zip -d y
unzip *                     | unzip -l- x.zip
tar *                       | tar -tfhost:/x
tar *                       | tar -tvfhost:x
tar *                       | tar --list --file=host:/x
tar *                       | tar --list --file host:/x
curl *                      | curl -H @x http://a/
curl *                      | curl -H@x http://a/
curl *                      | curl -sSH@x http://a/
curl *                      | curl --header @x http://a/
curl *                      | curl http://a/ --expand-url x
curl *                      | curl 'http://{a,b}/'
curl https://a*             | curl 'https://a[1-9].example/'
gawk *                      | gawk --source='BEGIN { system("x") }'
gawk *                      | gawk --sou 'BEGIN { system("x") }'
awk *                       | awk '-eF=system("x")' y
gawk *                      | gawk -e 'BEGIN { system("x") }'
git *                       | git --namespace log -c alias.x='!y' x
git *                       | git --no-pager -c alias.log=x log
git *                       | git -P -c alias.log=x log -c
git *                       | git grep -oO./x a
git grep *                  | git grep -cO./x a
git *                       | git clone -c core.pager=x a
git *                       | git ls-files --output=x
pytest *                    | pytest --cov-report=html:x
pytest *                    | pytest --cov-report=term --cov-report=xml
pytest *                    | pytest --log-file=x
pytest *                    | pytest --log-fi x
ruff *                      | ruff check --output-fi=x
pnpm *                      | pnpm --filter web build
black *                     | black --config x .
rg *                        | rg --files --pre ./x
cp *                        | cp evil $Z.git/config
cp *                        | cp evil ${Z}.git/config
cp *                        | cp evil "$Z.git/config"
cp *                        | cp evil "$Z"'.git'/config
cp *                        | cp evil sub/$Z.git/config
cp *                        | cp evil .github/$Z/workflows/x.yml
cp *                        | cp evil left$Z'hook.yml'
cp *                        | cp -r evil .config/$Z
cp *                        | cp evil $1.bashrc
cp *                        | cp evil $@.bashrc
tee *                       | tee $Z.bashrc
ln *                        | ln -sf x $Z.vimrc
dd *                        | dd of=$Z.vimrc
git mv *                    | git mv x $Z.husky/pre-push
unknown *                   | unknown $Z.git/x
cp *                        | cp -t.git/hooks evil
cp *                        | cp -rt.github/workflows evil.yml
cp *                        | cp -rvtsub/.git/hooks evil
cp *                        | cp -t$Z.git/hooks evil
cp *                        | cp evil .github/workflows/a=b.yml
unknown *                   | unknown to=.github/workflows/a=b.yml
cp *                        | cp -rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrt.git/hooks evil
cp *                        | cp x $_
git log *                   | git log $_
sort *                      | sort "${_}"
sort *                      | sort "${X:=a}"
cp *                        | cp x "${X:=.git/config}"
git *                       | git bundle create x HEAD
git *                       | git bundle --quiet create x
git *                       | git -P bundle create x
git *                       | git cat-file --filters HEAD:x
git *                       | git cat-file --filt HEAD:x
git *                       | git help --web log
git *                       | git help -w log
git *                       | git format-patch -1
git *                       | git merge-file a b c
git *                       | git merge-index ./x -a
git *                       | git bugreport
git *                       | git maintenance start
git *                       | git apply --directory=.git x.patch
git *                       | git -c x=y switch -c topic
git *                       | git clone https://a/b .vim
git *                       | git worktree add .github/workflows
gcc *                       | gcc -Wl,-o,x y.c
gcc *                       | gcc -Wl,--as-needed,-o,x y.c
gcc-13 *                    | gcc-13 -Wl,-o,x y.c
arm-none-eabi-gcc-13 *      | arm-none-eabi-gcc-13 -Wl,-o,x y.c
x86_64-linux-gnu-g++ *      | x86_64-linux-gnu-g++ -Wl,-o,x y.cc
gcc *                       | gcc -Wl,@x y.c
gcc *                       | gcc -Wl,-Map=x y.c
clang *                     | clang -Wp,-MD,x y.c
g++ *                       | g++ -Wa,-al=x y.c
gcc *                       | gcc -Xassembler -o y.c
gcc *                       | gcc -fplugin=x.so y.c
gcc *                       | gcc -fuse-ld=/tmp/x y.c
gcc *                       | gcc -fdump-tree-all y.c
java *                      | java -javaagent:x.jar A
java *                      | java -XX:OnOutOfMemoryError=x A
pip *                       | pip download -d /tmp x
pip *                       | pip download --des=/tmp x
pip *                       | pip wheel -w /tmp x
pip *                       | pip install -e git+https://a/b
pip *                       | pip install -e /tmp/x
pip *                       | pip install -e ../x
pip *                       | pip install -e $X
node *                      | node --inspect x.js
node *                      | node --inspect-brk=0.0.0.0 x.js
jest *                      | jest --inspect
node *                      | node --cpu-prof x.js
ctags *                     | ctags --options=x
ctags *                     | ctags --options x
pdftotext *                 | pdftotext a b
pdftotext *                 | pdftotext -layout -f 1 a.pdf b.txt
pdftoppm *                  | pdftoppm -png a.pdf b
ps2pdf *                    | ps2pdf a b
pdfunite *                  | pdfunite a b c
cpp *                       | cpp a b
convert *                   | convert a.png b.png
ffmpeg *                    | ffmpeg -i a.mp4 b.mp3
pytest *                    | pytest -p x no:y
pytest *                    | pytest -p no-cache
sed *                       | sed 's#a#b#w x' y
sed *                       | sed 's#a#b#e' y
sed *                       | sed '/a/{p;w x' y
sed *                       | sed 's/[/a/;s/]/b/w x' y
sed *                       | sed '$!N;e ls' y
awk *                       | awk '$3 > 5 {print > "x"}' y
awk *                       | awk '{print "}" > "x"}' y
awk *                       | awk '{print ($1 > 5) > "x"}' y
awk *                       | awk '/"/ {print > "x"}' y
awk *                       | awk '$1 > 2 {print "a" | "sh"}' y
awk *                       | awk '{ if (x) /"/; print > "f"; # " }' y
rg *                        | cd sub && rg foo *.py
rg *                        | rg foo ?*
curl *                      | curl -o /dev/null2 https://a/b
curl *                      | curl -w '%{http_code}%output{x}' https://a/b
curl *                      | curl -s -o /dev/null https://a/b https://c/d
kubectl *                   | kubectl exec p -- sh
helm *                      | helm install --post-renderer ./x a b
pg_dump *                   | pg_dump -f x db
clang-format *              | clang-format -i x
gofmt *                     | gofmt -w x
csplit *                    | csplit x 1
tmux *                      | tmux new-session -d ls
at *                        | at now
ar *                        | ar rcs x.a y.o
tsx *                       | tsx -e 1
terraform *                 | terraform plan -out=x
soffice *                   | soffice --convert-to pdf --outdir x y
ansible-playbook *          | ansible-playbook -i /tmp/x y.yml
gcc *                       | gcc -MJ x y.c
date *                      | date -s 12:00
date *                      | date -us 12:00
date *                      | date -us12:00
date *                      | date --set=12:00
date *                      | date --se 12:00
date *                      | date +%F -s 12:00
date *                      | date 010203042026
date *                      | date '-s' 12:00
date *                      | date $'-s' 12:00
date *                      | date -"s" 12:00
date *                      | date $X
date *                      | date "$X"
date *                      | date $(x)
date *                      | date *
date *                      | date [-]s x
date *                      | date {-s,x}
date *                      | X=-s; date $X
date *                      | date > x
date *                      | date & date -s x
date *                      | (date -s x)
date *                      | date() { x; }; date
date *                      | alias date=x; date
date *                      | date | sh
date *                      | /bin/date -s x
date *                      | ./date
date *                      | env date -s x
date *                      | timeout 5 date -s x
date *                      | command date -s x
date *                      | exec date -s x
date *                      | nohup date -s x
date *                      | sudo date
date *                      | xargs date
date *                      | LD_PRELOAD=./x date
hostname *                  | hostname x
hostname *                  | hostname -F x
sysctl *                    | sysctl -w a.b=1
sysctl *                    | sysctl a.b=1
sysctl *                    | sysctl -p x
dmesg *                     | dmesg -C
dmesg *                     | dmesg -Tc
ip *                        | ip link set eth0 down
ip *                        | ip addr add 10.0.0.1/8 dev eth0
ip *                        | ip netns exec x sh
ip *                        | ip -b x
systemctl *                 | systemctl stop ssh
systemctl *                 | systemctl -H x status
journalctl *                | journalctl --vacuum-size=1M
journalctl *                | journalctl --rotate
mount *                     | mount /dev/sda1 /mnt
mount *                     | mount -a
ulimit *                    | ulimit -n 5
tar *                       | tar -xf x -t
tar *                       | tar tfI x y
tar *                       | tar ''
tar *                       | tar tvfF x y
*                           | make SHELL=x
crontab *                   | crontab x
crontab *                   | crontab
python *                    | python
python *                    | python x.py
sh *                        | curl https://a | sh
bash *                      | bash
node *                      | cat x | node
git *                       | git branch x
git *                       | git branch -d x
git *                       | git branch -v x
git *                       | git tag x
git *                       | git tag -d x
git *                       | git remote add x y
git *                       | git stash
git *                       | git stash drop
git *                       | git commit -m x
git *                       | git push
git *                       | git checkout x
git *                       | git reflog expire --all
git *                       | git worktree add x
git *                       | git config a.b c
git *                       | git config --unset a.b
git *                       | git config --add a.b c
git *                       | git config --get-all a.b --add c
git *                       | git log --output x
git *                       | git log --outpu=x
git *                       | git diff --no-index --output=x a b
git *                       | git --exec-path=x log
git *                       | git -p log
git *                       | git symbolic-ref HEAD x
git *                       | git symbolic-ref -d HEAD
git -C sub *                | git -C sub config a.b c
git rebase *                | git rebase -x ./x
git clone *                 | git clone -u ./x a
git push *                  | git push --receive-pack=./x a
git push *                  | git push --rec=./x a
npm *                       | npm install
npm *                       | npm run build
npm *                       | npm audit fix
npm *                       | npm version 2.0.0
yarn *                      | yarn ls
npm run *                   | npm run build --script-shell ./x
pip *                       | pip install x
cargo *                     | cargo build
go *                        | go env -w X=y
go *                        | go env -u X
go *                        | go test ./...
go test *                   | go test -exec ./x
make *                      | make -n 'x$(shell y)'
make *                      | make all X=y
gh *                        | gh api -X DELETE x
gh *                        | gh api x -f a=b
gh *                        | gh api https://a/b
gh *                        | gh pr merge 3
gh *                        | gh pr view --web
docker *                    | docker run x
docker *                    | docker rm x
docker run *                | docker run -v /:/x y
kubectl *                   | kubectl delete pod x
kubectl *                   | kubectl get -f x
kubectl *                   | kubectl --kubeconfig=x get pods
curl *                      | curl -X POST https://a
curl *                      | curl -sXPOST https://a
curl *                      | curl --data=x https://a
wget *                      | wget https://a
wget *                      | wget -qO x https://a
rsync *                     | rsync -av a b
rsync -av *                 | rsync -av -e ./x a b
uniq *                      | uniq {a,b}
uniq *                      | uniq *.txt
uniq *                      | uniq "$A"
sed *                       | sed s/[a]*/b/ x
rg *                        | rg $X
rg *                        | rg "$X" a
sort *                      | sort x $X
sort *                      | sort -k -o x
grep *                      | grep --unknown x
grep *                      | grep --reg=x y
poetry *                    | poetry version 2.0
rpm *                       | rpm -i x
dpkg *                      | dpkg -i x
apt *                       | apt install x
less *                      | less -x4oy z
tree *                      | tree -aIo x y
*                           | date -s x
*                           | sed -i s/a/b/ x
*                           | perl -pi x
printf *                    | printf %n PATH
printf *                    | printf '%5n' PATH
printf *                    | printf -v PATH x
mytool *                    | mytool --exec=x
mytool *                    | mytool -c x
mytool *                    | mytool -e x
mytool *                    | mytool X=y
mytool *                    | mytool "$X"
mytool *                    | mytool .git/config
"""
ALLOW = r"""
rg *                        | rg -n -C 3 --pretty foo src
rg *                        | rg --glob '*.py' -e 'a|b'
rg *                        | rg "*.py" .github/workflows
grep *                      | grep -in foo x
grep *                      | grep -rn "foo" --include=*.py .
man *                       | man 3 printf
make *                      | make -j4 test
make *                      | make -j test
make *                      | make -k all
make -f x *                 | make -f x all
make CC=x *                 | make CC=x all
pytest *                    | pytest -xvs -k "a and not b" tests
pytest *                    | pytest --cov=src --tb=short -rA
pytest *                    | pytest --lf --durations=5 -n 2
pytest -p x *               | pytest -p x tests
curl *                      | curl -sSL -H 'Accept: x' -m 5 https://a/b
curl https://a/*            | curl https://a/b
curl *                      | curl -I --max-time 5 https://a/b
git *                       | git diff --stat HEAD~1
git *                       | git log -S 'std::vector' --oneline
git commit *                | git commit -m 'a b'
git *                       | git show HEAD:.github/workflows/x.yml
git *                       | git diff --no-ext-diff
git *                       | git branch -a
git config *                | git config --get user.name
git -C sub *                | git -C sub log
find *                      | find . -name "*.py" -not -path './x/*' -o -type d
sort *                      | sort -rn -k 2 -t , x
sort *                      | sort -k2,3 x
sed *                       | sed -n '1,10p' x
sed *                       | sed -n 5p x
sed *                       | sed 's/a/b/g' x
sed *                       | sed -E -e 's|a|b|' -e '/x/d' y
sed *                       | sed '1,5d;s/a b/c/' x
awk *                       | awk -F, '{ print $1 }' x
awk *                       | awk '$1 == "a" || $2 { n++ } END { print n }' x
python x.py *               | python x.py -v
python -m pytest *          | python -m pytest -x tests
node x.js *                 | node x.js
bash x.sh *                 | bash x.sh
less *                      | less -R x
ssh -p 22 a *               | ssh -p 22 a
tar *                       | tar tf x.tar
tar *                       | tar -tzvf x.tar.gz
tar *                       | tar --list --file=x.tar
tar -xzf *                  | tar -xzf x.tgz
unzip *                     | unzip -l x.zip
gcc -Wall -O2 -Iinclude *   | gcc -Wall -O2 -Iinclude x.c
go test *                   | go test -v -race -run TestX -count=1 ./...
npm test *                  | npm test
npm run *                   | npm run build
docker *                    | docker ps -a
docker run *                | docker run --rm -it -p 80:80 x
cargo test *                | cargo test --release
kubectl *                   | kubectl get pods -n x -o json
ls *                        | ls *.py
ls *                        | ls .g*
test *                      | test -f x
cat *                       | cat .github/workflows/x.yml
echo *                      | echo * $HOME
unknown *                   | unknown -v --verbose --depth=3 x
unknown --output=* *        | unknown --output=x y
timeout 5 make *            | timeout 5 make all
git *                       | timeout 5 git log
git *                       | timeout -s KILL -k 1 5 git log
git *                       | timeout --signal=KILL 5s git log
git *                       | /usr/bin/timeout 5 git log
git *                       | nice -n 5 git log
git *                       | nice -5 git log
git *                       | nice git log
git *                       | ionice -c2 -n 7 git log
git *                       | nohup git log
git *                       | setsid -w git log
git *                       | time git log
git *                       | time -p git log
git *                       | stdbuf -oL git log
git *                       | stdbuf -o L -e0 git log
git *                       | env git log
git *                       | env -u X git log
git *                       | command git log
git *                       | exec git log
git *                       | nice timeout 5 env git log --oneline
git log                     | timeout 5 git log
A=b git *                   | A=b git log
env A=b git *               | env A=b git log
sudo git *                  | sudo git log
sudo -u x git *             | sudo -u x git log
xargs grep *                | xargs grep foo
xargs -0 grep *             | xargs -0 grep foo
npx eslint *                | npx eslint .
uv run pytest *             | uv run pytest -x
env *                       | env
command *                   | command -v git
ls *                        | ls | timeout 5 ls
cp *                        | cp x y
cp x .vimrc                 | cp x .vimrc
cp * .vimrc                 | cp x .vimrc
rg *                        | rg --files
rg *                        | rg --files -g '*.py'
rg *                        | rg -- -foo src
black *                     | black --check .
isort *                     | isort --check .
ruff *                      | ruff format --check .
ruff *                      | ruff check --output-format=concise
prettier *                  | prettier --check .
cargo fmt *                 | cargo fmt --check
cargo fmt *                 | cargo fmt -- --check
git *                       | git diff --check
git *                       | git --no-pager diff --check
git *                       | git --no-pager log -c
git *                       | git log --diff-filter=A --name-only
git *                       | git rev-parse --show-prefix
git *                       | git log -S x --pickaxe-all
git *                       | git log -S'foo(bar)' --pickaxe-all
git log *                   | git log -Gcolor -C -c
git *                       | git status -uno
git *                       | git ls-files -o --exclude-standard
git *                       | git ls-files -co
git *                       | git grep -o foo
git *                       | git grep -C3 -e foo
git *                       | git blame -C -L1,5 x
pytest *                    | pytest --co -q
pytest *                    | pytest --log-level=DEBUG
pytest *                    | pytest --log-cli-level INFO
pytest *                    | pytest --import-mode=importlib
pytest *                    | pytest --cov=src --cov-report=term-missing
eslint *                    | eslint . --ext .ts
curl *                      | curl -sSLm 5 https://a/b
curl *                      | curl -sH 'Accept: x' https://a/b
uniq *                      | uniq -cf 1 x
tar *                       | tar -tfx.tar
tar *                       | tar --list --exclude=a:b --file=x.tar
unzip *                     | unzip -lq x.zip
unzip *                     | unzip -Z1 x.zip
unzip *                     | unzip -p x.zip a.txt
tree *                      | tree -a -L 2 -I 'x|y'
sed *                       | sed -n -- 5p x
cp *                        | cp $HOME/x "$PWD/a b/c"
cp *                        | cp '$Z.py' y
cp $A $B                    | cp $A $B
ls *                        | ls $Z.git
cat *                       | cat $_
awk *                       | awk '{ print $1.$2 }' x
awk *                       | awk "{ print \$1 }" x
sed *                       | sed 's#a#b#' x
sed *                       | sed -E 's,a/b,c/d,g;s@x@y@' x
sed *                       | sed ':a;N;$!ba;s/\n/ /g' x
sed *                       | sed -n '/a/,/b/{s/x/y/;p}' x
sed *                       | sed -n '/a/I,+3p' x
sed *                       | sed 'y/abc/xyz/' x
sed *                       | sed '1i # title' x
sed *                       | sed '1!G;h;$!d' x
awk *                       | awk '$3 > 5 {print}' x
awk *                       | awk '$3>5' x
awk *                       | awk '{ print ($1 > 5 ? "a" : "b") }' x
awk *                       | awk '/foo/ && $3 > 5 { print $1 "|" $2 }' x
awk *                       | awk '{ a[$1] += $2/10 } END { for (k in a) if (a[k] > 3) print k }' x
awk *                       | awk 'length > 80 { print FILENAME ":" FNR }' ./x ../y /etc/z
rg *                        | rg foo *.py
rg *                        | rg foo *.{ts,tsx}
git *                       | git diff -- *.py
rg *                        | rg foo *_test.go src
wc *                        | wc -l *.py
pytest *                    | pytest -p no:cacheprovider
pytest *                    | pytest -pno:cacheprovider -q
pytest *                    | pytest -qp no:randomly tests
pytest *                    | pytest --cov-report term-missing
tsc *                       | tsc -p tsconfig.json
tsc *                       | tsc --noEmit --project packages/a/tsconfig.json
tsc *                       | tsc -b packages/a
npm install --save-dev *    | npm install --save-dev x
npm i *                     | npm i -D x
pnpm add --save-dev *       | pnpm add --save-dev x
pip install -e *            | pip install -e .
pip install *               | pip install --editable=./pkg -r requirements.txt
git *                       | git bundle verify x
git *                       | git cat-file -p HEAD:x
git *                       | git help log
git switch *                | git switch -c topic
git branch -C *             | git branch -C a b
git commit *                | git commit -C HEAD
ping *                      | ping -c 1 host
git clone *                 | git clone --filter=blob:none https://a/b
cargo build --target *      | cargo build --target wasm32-unknown-unknown
mvn *                       | mvn -q -DskipTests package
unknown *                   | unknown --log-level debug --output-format=json
unknown *                   | unknown --check --dry-run
kubectl *                   | kubectl logs -f x
node --test *               | node --test
jest *                      | jest --coverage src
gh *                        | gh run view 1 --log
dotnet test -c Release --filter * | dotnet test -c Release --filter X
curl *                      | curl -s -o /dev/null -w '%{http_code}\n' https://a/b
date *                      | date
date *                      | date -u +%s
date *                      | date -uI
date *                      | date --date='2 days ago' +%F
date -s *                   | date -s 12:00
date -s 12:00               | date -s 12:00
ls *                        | ls *
ls *                        | ls -la --color=never *
echo *                      | echo --- $X -x
grep *                      | grep -rn --include=*.py -A3 -m 5 foo src
head *                      | head -n -5 x
head *                      | head -20 x
find *                      | find . -mtime -7 -size +10k -name '*.py' -print0
find * -delete              | find . -delete
hostname *                  | hostname -I
sysctl *                    | sysctl -n kernel.ostype
sysctl -w *                 | sysctl -w a.b=1
mount *                     | mount
ip *                        | ip -br addr show
ip *                        | ip a
systemctl *                 | systemctl status --no-pager ssh
systemctl restart *         | systemctl restart ssh
journalctl *                | journalctl -u ssh -n 50 --no-pager
tar *                       | tar tvf x.tar a b
tar xzf *                   | tar xzf x.tgz
unzip *                     | unzip -l *.zip
rsync -av *                 | rsync -av a b
wget *                      | wget -qO- https://a/b
git *                       | git branch --list 'x*'
git *                       | git branch --contains HEAD
git *                       | git branch -vv
git *                       | git tag -l 'v*'
git *                       | git remote -v
git *                       | git remote get-url origin
git *                       | git config --get user.name
git *                       | git config --list --show-origin
git *                       | git stash list
git *                       | git log --format=%H -n 3 -20 -- a b
git *                       | git log -p --stat -M50% HEAD~3..HEAD
git *                       | git rev-parse --abbrev-ref HEAD
git *                       | git --no-pager blame -L 1,5 x
git stash *                 | git stash pop
git push *                  | git push -u origin main
git branch -D *             | git branch -D x
git branch topic *          | git branch topic main
git -C sub *                | git -C sub log -3
npm *                       | npm ls --depth=0
npm *                       | npm config get registry
npm run *                   | npm run build -- --watch
docker *                    | docker compose ps
docker *                    | docker logs -f --tail=20 x
gh *                        | gh pr view 3 --json title
gh *                        | gh api repos/a/b --jq .name
go *                        | go env GOPATH
kubectl *                   | kubectl -n x get pods -o wide
pip *                       | pip --version
python *                    | python --version
pytest *                    | pytest tests/*.py
mytool *                    | mytool run -v --all x
mkdir *                     | mkdir -p a/b
printf *                    | printf '%s: %d\n' a 5
rm *                        | rm -rf build
*                           | git commit -m x
*                           | rm -rf x
*                           | python x.py
"""
# The rule that denies | the command.
DENY = r"""
rm *                        | timeout 5 rm -rf x
rm *                        | timeout -k 1 5 rm x
rm *                        | nice -n 5 rm x
rm *                        | nice -5 rm x
rm *                        | ionice -c 2 -n 7 rm x
rm *                        | stdbuf -oL rm x
rm *                        | setsid -f rm x
rm *                        | nohup rm x &
rm *                        | env A=b C=d rm x
rm *                        | env -u A rm x
rm *                        | env --unknown rm x
rm *                        | sudo -u root rm x
rm *                        | sudo --unknown=1 rm x
rm *                        | doas rm x
rm *                        | ls | xargs -0 -n 1 rm -f
rm *                        | xargs -I {} rm {}
rm *                        | command rm x
rm *                        | builtin exec rm x
rm *                        | A=b rm x
rm *                        | A=b timeout 5 nice /bin/rm x
rm *                        | find . -exec rm {} +
rm *                        | find . -type f -execdir rm {} ;
rm *                        | bash -c 'rm x'
rm *                        | bash -ec 'ls && rm x' y
rm *                        | sudo sh -c "timeout 5 rm x"
rm *                        | sh -c 'sh -c "rm x"'
rm *                        | busybox rm x
rm *                        | time rm x
rm *                        | npx rm x
rm *                        | uv run rm x
rm *                        | docker exec x rm y
curl *                      | ls; timeout 5 curl http://a/
git push *                  | nice git push
git push *                  | GIT_DIR=x git push
sudo *                      | nice sudo ls
"""


# Programs that send what a URL contains, and the schemes and hosts for which they do.
SCHEMES = """
dict file ftp ftps gopher gophers http+unix imap imaps ldap ldaps mqtt pop3 pop3s rtmp rtmpt rtsp rtsps scp sftp smb
smbs smtp smtps telnet tftp unix ws wss x h ht httpsx
"""


@pytest.mark.parametrize("rule", ["curl *", "wget *", "lynx *", "w3m *", "http *"])
@pytest.mark.parametrize("scheme", SCHEMES.split())
def test_an_address_with_another_scheme_asks(rule, scheme):
    program = {"wget *": "wget -O-", "lynx *": "lynx -dump"}.get(rule, rule.removesuffix(" *"))
    for name in (
        scheme,
        scheme.upper(),
        f"{scheme[0]}''{scheme[1:]}",
        f"%{ord(scheme[0]):x}{scheme[1:]}",
        f" {scheme}",
    ):
        for rest in ("://127.0.0.1:6379/_x", ":///x", ":/127.0.0.1/x", ":127.0.0.1/x", "://a/http://b"):
            for word in (f'"{name}{rest}"'.replace("''", '""'), f"'{{{name},http}}{rest}'", f"--url '{name}{rest}'"):
                assert decide(f"{program} {word}", allow=[rule]) == "ask", word
    assert decide(f"{program} --proto-default {scheme} a", allow=[rule]) == "ask"
    assert decide(f"{program} --proto =all --proto-redir =all http://a/", allow=[rule]) == "ask"
    assert decide(f"{program} -K x http://a/", allow=[rule]) == "ask"


@pytest.mark.parametrize("host", ["dict", "ftp", "imap", "ldap", "pop3", "smtp", "FTP", "Dict"])
def test_curl_guesses_no_other_scheme(host):
    for address in (
        f"{host}.a.example",
        f"{host}.a/x:y",
        f"u@{host}.a",
        f"u:p@{host}.a/",
        f"%{ord(host[0]):x}{host[1:]}.a",
    ):
        assert decide(f"curl {address}", allow=["curl *"]) == "ask"
        assert decide(f"curl https://{address}", allow=["curl *"]) == "allow"


@pytest.mark.parametrize(
    "address", ["a.example", "a.example/x?y=http://b", "localhost:80/x", "HTTP://a/", "https://a/b?c=d&e"]
)
def test_an_address_of_the_web_is_allowed(address):
    assert decide(f"curl -s '{address}'", allow=["curl *"]) == "allow"
    assert decide(f"wget -qO- '{address}'", allow=["wget *"]) == "allow"


def test_wget_takes_a_path_after_a_colon_for_ftp():
    for address in ("a.example:x", "a.example:80x/", "a.example:80?x", "a:b@c/"):
        assert decide(f"wget -O- '{address}'", allow=["wget *"]) == "ask"


TOOLCHAINS = """
cargo rustc rustdoc rustfmt rustup rust-analyzer cargo-fmt cargo-clippy clippy-driver mise asdf volta corepack yarn pnpm
bazel
"""


@pytest.mark.parametrize("program", TOOLCHAINS.split())
def test_a_program_that_a_file_of_the_folder_selects_asks(program):
    for words in ("", "version", "--version", "-V", "-v", "--help", "help", "search x", "list", "info x", "which x"):
        assert decide(f"{program} {words}", allow=[f"{program} *"]) == "ask", words
        assert decide(f"/usr/bin/{program} {words}", allow=[f"/usr/bin/{program} *"]) == "ask", words


def test_brew_reads_no_formula_of_a_path():
    for name in ("./x.rb", "x.rb", "x/y/z", "/tmp/x", "../x", "https://a/x.rb", "x.bottle.tar.gz", "x.json"):
        for subcommand in ("info", "deps", "list", "outdated"):
            assert decide(f"brew {subcommand} {name}", allow=["brew *"]) == "ask"
    assert decide("brew info python@3.12", allow=["brew *"]) == "allow"


def rows(table):
    return [tuple(part.strip() for part in line.split(" | ", 1)) for line in table.strip().split("\n")]


def test_there_are_enough_rows():
    assert len(rows(ASK) + rows(ALLOW) + rows(DENY)) > 350


@pytest.mark.parametrize(("rule", "command"), rows(ASK))
def test_a_wildcard_does_not_allow(rule, command):
    assert decide(command, allow=[rule]) == "ask"
    # In a rule, `*` and `?` are wildcards; those of a shell are not quoted.
    if "'" in command or not set("*?") & set(command):
        assert decide(command, allow=[command]) == "allow"


@pytest.mark.parametrize("letter", ["\xa0", "\x0b", "\x0c", "\r", "\x1c", "\x85", "\u2003", "\u200b", "\x01"])
def test_only_the_spaces_of_a_shell_separate_words(letter):
    for command in (
        f"rg -e{letter} --pre=./x a",
        f"ls{letter}",
        f"{letter}ls",
        f"ls{letter}a",
        f"ls >{letter}/dev/null",
    ):
        assert decide(command, allow=["rg *", "ls", "ls *", "*"]) == "ask"
    assert decide(f"rg 'a{letter}b'", allow=["rg *"]) == "allow"


@pytest.mark.parametrize(("rule", "command"), rows(ALLOW))
def test_a_rule_allows(rule, command):
    assert decide(command, allow=[rule]) == "allow"


def test_a_glob_may_match_a_file_with_the_name_of_an_option(tmp_path):
    commands = ["rg foo *.py", "sort *.txt", "rg foo *.py | sort -u | ls", "timeout 5 rg foo *.py"]
    assert [decide(command, tmp_path, allow=["rg *", "sort *", "ls"]) for command in commands] == ["allow"] * 4
    (tmp_path / "--pre=x.py").touch()
    assert [decide(command, tmp_path, allow=["rg *", "sort *", "ls"]) for command in commands] == ["ask"] * 4
    assert decide("rg foo ./*.py", tmp_path, allow=["rg *"]) == "allow"
    assert decide("rg foo *.py", tmp_path / "none", allow=["rg *"]) == "ask"


@pytest.mark.parametrize(
    "other",
    ["mv a ./--pre=x.py", "cd sub", "X=1", "A=b touch x", "python x.py", "tee ./-x.py", "git checkout x", "env"],
)
def test_a_glob_beside_a_command_that_may_create_files(other, tmp_path):
    for command in (f"{other}; rg foo *.py", f"rg foo *.py | {other}"):
        assert decide(command, tmp_path, allow=["rg *", other]) == "ask"


@pytest.mark.parametrize(("rule", "command"), rows(DENY))
def test_a_rule_that_denies_finds(rule, command):
    assert decide(command, allow=["*"], deny=[rule]) == "deny"


# -------------------------------------------------------------------------------------------------------- properties


PLAIN = ["", "timeout 5 ", "nice -n 5 ", "env ", "nohup ", "stdbuf -oL ", "command ", "time "]
OTHER = ["sudo ", "xargs ", "A=b ", "env A=b ", "doas -u x "]
WORDS = st.sampled_from(["a", "src/b.py", "'c d'", '"e"', "1"])
READER_PROGRAMS = ["cat", "cut", "diff", "grep", "head", "ls", "stat", "wc"]


@examples(1)
@given(st.sampled_from([*PLAIN, *OTHER]), st.sampled_from(READER_PROGRAMS), st.lists(WORDS, max_size=3))
def test_wrappers_are_looked_through(wrapper, program, words):
    inner = " ".join([program, *words])
    assert decide(inner, allow=[f"{program} *"]) == "allow"
    is_plain = wrapper in PLAIN
    assert decide(wrapper + inner, allow=[f"{program} *"]) == ("allow" if is_plain else "ask")
    assert decide(wrapper + inner, allow=["*"], deny=[f"{program} *"]) == "deny"
    if wrapper:
        assert decide(wrapper + inner, allow=[f"{wrapper.split()[0]} *"]) == "ask"
