"""`segue serve` as a process: start, requests, signals, reload, mistakes of the configuration."""

from __future__ import annotations

import json
import resource
import signal
import socket
import threading
from base64 import b64encode
from pathlib import Path

import httpx2
import pytest

from segue.emulator import start
from segue.gateway.control_api import OWN_PATHS
from segue.gateway.hooks import HookSettings
from segue.gateway.passthrough_routes import PassthroughSettings
from segue.gateway.routes import RouteSettings
from segue.gateway.setting_warnings import find_warnings
from segue.gateway.settings import GatewaySettings
from tests.cli.gateway_process import HELLO, PATIENCE, record_files, serving, start_segue
from tests.cli.process import is_one_line_error
from tests.cli.project import KEY, Project
from tests.cli.test_route import make_certificate
from tests.gateway.upstreams import running_upstream

ONE_ROUTE = "[[gateway.routes]]\ntargets = ['ollama/x']\n"
ROUTE = '[[gateway.routes]]\nmodel = "named"\ntargets = ["{}"]\n'
PROVIDER = '[providers.{}]\napi = "{}"\nbase_url = "{}"\nkey_variable = "TEST_KEY"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    return made


def test_it_serves_until_it_is_terminated(project: Project) -> None:
    with serving(project, "--emulated", "--json", "--usage", "usage.jsonl") as gateway:
        assert "emulated" in gateway.line()
        reply = gateway.post(**{"x-request-id": "my-id"})
        assert reply.status_code == 200
        assert reply.headers["x-request-id"] == "my-id"
        logged = json.loads(gateway.line())
        assert (logged["request_id"], logged["status"], logged["operation"]) == ("my-id", 200, "reply")
        [file] = record_files(project)
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert gateway.end() == (143, "")
    assert record_files(project) == []
    assert json.loads((project.folder / "usage.jsonl").read_text())["request_id"] == "my-id"


def test_an_interrupt_ends_it(project: Project) -> None:
    with serving(project, "--emulated") as gateway:
        code, _ = gateway.end(signal.SIGINT)
        assert code == 130


def test_open_requests_finish_after_sigterm(project: Project) -> None:
    with start("anthropic", script="say One.\nwait 2\nsay Two.") as emulator:
        project.write_user_config(PROVIDER.format("up", "anthropic", emulator.base_url))
        with serving(project, "-m", "up/claude-sonnet-5") as gateway:
            with httpx2.stream(
                "POST", f"{gateway.url}/v1/chat/completions", json={**HELLO, "stream": True}, timeout=PATIENCE
            ) as reply:
                chunks = reply.iter_bytes()
                first = next(chunks)
                gateway.process.send_signal(signal.SIGTERM)
                assert b"[DONE]" in first + b"".join(chunks)
            assert gateway.process.wait(PATIENCE) == 143


def test_sighup_and_reload_load_the_configuration_again(project: Project) -> None:
    with start("anthropic") as one, start("gemini") as two:
        providers = PROVIDER.format("one", "anthropic", one.base_url)
        project.write_user_config(providers + ROUTE.format("one/claude-sonnet-5"))
        with serving(project) as gateway:
            assert gateway.post({**HELLO, "model": "named"}).status_code == 200
            assert (len(one.requests), len(two.requests)) == (1, 0)
            providers += PROVIDER.format("two", "gemini", two.base_url) + '[aliases]\nnew = "two/gemini-3.8-flash"\n'
            project.write_user_config(providers + ROUTE.format("new"))
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for_line("the configuration was loaded again")
            for model in ("named", "new", "two/gemini-3.8-flash"):
                assert gateway.post({**HELLO, "model": model}).status_code == 200
            assert (len(one.requests), len(two.requests)) == (1, 3)

            project.write_user_config(providers + ROUTE.format("nowhere/x"))
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for_line(r"not loaded again: gateway.routes\[0\].targets: 'nowhere'")
            project.write_user_config("[gateway]\nport = 'x'\n")
            failed = project.run("route", "--reload")
            assert is_one_line_error(failed)
            assert "gateway.port" in failed.err
            assert gateway.post({**HELLO, "model": "named"}).status_code == 200
            assert len(two.requests) == 4

            project.write_user_config(providers + ROUTE.format("one/claude-sonnet-5"))
            assert project.run("route", "--reload").code == 0
            assert gateway.post({**HELLO, "model": "named"}).status_code == 200
            assert len(one.requests) == 2


