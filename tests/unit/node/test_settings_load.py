"""Loading settings: precedence, validation and messages."""

from pathlib import Path

import pytest

from strandline.errors import ExitCode, Fatal
from strandline.node.settings import Problem, Settings, SettingsError, load, load_settings, load_with_origins
from strandline.node.settings.units import Duration

pytestmark = pytest.mark.unit

SECTIONS = "log, dataset, node, shard, store, replay, jobs, http, query, gateway, kafka, cassandra, spark, stack"

SECRET = "hunter2-s3cr3t"


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "etc" / "strandline.toml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "strandline.toml"


def problems(file: Path | None, text: str = "", **environ: str) -> tuple[Problem, ...]:
    if file is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as raised:
        load_settings(file, environ)
    assert SECRET not in str(raised.value)
    assert SECRET not in repr(raised.value)
    assert SECRET not in repr(raised.value.problems)
    assert raised.value.__cause__ is None
    return raised.value.problems


def test_without_a_file_and_an_environment_the_defaults_hold() -> None:
    loaded = load_with_origins(None, {"HOME": "/nowhere", "PATH": "/bin"})
    assert loaded.settings == Settings()
    assert loaded.file is None
    assert loaded.origins == {}


def test_settings_read_nothing_from_the_process_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOG", "KAFKA", "STRANDLINE_LOG__LEVEL", "log"):
        monkeypatch.setenv(name, '{"level": "error"}')
    assert Settings().log.level == "info"
    assert load_settings(None, {}).log.level == "info"


def test_the_file_overrides_defaults_and_the_environment_overrides_the_file(file: Path) -> None:
    file.write_text('[log]\nlevel = "error"\nformat = "json"\n[kafka]\nrequest_timeout = "5s"\n', encoding="utf-8")
    loaded = load_with_origins(file, {"STRANDLINE_LOG__LEVEL": "debug"})
    assert (loaded.settings.log.level, loaded.settings.log.format) == ("debug", "json")
    assert loaded.settings.kafka.request_timeout == Duration.parse("5s")
    assert loaded.settings.cassandra == Settings().cassandra
    assert loaded.origins["log.level"].where == "environment variable STRANDLINE_LOG__LEVEL"
    assert loaded.origins["log.format"].where == "strandline.toml line 3"
    assert loaded.origins["kafka.request_timeout"].kind == "file"


def test_settings_can_not_be_changed() -> None:
    settings = load_settings(None, {})
    with pytest.raises(ValueError, match="frozen"):
        settings.log.level = "debug"  # type: ignore[misc]  # what must not work
    with pytest.raises(ValueError, match="frozen"):
        settings.log = settings.log  # type: ignore[misc]  # what must not work


def test_the_file_is_given_by_option_or_variable_or_is_the_systems(tmp_path: Path) -> None:
    def write(path: Path, level: str) -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'[log]\nlevel = "{level}"\n', encoding="utf-8")
        return path

    write(load.DEFAULT_FILE, "debug")
    assert load_settings(None, {}).log.level == "debug"
    assert load_settings(None, {"STRANDLINE_CONFIG": ""}).log.level == "debug"
    by_variable = {"STRANDLINE_CONFIG": str(write(tmp_path / "variable.toml", "warning"))}
    assert load_settings(None, by_variable).log.level == "warning"
    assert load_settings(write(tmp_path / "named.toml", "error"), by_variable).log.level == "error"


def test_every_kind_of_value_can_be_set_in_the_environment() -> None:
    settings = load_settings(
        None,
        {
            "STRANDLINE_KAFKA__BOOTSTRAP_SERVERS": "a:1, b:2,",
            "STRANDLINE_KAFKA__SECURITY_PROTOCOL": "ssl",
            "STRANDLINE_KAFKA__CLIENT": '{"fetch.min.bytes": 5, "debug": "broker", "log.connection.close": false}',
            "STRANDLINE_CASSANDRA__PORT": "9999",
            "STRANDLINE_CASSANDRA__TLS": "True",
            "STRANDLINE_CASSANDRA__CREDENTIALS_FILE": "",
            "STRANDLINE_SPARK__PROPERTIES": '{"spark.ui.enabled": false}',
            "STRANDLINE_SPARK__DRIVER_MEMORY": "2g",
        },
    )
    assert settings.kafka.bootstrap_servers == ("a:1", "b:2")
    assert settings.kafka.security_protocol == "SSL"
    assert settings.kafka.client == {"fetch.min.bytes": 5, "debug": "broker", "log.connection.close": False}
    assert settings.cassandra.port == 9999
    assert settings.cassandra.tls is True
    assert settings.cassandra.credentials_file is None
    assert settings.spark.properties == {"spark.ui.enabled": "false"}
    assert str(settings.spark.driver_memory) == "2g"


