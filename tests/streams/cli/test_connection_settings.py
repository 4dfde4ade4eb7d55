"""Settings of connections: secrets from files, what belongs together, files that are checked, and errors without secrets."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sinks.index.opensearch.server import Server
from streams.cli.app import app
from streams.config.settings import Settings, SettingsError, known, load, table
from streams.operations.indexes import server
from tests.servers.certificates import Authority

SECRET = "correct-horse"
LOGIN = {"PROTOCOL": "SASL_SSL", "USER": "harvest", "PASSWORD": SECRET}
OAUTH = {"PROTOCOL": "SASL_SSL", "MECHANISM": "OAUTHBEARER", "TOKEN_URL": "https://i/t", "CLIENT_ID": "c", "CLIENT_SECRET": SECRET}


def security(told: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of the section."""
    return {f"HARVEST_KAFKA_SECURITY_{name}": value for name, value in told.items()}


def error_of(environ: Mapping[str, str], config: Path | None = None) -> str:
    """The line for wrong settings, which neither its exception nor a traceback of it extends by a secret."""
    with pytest.raises(SettingsError) as error:
        load({}, config, environ)
    assert SECRET not in "".join(traceback.format_exception(error.value))
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_secret_comes_from_a_file(tmp_path: Path, end: str) -> None:
    """A file's trailing newline is not part of the secret; spaces are."""
    path = tmp_path / "password"
    path.write_bytes(f" {SECRET} {end}".encode())
    found = load({}, None, security({**LOGIN, "PASSWORD": "", "PASSWORD_FILE": str(path)})).kafka.security
    assert found.password.get_secret_value() == f" {SECRET} "
    assert SECRET not in repr(found)


@pytest.mark.parametrize("name", ["PASSWORD", "CLIENT_SECRET", "KEY_PASSWORD", "REGISTRY_PASSWORD"])
def test_every_secret_has_a_file(name: str, tmp_path: Path) -> None:
    """Each secret may be given as a file; one that cannot be read is an error of its setting."""
    line = error_of(security({f"{name}_FILE": str(tmp_path / "absent")}))
    assert line == f"HARVEST_KAFKA_SECURITY_{name}_FILE: {tmp_path}/absent: No such file or directory"


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\xfe", b"a\0b", b"x" * 65_537], ids=["empty", "newline", "binary", "nul", "long"]
)
def test_file_without_a_secret_is_an_error(tmp_path: Path, content: bytes) -> None:
    """A file that is empty, no text or very long is an error, which does not show the content."""
    path = tmp_path / "password"
    path.write_bytes(content)
    line = error_of(security({"PASSWORD_FILE": str(path)}))
    assert line.startswith(f"HARVEST_KAFKA_SECURITY_PASSWORD_FILE: {path}: empty, no text")
    assert len(line) < 300
    assert error_of(security({"PASSWORD_FILE": str(tmp_path)})).endswith(f"{tmp_path}: Is a directory")


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({"PROTOCOL": "SASL_SSL"}, "kafka.security.user: missing"),
        ({"PROTOCOL": "SASL_SSL", "USER": "u"}, "kafka.security.password: missing"),
        (LOGIN | {"PROTOCOL": "PLAINTEXT"}, "HARVEST_KAFKA_SECURITY_USER: has no effect without SASL_SSL"),
        ({"PASSWORD": SECRET}, "HARVEST_KAFKA_SECURITY_PASSWORD: has no effect without SASL_SSL"),
        (LOGIN | {"PROTOCOL": SECRET}, "HARVEST_KAFKA_SECURITY_PROTOCOL: input should be 'PLAINTEXT'"),
        (LOGIN | {"MECHANISM": "GSSAPI"}, "HARVEST_KAFKA_SECURITY_MECHANISM: input should be 'PLAIN'"),
        ({"PROTOCOL": "SASL_SSL", "MECHANISM": "OAUTHBEARER"}, "kafka.security.token_url: missing"),
        (LOGIN | {"MECHANISM": "OAUTHBEARER"} | OAUTH, "HARVEST_KAFKA_SECURITY_USER: has no effect without"),
        (OAUTH | {"TOKEN_URL": f"https://u:{SECRET}@i/t"}, "HARVEST_KAFKA_SECURITY_TOKEN_URL: string should match"),
        (LOGIN | {"SCOPE": "s"}, "HARVEST_KAFKA_SECURITY_SCOPE: has no effect without"),
        ({"CA": "ca.pem"}, "HARVEST_KAFKA_SECURITY_CA: has no effect without SSL or SASL_SSL"),
        ({"PROTOCOL": "SSL", "CERTIFICATE": "it.pem"}, "kafka.security.key: missing"),
        ({"PROTOCOL": "SSL", "KEY": "it.key"}, "kafka.security.certificate: missing"),
        ({"PROTOCOL": "SSL", "KEY_PASSWORD": SECRET}, "HARVEST_KAFKA_SECURITY_KEY_PASSWORD: has no effect without a certificate"),
        ({"REGISTRY_USER": "u"}, "kafka.security.registry_password: missing"),
        ({"REGISTRY_PASSWORD": SECRET}, "HARVEST_KAFKA_SECURITY_REGISTRY_PASSWORD: has no effect without a user"),
        ({"PASSWORD": f"{SECRET}\0"}, "HARVEST_KAFKA_SECURITY_PASSWORD: a NUL"),
        ({"PASSWORD": SECRET * 6_000}, "HARVEST_KAFKA_SECURITY_PASSWORD: value should have at most"),
        (
            {"PASSWORDS": SECRET},
            "HARVEST_KAFKA_SECURITY_PASSWORDS: no such setting (did you mean HARVEST_KAFKA_SECURITY_PASSWORD?)",
        ),
    ],
)
def test_contradictions_are_errors_of_a_setting(told: Mapping[str, str], line: str) -> None:
    """What is missing, has no effect or is unknown is one line that begins with its setting."""
    assert error_of(security(told)).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f'password = ["{SECRET}"]', "kafka.security.password: "),
        (f'password = {{ a = "{SECRET}" }}', "kafka.security.password: "),
        (f'"{SECRET}', "not TOML"),
        (f'[kafka]\nsecurity = "{SECRET}"', ""),
        (f'[kafka]\nregistry = "http://u:{SECRET}@registry"', "kafka.registry: user and password belong to"),
        (f'[kafka]\nregistry = ["{SECRET}"]', "kafka.registry: input should be"),
        (f'[kafka.client]\nsasl.password = "{SECRET}"', "kafka.client: sasl.password is set by kafka.security.password"),
    ],
)
def test_wrong_file_shows_no_secret(tmp_path: Path, text: str, line: str) -> None:
    """A secret at the wrong place, or of the wrong type, is not shown."""
    path = tmp_path / "h.toml"
    path.write_text(text if text.startswith("[kafka") else f"[kafka.security]\n{text}\n")
    assert error_of({}, path).startswith(f"{path}: {line}")