def test_reload_uses_a_changed_setting_or_names_it(project: Project) -> None:
    with start("anthropic") as emulator, running_upstream(lambda handler: handler.reply(b"{}", 500)) as hook:
        own = PROVIDER.format("up", "anthropic", emulator.base_url)
        project.write_user_config(own)
        two = {**HELLO, "messages": HELLO["messages"] * 2}
        with serving(project, "-m", "up/claude-sonnet-5") as gateway:
            path, headers = f"{gateway.url}/v1/chat/completions", {"origin": "https://llm.example"}
            assert httpx2.post(path, json=HELLO, headers=headers, timeout=PATIENCE).status_code == 403
            assert gateway.post(two).status_code == 200
            changed = (
                '[gateway]\nallowed_origins = ["https://llm.example"]\nmax_messages = 1\nmemory_mb = 100\nport = 9\n'
            )
            project.write_user_config(own + changed)
            reloaded = project.run("route", "--reload")
            # The port is that of the command line.
            assert reloaded.out.decode().splitlines()[-1] == "  changed, but used after a restart only: memory_mb"
            gateway.wait_for_line("used after a restart only: memory_mb")
            assert httpx2.post(path, json=HELLO, headers=headers, timeout=PATIENCE).status_code == 200
            assert gateway.post(two).status_code == 413
            project.write_user_config(f'{own}[[gateway.hooks]]\nurl = "{hook.url}"\non = "request"\n')
            reloaded = project.run("route", "--reload")
            assert "restart" not in reloaded.out.decode()
            assert gateway.post(HELLO).status_code == 503
            project.write_user_config(f"{own}[gateway.groups.backend]\nbudgets = ['5/day']\n")
            refused = project.run("route", "--reload")
            assert is_one_line_error(refused)
            assert "the group backend has a budget, which needs a store" in refused.err
            assert gateway.post(HELLO).status_code == 503


def test_reload_closes_no_connection(project: Project) -> None:
    with start("anthropic", script="say One.\nwait 2\nsay Two.\n---\nsay Three.") as emulator:
        project.write_user_config(PROVIDER.format("up", "anthropic", emulator.base_url))
        with serving(project, "-m", "up/claude-sonnet-5") as gateway, httpx2.Client(timeout=PATIENCE) as client:
            path = f"{gateway.url}/v1/chat/completions"
            with client.stream("POST", path, json={**HELLO, "stream": True}) as reply:
                chunks = reply.iter_bytes()
                first = next(chunks)
                gateway.process.send_signal(signal.SIGHUP)
                gateway.wait_for_line("the configuration was loaded again")
                assert project.run("route", "--reload").code == 0
                assert b"[DONE]" in first + b"".join(chunks)
            assert client.post(path, json=HELLO).status_code == 200