def test_properties_in_the_environment_add_to_those_in_the_file(file: Path) -> None:
    file.write_text('[kafka.client]\nfetch.min.bytes = 1\n"queued.min.messages" = 2\n', encoding="utf-8")
    loaded = load_with_origins(file, {"STRANDLINE_KAFKA__CLIENT": '{"fetch.min.bytes": 9}'})
    assert loaded.settings.kafka.client == {"fetch.min.bytes": 9, "queued.min.messages": 2}
    assert loaded.origins["kafka.client.fetch.min.bytes"].kind == "environment"
    assert loaded.origins["kafka.client.queued.min.messages"].where == "strandline.toml line 3"


def test_all_problems_are_reported_at_once_with_their_places(file: Path) -> None:
    text = """\
[log]
level = "eror"

[kafka]
bootstrap_servers = ["a"]
request_timeout = 30
security_protocol = "SASL_SSL"

[kafka.client]
isolation.level = "read_uncommitted"

[cassandra]
port = 70000
keyspace = "Drop Table"
local_datacentre = "x"

[spork]
master = "local"

[stack]
kafka_port = 5000
cassandra_port = 5000
kafka_heap = "1m"
"""
    reported = problems(file, text, STRANDLINE_SPARK__MASTER="lokal", STRANDLINE_STACK_JAVA_HOME="/x")
    assert [(problem.setting, problem.value_shown, problem.where) for problem in reported] == [
        ("log.level", '"eror"', "strandline.toml line 2"),
        ("kafka.bootstrap_servers", '["a"]', "strandline.toml line 5"),
        ("kafka.request_timeout", "30", "strandline.toml line 6"),
        ("kafka.client.isolation.level", '"read_uncommitted"', "strandline.toml line 10"),
        ("cassandra.port", "70000", "strandline.toml line 13"),
        ("cassandra.keyspace", '"Drop Table"', "strandline.toml line 14"),
        ("cassandra.local_datacentre", "(hidden)", "strandline.toml line 15"),
        ("spark.master", '"lokal"', "environment variable STRANDLINE_SPARK__MASTER"),
        ("stack.kafka_heap", '"1m"', "strandline.toml line 23"),
        ("spork", "(hidden)", "strandline.toml line 17"),
        # Found only after the values that are invalid by themselves were removed.
        ("kafka.sasl_mechanism", "", "strandline.toml line 7"),
        ("kafka.credentials_file", "", "strandline.toml line 7"),
        ("stack.cassandra_port", "5000", "strandline.toml line 22"),
        ("STRANDLINE_STACK_JAVA_HOME", "(hidden)", "environment variable STRANDLINE_STACK_JAVA_HOME"),
    ]
    assert [(problem.what, problem.remedy) for problem in reported] == [
        ("is not one of the allowed values", 'One of debug, info, warning, error. Did you mean "error"?'),
        (
            "names a server without a port",
            'A list such as ["host-1:9092", "host-2:9092"], or the same as one text with commas',
        ),
        ("is not a duration", 'Write an integer and one of ms, s, m, h, d, such as "30s" or "5m"'),
        ("is set by Strandline: every reader is read_committed", "Leave it out"),
        ("is not between 1 and 65535", "An integer from 1 to 65535"),
        ("is not a keyspace's name", "At most 48 of a-z, 0-9 and _, a letter first"),
        ("is not a setting", 'Did you mean "local_datacenter"?'),
        (
            "is not a Spark master",
            'Such as "local[*]", "local[4]", "spark://host:7077", "yarn" or "k8s://https://host:443"',
        ),
        ("is below 256m", "At least 256m"),
        ("is not a section", 'Did you mean "spark"?'),
        ("is needed with security_protocol SASL_SSL", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
        ("is needed with security_protocol SASL_SSL", "The path of a file"),
        ("is the same port as kafka_port", "Another port, or 0 for any free one"),
        ("has only one underscore after the section", 'Did you mean "STRANDLINE_STACK__JAVA_HOME"?'),
    ]


def test_a_shard_may_not_be_killed_while_it_waits_for_a_broker(file: Path) -> None:
    (reported,) = problems(file, '[node]\nhang_after = "30s"\n')
    assert (reported.setting, reported.value_shown, reported.where) == (
        "node.hang_after",
        '"30s"',
        "strandline.toml line 2",
    )
    assert reported.what == "is not above kafka.request_timeout, 30s: a shard that waits for a broker would be killed"
    assert reported.remedy == "More than 30s, or a shorter kafka.request_timeout"
    (reported,) = problems(file, '[kafka]\nrequest_timeout = "1m"\n')
    assert (reported.setting, reported.value_shown, reported.where) == ("node.hang_after", "", "strandline.toml line 2")
    (reported,) = problems(file, '[kafka]\nrequest_timeout = "soon"\n[node]\nhang_after = "30s"\n')
    assert reported.setting == "kafka.request_timeout", "its default causes no second problem"
    assert reported.what == "is not a duration"


def test_the_error_is_fatal_counts_as_wrong_usage_and_has_all_problems_in_its_text(file: Path) -> None:
    file.write_text("[log]\nlevel = 1\nformat = 2\n", encoding="utf-8")
    with pytest.raises(Fatal) as raised:
        load_settings(file, {})
    assert raised.value.exit_code == ExitCode.USAGE
    assert raised.value.message == "2 settings are wrong"
    assert "log.level (strandline.toml line 2) is not one of the allowed values. One of debug," in str(raised.value)
    assert "log.format (strandline.toml line 3)" in str(raised.value)


def test_an_invalid_value_gives_no_second_problem_through_its_default(file: Path) -> None:
    """Without the invalid protocol, the default PLAINTEXT would make the CA file look unused."""
    reported = problems(file, '[kafka]\nsecurity_protocol = "SSSL"\nsasl_mechanism = "PLAIN"\n')
    assert [problem.setting for problem in reported] == ["kafka.security_protocol"]


@pytest.mark.parametrize(
    ("text", "setting", "remedy"),
    [
        ("[kafak]\n", "kafak", 'Did you mean "kafka"?'),
        (
            "[nothing_like_it]\n",
            "nothing_like_it",
            f"One of {SECTIONS}",
        ),
        ("[log]\nlevle = 1\n", "log.levle", 'Did you mean "level"?'),
        ("[log]\nbootstrap_servers = 1\n", "log.bootstrap_servers", 'Did you mean "kafka.bootstrap_servers"?'),
        ("[log]\nzzz = 1\n", "log.zzz", "One of level, format"),
        ("[kafka.clients]\nx = 1\n", "kafka.clients", 'Did you mean "client"?'),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(file: Path, text: str, setting: str, remedy: str) -> None:
    (reported,) = problems(file, text)
    assert (reported.setting, reported.remedy) == (setting, remedy)


@pytest.mark.parametrize(
    ("variable", "setting", "remedy"),
    [
        ("STRANDLINE_KAFKA__BOOTSTRAP_SERVER", "kafka.bootstrap_server", 'Did you mean "bootstrap_servers"?'),
        ("STRANDLINE_KAFAK__CLIENT", "kafak", 'Did you mean "kafka"?'),
        ("STRANDLINE_KAFKA__CLIENT__FETCH", "kafka.client__fetch", 'Did you mean "client"?'),
        (
            "STRANDLINE___LEVEL",
            "",
            f"One of {SECTIONS}",
        ),
        (
            "STRANDLINE_LOG_LEVEL",
            "STRANDLINE_LOG_LEVEL",
            'Did you mean "STRANDLINE_LOG__LEVEL"?',
        ),
    ],
)
def test_an_unknown_variable_is_refused_with_a_suggestion(variable: str, setting: str, remedy: str) -> None:
    (reported,) = problems(None, **{variable: SECRET})
    assert (reported.setting, reported.where) == (setting, f"environment variable {variable}")
    assert (reported.value_shown, reported.remedy) == ("(hidden)", remedy)


def test_variables_that_are_not_settings_are_ignored() -> None:
    environ = {"STRANDLINE_INSTALLATION": "x", "STRANDLINE_CACHE": "y", "STRANDLINE_TEST": "z", "LOG__LEVEL": "q"}
    assert load_settings(None, environ) == Settings()


@pytest.mark.parametrize("text", ["log = 3\n", 'log = "debug"\n', "[[log]]\nlevel = 'info'\n"])
def test_a_section_that_is_not_a_table_is_refused(file: Path, text: str) -> None:
    (reported,) = problems(file, text)
    assert (reported.setting, reported.where, reported.what) == ("log", "strandline.toml line 1", "is not a table")


def test_a_file_that_does_not_exist_is_a_problem_with_the_name_of_its_source(file: Path) -> None:
    (reported,) = problems(None, STRANDLINE_CONFIG=str(file))
    assert (reported.setting, reported.value_shown) == ("STRANDLINE_CONFIG", str(file))
    assert reported.what == "can't be read: No such file or directory"
    with pytest.raises(SettingsError) as raised:
        load_settings(file, {"STRANDLINE_CONFIG": "unused"})
    assert raised.value.problems[0].setting == "--config"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (
            f'[log]\nlevel = "info"\n[kafka]\npassword = "{SECRET}\n',
            "strandline.toml line 4, column 27",
            "is not TOML: Illegal character '\\n'",
        ),
        ("[log", "strandline.toml, at its end", "is not TOML: Expected ']' at the end of a table declaration"),
        ("[log]\n[log]\n", "strandline.toml line 2, column 5", "is not TOML: Cannot declare ('log',) twice"),
        ("a = 1\na = 2\n", "strandline.toml line 2, column 6", "is not TOML: Cannot overwrite a value"),
    ],
)
def test_a_syntax_error_is_reported_with_line_and_column(file: Path, text: str, where: str, what: str) -> None:
    (reported,) = problems(file, text)
    assert (reported.setting, reported.where, reported.what) == (str(file), where, what)


def test_a_file_in_another_encoding_is_refused_with_the_line(file: Path) -> None:
    file.write_bytes('[log]\n# Größe\nlevel = "info"\n'.encode("latin-1"))
    with pytest.raises(SettingsError) as raised:
        load_settings(file, {})
    (reported,) = raised.value.problems
    assert (reported.where, reported.what) == ("strandline.toml line 2", "is not UTF-8 text")


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (f'[kafka.client]\nsasl.password = "{SECRET}"\n', {}),
        (f'[kafka]\nclient = {{ "ssl.key.pem" = "{SECRET}" }}\n', {}),
        (f'[kafka]\nclient = "{SECRET}"\n', {}),
        (f'[kafka]\npasword = "{SECRET}"\n', {}),
        (f'[kafka]\npassword = ["{SECRET}"]\n', {}),
        (f'[passwords]\nx = "{SECRET}"\n', {}),
        (f'secret = "{SECRET}"\n', {}),
        (f'kafka = "{SECRET}"\n', {}),
        (f'[kafka]\nbootstrap_servers = "sasl://me:{SECRET}@host:1"\n', {}),
        (f'[cassandra]\ncontact_points = ["me:{SECRET}@host"]\n', {}),
        (f'[cassandra]\ncredentials_file = "{SECRET}"\n', {}),
        (f'[cassandra]\ncredentials_file = ["me", "{SECRET}"]\n', {}),
        (f'[kafka]\ntls_key_password_file = "{SECRET}"\n', {}),
        (f'[kafka]\ntls_key_file = "{SECRET}/{SECRET}"\n', {}),
        (f'[kafka]\ncredentials_file = "{"x" * 5000}{SECRET}"\n', {}),
        (f'[kafka]\ncredentials_file = "~{SECRET}/x"\n', {}),
        (f'[spark.properties]\nspark.authenticate.secret = "{SECRET}"\n', {}),
        (f'[spark.properties]\n"{"fs.s3a.key"}" = "{SECRET}"\n', {}),
        ("", {"STRANDLINE_KAFKA__PASSWORD": SECRET}),
        ("", {"STRANDLINE_KAFKA__CLIENT": f'{{"sasl.password": "{SECRET}"}}'}),
        ("", {"STRANDLINE_KAFKA__CLIENT": f'{{"sasl.password": "{SECRET}"'}),
        ("", {"STRANDLINE_KAFKA__CLIENT": f'["{SECRET}"]'}),
        ("", {"STRANDLINE_KAFKA_CREDENTIALS_FILE": SECRET}),
        ("", {"STRANDLINE_CASSANDRA__CREDENTIALS_FILE": SECRET}),
    ],
)
def test_a_value_that_may_be_a_secret_is_never_shown(file: Path, text: str, environ: dict[str, str]) -> None:
    reported = problems(file, text, **environ)
    assert [problem.value_shown for problem in reported] == ["(hidden)"]


def test_a_long_value_is_truncated(file: Path) -> None:
    (reported,) = problems(file, f'[log]\nlevel = "{"x" * 500}"\n')
    assert reported.value_shown == '"' + "x" * 79 + "..."


def test_control_characters_of_a_value_do_not_reach_the_terminal(file: Path) -> None:
    (reported,) = problems(file, '[log]\nlevel = "\\u001b[2J"\n')
    assert reported.value_shown == '"\\u001b[2J"'