def test_secret_given_twice_is_an_error(tmp_path: Path) -> None:
    """A secret that is given as itself and as a file is an error."""
    path = tmp_path / "password"
    path.write_text(SECRET)
    assert "given twice, also as password_file" in error_of(security(LOGIN | {"PASSWORD_FILE": str(path)}))


def test_certificates_are_checked(tmp_path: Path) -> None:
    """Files of certificates that are missing, no PEM, or do not belong together are errors of their settings."""
    authority = Authority(tmp_path)
    certificate, key = authority.sign("it")
    locked, locked_key = authority.sign("locked", password=SECRET.encode())
    _, other = authority.sign("other")
    (text := tmp_path / "text").write_text("none")
    tls = {"PROTOCOL": "SSL", "CA": str(authority.path)}
    pair = {"CERTIFICATE": str(certificate), "KEY": str(key)}
    assert load({}, None, security(tls | pair)).kafka.security.certificate == str(certificate)
    opened = {"CERTIFICATE": str(locked), "KEY": str(locked_key), "KEY_PASSWORD": SECRET}
    assert load({}, None, security(tls | opened)).kafka.security.key_password.get_secret_value() == SECRET
    for name in ("CA", "CERTIFICATE", "KEY"):
        wanted = f"HARVEST_KAFKA_SECURITY_{name}: {text}: has no "
        assert error_of(security(tls | pair | {name: str(text)})).startswith(wanted)
        wanted = f"HARVEST_KAFKA_SECURITY_{name}: {tmp_path}/absent: No such file or directory"
        assert error_of(security(tls | pair | {name: f"{tmp_path}/absent"})) == wanted
    line = error_of(security(tls | pair | {"KEY": str(other)}))
    assert line == f"HARVEST_KAFKA_SECURITY_KEY: {other}: does not match the certificate {certificate}"
    line = error_of(security(tls | opened | {"KEY_PASSWORD": "wrong"}))
    assert line == f"HARVEST_KAFKA_SECURITY_KEY_PASSWORD: the key {locked_key} is encrypted, and this is not its password"
    del opened["KEY_PASSWORD"]
    assert error_of(security(tls | opened)).startswith("kafka.security.key_password: the key ")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"socket.keepalive.enable" = true\n"linger.ms" = 3', {"socket.keepalive.enable": "true", "linger.ms": "3"}),
        ('socket.keepalive.enable = true\nlinger.ms = "3"', {"socket.keepalive.enable": "true", "linger.ms": "3"}),
    ],
)
def test_further_settings_of_the_client(tmp_path: Path, text: str, found: Mapping[str, str]) -> None:
    """Settings of librdkafka are given by name, with or without quotes; in the environment as pairs."""
    path = tmp_path / "h.toml"
    path.write_text(f"[kafka.client]\n{text}\n")
    assert load({}, path, {}).kafka.client == found
    pairs = ", ".join(f"{name}={value}" for name, value in found.items())
    assert load({}, None, {"HARVEST_KAFKA_CLIENT": pairs}).kafka.client == found


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        (f"sasl.password={SECRET}", "sasl.password is set by kafka.security.password"),
        ("ssl.ca.location=/x", "ssl.ca.location is set by kafka.security.ca"),
        (f"sasl.kerberos.keytab={SECRET}", "sasl.kerberos.keytab is not available: logins are set by kafka.security"),
        ("bootstrap.servers=a:1", "bootstrap.servers is set by kafka.brokers"),
        ("session.timeout.ms=1", "session.timeout.ms is set by worker.session"),
        ("acks=1", "acks is fixed: Harvest relies on its value"),
        (SECRET, "NAME=VALUE pairs, separated by commas"),
    ],
)
def test_settings_of_harvest_are_refused_among_further_ones(pairs: str, line: str) -> None:
    """What Harvest sets itself is refused, with the name of the right setting, and without the value."""
    assert error_of({"HARVEST_KAFKA_CLIENT": pairs}) == f"HARVEST_KAFKA_CLIENT: {line}"