def test_clients_do_not_use_up_the_files_of_a_process(project: Project) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
    try:
        with serving(project, "--emulated") as gateway:
            assert resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE)[0] == min(hard % 2**64, 2**16)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_port_in_use_is_one_line(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = project.run("serve", "--emulated", "--port", port)
        assert is_one_line_error(ended)
        assert f"127.0.0.1:{port}" in ended.err
    assert record_files(project) == []


@pytest.mark.parametrize("others", [[], ["gate.example"]])
@pytest.mark.parametrize(
    ("name", "entry", "hint"),
    [
        ("allowed_hosts", "*", "'*' is not allowed: a web page could point its own domain at this machine"),
        ("allowed_hosts", "", "is empty"),
        ("allowed_hosts", " ", "is empty"),
        ("allowed_hosts", "*.example.com", "wildcards are not supported; write each name"),
        ("allowed_hosts", "llm.*", "wildcards are not supported"),
        ("allowed_hosts", "https://llm.example.com", "write 'llm.example.com'"),
        ("allowed_hosts", "https://llm.example.com:8443/v1", "write 'llm.example.com'"),
        ("allowed_hosts", "llm.example.com/v1", "write 'llm.example.com'"),
        ("allowed_hosts", "llm.example.com:8443", "write 'llm.example.com'"),
        ("allowed_hosts", "[2001:db8::1]:80", "write '2001:db8::1'"),
        ("allowed_hosts", "bücher.example", "'xn--bcher-kva.example'"),
        ("allowed_hosts", "a b", "'a b' is not a host name"),
        ("allowed_origins", "*", "'*' is not allowed: any web page could send requests"),
        ("allowed_origins", "null", "'null' is not allowed: any web page"),
        ("allowed_origins", "", "is empty"),
        ("allowed_origins", "https://*.example.com", "wildcards are not supported; write each origin"),
        ("allowed_origins", "ui.example.com", "such as 'https://ui.example.com'"),
        ("allowed_origins", "https://ui.example.com/app", "is not an origin"),
        ("allowed_origins", "https://ui.example.com:443", "is not an origin"),
    ],
)
def test_names_that_admit_anyone_or_no_one_are_refused(
    project: Project, name: str, entry: str, hint: str, others: list[str]
) -> None:
    rest = [f"https://{each}" if name == "allowed_origins" else each for each in others]
    project.write_user_config(f"[gateway]\n{name} = {json.dumps([*rest, entry], ensure_ascii=False)}\n")
    ended = project.run("serve", "--port", "0", "--emulated")
    assert is_one_line_error(ended), ended
    assert f"gateway.{name}[{len(rest)}]: " in ended.err
    assert hint in ended.err


@pytest.mark.parametrize("host", ["*", "", " ", "http://127.0.0.1", "127.0.0.1:8787", "*.example.com", "localhost/"])
def test_an_address_to_listen_on_is_not_a_pattern_or_a_url(project: Project, host: str) -> None:
    as_flag = project.run("serve", "--port", "0", "--emulated", "--host", host)
    project.write_user_config(f"[gateway]\nhost = {json.dumps(host)}\n")
    for ended in (as_flag, project.run("serve", "--port", "0", "--emulated")):
        assert is_one_line_error(ended), ended
        assert "host: " in ended.err
        assert "0.0.0.0 stands for all addresses" in ended.err


@pytest.mark.parametrize(("mode", "verb"), [(0o644, "read"), (0o640, "read"), (0o622, "changed"), (0o666, "changed")])
@pytest.mark.parametrize(
    "kind", ["client-keys.json", "keys.json", "envelope.key", "TLS key", "TLS certificate with key"]
)
def test_a_key_that_others_can_read_or_change_is_refused(project: Project, kind: str, mode: int, verb: str) -> None:
    project.run("keys", "client", "add", "ada")
    project.run("keys", "set", "anthropic", stdin=KEY.encode())
    folder = project.home / ".config/segue"
    file = folder / kind
    if kind.startswith("TLS"):
        make_certificate(folder)
        file, name = folder / "key.pem", f'private_key = "{folder}/key.pem"'
        if kind.endswith("with key"):
            file, name = folder / "cert.pem", ""
            file.write_bytes(file.read_bytes() + (folder / "key.pem").read_bytes())
        project.write_user_config(f'[gateway]\ncertificate = "{folder}/cert.pem"\n{name}\n')
    elif kind == "envelope.key":
        file = project.home / ".local/state/segue/envelope.key"
        file.parent.mkdir(parents=True, mode=0o700)
        file.write_bytes(b64encode(b"x" * 32))
    file.chmod(mode)
    for is_link in (False, True):
        if is_link:
            file.symlink_to(file.rename(file.with_name("moved")))
        ended = project.run("serve", "--port", "0", "-m", "ollama/x")
        assert is_one_line_error(ended), ended
        assert f"{file}: can be {verb} by others (mode {mode:04o}); run chmod 600" in ended.err
        assert not record_files(project)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("port = 70000", "gateway.port"),
        ("port = 'x'", "gateway.port"),
        ("prot = 8787", "prot"),
        ("timeout = 0", "gateway.timeout"),
        ("memory_mb = 0", "gateway.memory_mb"),
        ("pending_mb = 0", "gateway.pending_mb"),
        ("large_mb = -1", "gateway.large_mb"),
        ("max_messages = 0", "gateway.max_messages"),
        ("max_calls = 'x'", "gateway.max_calls"),
        ("allowed_hosts = 'x'", "gateway.allowed_hosts"),
        ("certificate = '/missing/cert.pem'", "gateway.certificate"),
        ("certificate = '~/.config/segue/config.toml'", "gateway.certificate"),
        ("certificate = '~/.config/segue/config.toml'\nprivate_key = 'x'", "gateway.private_key"),
        ("host = 'no such host'", "segue keys client add"),
        ("host = '0.0.0.0'", "segue keys client add"),
        ("behind_proxy = true", "gateway.behind_proxy: clients of other machines need client keys"),
        ("allowed_hosts = ['localhost', 'llm.example']", "gateway.allowed_hosts[1]: clients of other machines"),
        ("[[gateway.routes]]\nmodel = 'x'", "gateway.routes[0]"),
        (f"{ONE_ROUTE}min_tokens = 10\nmax_tokens = 5", "gateway.routes[0]: min_tokens 10 is more than max_tokens 5"),
        *(
            (f"{key} = {value}", f"gateway.{key}")
            for key in ("timeout", "memory_mb")
            for value in ("inf", "nan", "-inf")
        ),
        ("[[gateway.hooks]]\nurl = 'http://127.0.0.1:1'\non = 'reply'\ntimeout = inf", "gateway.hooks[0].timeout"),
        *(
            (f"[[gateway.passthrough]]\nprovider = 'openai'\npath = '{path}'", "gateway.passthrough[0]: path")
            for path in sorted(OWN_PATHS)
        ),
        ("[prices.b]\ninput = 1\noutput = 2", 'config.toml: prices.b: expected a name such as "provider/model"'),
        ("[models.b]\neffort = 'low'", "config.toml: models.b: expected a name"),
        ("[providers.openai]\nheaders = {A = '${NOPE}'}", "providers.openai.headers.A: variables are not replaced"),
        ("store = '/proc/nope/x.db'", "config.toml: gateway.store: /proc/nope/x.db can't be used"),
        ("store = '/tmp'", "config.toml: gateway.store: /tmp is a folder; a store is a file"),
        ("[[gateway.routes]]\ntargets = []", "gateway.routes[0].targets"),
        ("[[gateway.routes]]\ntargets = ['anthropic']\nmodle = 'x'", "modle"),
        ("[[gateway.routes]]\ntargets = ['anthropic']\nbalance = 'random'", "gateway.routes[0].balance"),
        ("[[gateway.routes]]\ntargets = ['anthropic']\nattempts = 0", "gateway.routes[0].attempts"),
        ("[[gateway.routes]]\ntargets = ['anthropic']\ncaller = 'nobody'", "nobody"),
        ("[[gateway.routes]]\ntargets = ['nowhere/x']", "gateway.routes[0].targets"),
    ],
)
def test_mistakes_name_the_setting(project: Project, text: str, place: str) -> None:
    project.write_user_config(f"[gateway]\n{text}\n")
    ended = project.run("serve", "--port", "0", ANTHROPIC_API_KEY=KEY)
    assert is_one_line_error(ended), ended
    assert place in ended.err
    assert "bug" not in ended.err