def test_table_of_settings_has_section_without_values() -> None:
    """The table of settings has each setting of the section; a secret has no default to be shown."""
    lines = [line for line in table().splitlines() if line.startswith("| `kafka.security.")]
    assert len(lines) == sum(setting.key.startswith("kafka.security.") for setting in known())
    assert not [line for line in lines if "Secret" in line.split("|")[2] or "*" in line]
    assert load({}, None, {}).kafka == Settings.model_fields["kafka"].default


def test_wrong_security_ends_a_command_with_code_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Wrong settings end a command with code 2 before it connects."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HARVEST_KAFKA_BROKERS", "127.0.0.1:1")
    monkeypatch.setenv("HARVEST_KAFKA_SECURITY_PASSWORD", SECRET)
    done = CliRunner().invoke(app, ["topics", "apply"])
    assert done.exit_code == 2
    assert "HARVEST_KAFKA_SECURITY_PASSWORD: has no effect" in done.stderr
    monkeypatch.delenv("HARVEST_KAFKA_SECURITY_PASSWORD")
    monkeypatch.setenv("HARVEST_KAFKA_CLIENT", "no.such=1")
    done = CliRunner().invoke(app, ["topics", "apply"])
    assert (done.exit_code, done.stderr) == (2, 'harvest: kafka.client: No such configuration property: "no.such"\n')


INDEX = {"URL": "https://search:9200", "USER": "harvest", "PASSWORD": SECRET}


def index(told: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of the section of the index."""
    return {f"HARVEST_INDEX_{name}": value for name, value in told.items()}


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({"URL": "https://search:9200", "USER": "u"}, "index.password: missing; needed for index.user"),
        ({"URL": "https://search:9200", "PASSWORD": SECRET}, "HARVEST_INDEX_PASSWORD: has no effect without index.user"),
        (INDEX | {"URL": f"https://u:{SECRET}@search:9200"}, "HARVEST_INDEX_USER: given twice, also in index.url"),
        (INDEX | {"URL": f"ftp://{SECRET}"}, "HARVEST_INDEX_URL: string should match"),
        ({"URL": "http://search:9200", "CA": "ca.pem"}, "HARVEST_INDEX_CA: has no effect without index.url with https"),
        (INDEX | {"CERTIFICATE": "it.pem"}, "index.key: missing"),
        (INDEX | {"KEY_PASSWORD": SECRET}, "HARVEST_INDEX_KEY_PASSWORD: has no effect without a certificate"),
        (INDEX | {"CA": "/absent/ca.pem"}, "HARVEST_INDEX_CA: /absent/ca.pem: No such file"),
        ({"PASSWORD_FILE": "/absent/password"}, "HARVEST_INDEX_PASSWORD_FILE: /absent/password: No such file"),
    ],
)
def test_login_at_the_index_is_whole_or_an_error(told: Mapping[str, str], line: str) -> None:
    """What is missing, given twice or has no effect is one line that begins with its setting."""
    assert error_of(index(told)).startswith(line)


def test_index_is_asked_with_login_and_certificates(tmp_path: Path) -> None:
    """The server of the settings has all that a connection takes; another one has its URL alone."""
    authority = Authority(tmp_path)
    certificate, key = authority.sign("client", password=b"for-the-key")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    files = {"PASSWORD_FILE": "password", "CA": "ca.pem", "CERTIFICATE": certificate.name, "KEY": key.name}
    told = {"URL": "https://search:9200", "USER": "harvest", "KEY_PASSWORD": "for-the-key", "CHECK_HOSTNAME": "false"}
    found = load({}, None, index(told | {name: str(tmp_path / file) for name, file in files.items()}))
    made = server(found)
    assert isinstance(made, Server)
    assert (made.url, made.user, made.password, made.key_password) == (told["URL"], "harvest", SECRET, "for-the-key")
    assert (made.ca, made.certificate, made.key) == (str(authority.path), str(certificate), str(key))
    assert made.check_hostname is False
    assert server(found, "https://search:9200/") == made
    assert server(found, "https://other:9200") == "https://other:9200"
    assert SECRET not in repr(made) + repr(found.index) + f"{made}"
    assert server(load({}, None, {})) == ""