ADA = f"{ONE_ROUTE}model = 'claude-*'\n"
RAW = "[[gateway.passthrough]]\nprovider = 'ollama'\n"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (f"{ONE_ROUTE}{ADA}", r"gateway\.routes\[1\] is never used: gateway\.routes\[0\] comes first"),
        (f"{ADA}{ADA}min_tokens = 9\n", r"gateway\.routes\[1\] is never used"),
        (
            f"{ADA}name = 'a'\nimages = true\n{ADA}name = 'a'\n",
            r"gateway\.routes\[1\]\.name is that of gateway\.routes\[0\]",
        ),
        (f"{RAW}path = '/'\n{RAW}path = '/v1/files'\n", r"gateway\.passthrough\[1\] is never used"),
        (f"{RAW}path = '/v1/messages'\n", r"passthrough\[0\]\.path: POST /v1/messages is translated and not passed on"),
        (f"{RAW}path = '/raw/v1/messages'\n", r"passthrough\[0\]\.path: POST /raw/v1/messages is translated"),
        (
            "[[gateway.hooks]]\nurl = 'http://10.1.2.3/'\non = 'reply'\n",
            r"gateway\.hooks\[0\]\.url: prompts and replies .* clear",
        ),
        (
            "[gateway]\nbudget_webhook = 'http://hooks.example.com/'\n",
            r"gateway\.budget_webhook: names and budgets .* clear",
        ),
    ],
)
def test_settings_that_do_not_do_what_they_seem_to_are_warnings(project: Project, text: str, warning: str) -> None:
    project.write_user_config(text)
    with serving(project, "-m", "ollama/x") as gateway:
        gateway.wait_for_line(warning)
        assert project.run("route", "--reload").code == 0
        gateway.wait_for_line(warning)


def test_settings_that_work_have_no_warnings() -> None:
    hooks = [
        HookSettings(url, "reply") for url in ("http://127.0.0.1:1", "http://[::1]/x", "https://hooks.example.com")
    ]
    names = [
        ("small", {}),
        ("claude-[ab]", {}),
        ("claude-?", {}),
        ("claude-*", {"max_tokens": 9}),
        ("claude-*", {}),
        ("*", {}),
    ]
    routes = [RouteSettings(("ollama/x",), model=name, **conditions) for name, conditions in names]
    paths = [("/v1/embeddings", False), ("/v1", False), ("/v1/messages", True), ("/", True)]
    raw = [PassthroughSettings(path, "ollama", always=always) for path, always in paths]
    settings = GatewaySettings(hooks=tuple(hooks), routes=tuple(routes), passthrough=tuple(raw))
    assert list(find_warnings(settings)) == []


def test_the_limits_of_bodies_are_settings(project: Project) -> None:
    limits = "pending_mb = 1\nlarge_mb = 0\nmax_messages = 30\nmax_calls = 20\n"
    project.write_user_config(f"[gateway]\n{limits}")
    message = {"role": "user", "content": "Hello there."}
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(21)]
    with serving(project, "--emulated") as gateway:

        def post(messages: list[dict[str, object]]) -> httpx2.Response:
            body = {**HELLO, "messages": messages}
            return httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=PATIENCE)

        assert post([message] * 30).status_code == 200
        for messages, text in (
            ([message] * 31, "31 messages; the limit is 30"),
            ([message, {"role": "assistant", "tool_calls": calls}], "21 tool calls; the limit is 20"),
            ([{**message, "content": "x" * 2**20}], "more than 1,048,576 bytes"),
        ):
            refused = post(messages)
            assert refused.status_code == 413
            assert text in refused.json()["error"]["message"]


@pytest.mark.parametrize("setting", ["behind_proxy = true", 'allowed_hosts = ["llm.example"]'])
def test_a_gateway_for_other_machines_without_keys_admits_nobody(project: Project, setting: str) -> None:
    with start("anthropic") as emulator:
        project.write_user_config(PROVIDER.format("up", "anthropic", emulator.base_url) + f"[gateway]\n{setting}\n")
        key = project.run("keys", "client", "add", "ada").lines[0]
        with serving(project, "-m", "up/claude-sonnet-5") as gateway:

            def post(key: str) -> int:
                url, headers = f"{gateway.url}/v1/chat/completions", {"x-api-key": key}
                return httpx2.post(url, json=HELLO, headers=headers, timeout=PATIENCE).status_code

            assert [post("none"), post(key)] == [401, 200]
            project.run("keys", "client", "revoke", "ada")
            assert post(key) == 401
            refused = project.run("route", "--reload")
            assert is_one_line_error(refused)
            assert "clients of other machines need client keys" in refused.err
            assert post("none") == 401


def test_a_project_file_without_trust_does_not_configure_it(project: Project) -> None:
    text = '[gateway]\nallowed_hosts = ["evil.example"]\nallowed_origins = ["https://evil.example"]\n'
    text += 'usage = "stolen.jsonl"\n'
    project.write_config(text + ROUTE.format("anthropic"))
    with start_segue(project, "serve", "--emulated", "--port", "0") as gateway:
        assert "is not trusted; ignored settings: gateway;" in gateway.line()
        gateway.url = gateway.wait_for_line(r"serving .* on (\S+);")[1]
        assert gateway.post(host="evil.example").status_code == 421
        assert gateway.post(origin="https://evil.example").status_code == 403
        assert gateway.post().status_code == 200
    assert not (project.folder / "stolen.jsonl").exists()
    refused = project.run("serve", "--emulated", "--trust", "--port", "0")
    assert "gateway.allowed_hosts[0]: clients of other machines need client keys" in refused.err


def test_aliases_are_names_of_models(project: Project) -> None:
    project.write_user_config('[aliases]\nquick = "moonshot/kimi-k2.6"\n')
    with serving(project, "--emulated", "-m", "anthropic/claude-sonnet-5") as gateway:
        names = [row["id"] for row in httpx2.get(f"{gateway.url}/v1/models", timeout=PATIENCE).json()["data"]]
        assert names == ["quick", "emulated/claude-sonnet-5"]
        assert gateway.post({**HELLO, "model": "quick"}).status_code == 200
        assert "quick → emulated/kimi-k2.6" in gateway.wait_for_line("POST.*")[0]
        assert gateway.post({**HELLO, "model": "claude-opus-5"}).status_code == 200
        assert "claude-opus-5 → emulated/claude-sonnet-5" in gateway.wait_for_line("POST.*")[0]
        assert project.run("route", "quick").out.endswith(b": emulated/kimi-k2.6\n")


def test_client_keys_are_loaded_again(project: Project) -> None:
    key = project.run("keys", "client", "add", "ada").lines[0]
    with serving(project, "--emulated") as gateway:
        assert gateway.post().status_code == 401
        assert gateway.post(authorization=f"Bearer {key}").status_code == 200
        revoked = project.run("keys", "client", "revoke", "ada")
        assert "no keys are left" in revoked.err
        # A key that is revoked must not let everyone in, even while the configuration is broken.
        project.write_user_config("[gateway]\nport = 'x'\n")
        assert gateway.post(authorization=f"Bearer {key}").status_code == 401
        gateway.wait_for_line("no client keys any more: no client is admitted; segue keys client add makes a key")
        other = project.run("keys", "client", "add", "bob").lines[0]
        assert gateway.post(authorization=f"Bearer {other}").status_code == 200
        assert project.run("keys", "client", "revoke", "bob").code == 0
        assert gateway.post().status_code == 401
        project.write_user_config("")
        assert project.run("route", "--reload").code == 0
        gateway.wait_for_line("no client keys any more: all clients of this machine are admitted")
        assert gateway.post().status_code == 200
        _, rest = gateway.end()
        assert key not in rest
        assert other not in rest


def test_a_route_whose_key_is_missing_is_named_at_the_start(project: Project) -> None:
    table = '[providers.{0}]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\nkey_variable = "{1}"\n'
    route = '[[gateway.routes]]\nmodel = "*"\ntargets = ["a/m", "b/m"]\n'
    project.write_user_config(table.format("a", "MISSING_KEY") + table.format("b", "TEST_KEY") + route)
    with serving(project) as gateway:
        assert "no API key for a: set MISSING_KEY" in gateway.line()
        code, rest = gateway.end()
    assert (code, "API key" in rest) == (143, False)


def test_routes_without_trust_are_refused(project: Project) -> None:
    """Other models than those of the project file would be served."""
    project.write_config(ROUTE.format("anthropic"))
    ended = project.run("serve", "--port", "0")
    assert is_one_line_error(ended)
    assert "is not trusted: segue trust shows and trusts it" in ended.err
    with serving(project, "--trust") as gateway:
        assert gateway.url
    assert project.run("trust").code == 0
    with serving(project) as gateway:
        project.write_config(ROUTE.format("gemini"))
        failed = project.run("route", "--reload")
        assert is_one_line_error(failed)
        assert "is not trusted" in failed.err
        gateway.process.send_signal(signal.SIGHUP)
        gateway.wait_for_line("not loaded again: .* is not trusted")


def test_names_of_real_models_get_the_emulated_default(project: Project) -> None:
    with serving(project, "--emulated", "--json") as gateway:
        for name in ("gpt-5", "gemini-3.8-flash", "unknown"):
            assert gateway.post({**HELLO, "model": name}).status_code == 200
            logged = json.loads(gateway.wait_for_line('.*"request_id".*')[0])
            assert (logged["model"], logged["target"]) == (name, "emulated/claude-sonnet-5")
            assert logged["findings"]["note"] == 1
        assert gateway.post({**HELLO, "model": "openai/gpt-5"}).status_code == 200
        logged = json.loads(gateway.wait_for_line('.*"request_id".*')[0])
        assert (logged["target"], logged["findings"].get("note")) == ("emulated/gpt-5", None)


def test_keys_of_providers_stay_inside(project: Project) -> None:
    script = f"error 401 Incorrect API key provided: {KEY}.\n---\nerror 400 The key {KEY} is bad."
    with start("anthropic", script=script) as emulator:
        project.write_user_config(PROVIDER.format("up", "anthropic", emulator.base_url))
        with serving(project, "-m", "up/claude-sonnet-5", "--usage", "usage.jsonl", "--json") as gateway:
            for _ in range(2):
                reply = gateway.post()
                assert reply.status_code in (400, 503)
                assert KEY not in reply.text + str(reply.headers)
            for path in ("/readyz", "/metrics", "/v1/models"):
                assert KEY not in httpx2.get(gateway.url + path, timeout=PATIENCE).text
            _, rest = gateway.end()
    assert rest.count("\n") >= 2
    assert KEY not in rest
    assert KEY not in (project.folder / "usage.jsonl").read_text()


def test_several_requests_at_once(project: Project) -> None:
    with serving(project, "--emulated") as gateway:
        statuses: list[int] = []
        threads = [threading.Thread(target=lambda: statuses.append(gateway.post().status_code)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 8
