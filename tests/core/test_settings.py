"""Settings of a process: their origins, the precedence of these, and errors."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.setting import Alias, Setting, SettingsError, missing
from ripple.core.settings import arguments, as_text, help_text, in_force
from ripple.core.settings_file import FILE_BYTES_MAX, read_file

SETTINGS = (
    Setting(name="store", help="where"),
    Setting(
        name="port",
        help="gRPC",
        default=9200,
        variables=(Alias("OLD_PORT"),),
        places=(Alias("cluster.port"), Alias("cluster.port_hundreds", lambda n: int(n) * 100)),
    ),
    Setting(name="name", help="for people", default="ripple"),
)


def load(*flags: str, file: str = "", **environment: str) -> dict[str, tuple[object, str]]:
    found = in_force(
        SETTINGS,
        arguments(SETTINGS, flags),
        environment,
        read_file(file.encode(), "a.toml"),
        section="process",
        others=("worker", "cluster.theirs"),
    )
    return {name: (one.value, one.origin) for name, one in found.items()}


def test_flag_then_variable_then_file_then_default() -> None:
    file = "[process]\nport = 1\n"
    assert load()["port"] == (9200, "default")
    assert load(file=file)["port"] == (1, "process.port in the file")
    assert load(file=file, RIPPLE_PORT="2")["port"] == (2, "RIPPLE_PORT")
    assert load("--port", "3", file=file, RIPPLE_PORT="2")["port"] == (3, "--port")
    assert load("--port=4")["port"] == (4, "--port")


def test_alias_names_are_read_and_converted() -> None:
    assert load(OLD_PORT="7")["port"] == (7, "OLD_PORT")
    assert load(file="[cluster]\nport = 8")["port"] == (8, "cluster.port in the file")
    assert load(file="[cluster]\nport_hundreds = 9")["port"][0] == 900
    assert load(file="[worker]\nany = 1\n[cluster.theirs]\nany = 2\n")["port"][0] == 9200


def test_an_s_expression_says_the_same_as_toml() -> None:
    text = '((cluster ((port 77))) (process ((store "a b") (name prod))))'
    toml = '[cluster]\nport = 77\n[process]\nstore = "a b"\nname = "prod"\n'
    assert load(file=text) == load(file=toml)
    assert load(file=text)["store"] == ("a b", "process.store in the file")


@pytest.mark.parametrize(
    ("flags", "file", "environment", "text"),
    [
        (["--prt", "1"], "", {}, "--prt is no flag: did you mean --port?"),
        (["port"], "", {}, "port is no flag"),
        (["--port"], "", {}, "--port needs a value"),
        (["--port", "1", "--port=2"], "", {}, "--port is there twice"),
        (["--help=yes"], "", {}, "--help is no flag"),
        (["--port", "many"], "", {}, "port is 'many', not an integer (from --port)"),
        (["--port", "1_000"], "", {}, "port is '1_000', not an integer"),
        (["--name", ""], "", {}, "name is '', not a text (from --name)"),
        ([], "", {"RIPPLE_PORT": "x"}, "port is 'x', not an integer (from RIPPLE_PORT)"),
        ([], "[process]\nport = true", {}, "port is True, not an integer (from process.port"),
        ([], "[process]\nport = 1.5", {}, "port is 1.5, not an integer"),
        ([], "[process]\nname = 5", {}, "name is 5, not a text"),
        ([], "[process]\nport = [1]", {}, "port is [1], not an integer"),
        (
            [],
            "[process]\nprt = 1",
            {},
            "has process.prt, an unknown setting: did you mean process.port",
        ),
        ([], "port = 1", {}, "the file has port, an unknown setting"),
        (
            [],
            "[process]\nport = 1\n[cluster]\nport = 1",
            {},
            "port is given twice: by process.port",
        ),
        ([], "", {"RIPPLE_PORT": "1", "OLD_PORT": "1"}, "given twice: by RIPPLE_PORT and OLD_PORT"),
        ([], "[cluster]\nport_hundreds = 'x'", {}, "port is 'x': invalid literal for int()"),
        ([], "[process", {}, "a.toml cannot be read: "),
        ([], "((process ((port 1)))", {}, "a.toml cannot be read: 1 unclosed"),
        ([], "((process 1 2))", {}, "where a pair of name and value should be"),
        ([], "((a 1) (a 2))", {}, "a.toml has a twice"),
        (["--port", "1000000000001"], "", {}, "port is 1000000000001, more than 1000000000000"),
        ([], f"[process]\nport = {2**70}", {}, f"port is {2**70}, more than 1000000000000 (from p"),
        ([], "a." * 50 + "b = 1", {}, "a.toml cannot be read: its tables are nested deeper than"),
        ([], "a." * 9000 + "b = 1", {}, "a.toml cannot be read: its tables are nested deeper than"),
        ([], "a = " + "[" * 9000, {}, "a.toml cannot be read: "),
        ([], "((process ((port 1) 7)))", {}, "a.toml, process has '7' where a pair"),
    ],
)
def test_wrong_setting_is_named_with_its_origin(
    flags: list[str], file: str, environment: dict[str, str], text: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(*flags, file=file, **environment)
    assert text in str(caught.value)


def test_files_that_are_no_text_or_too_long_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"a cannot be read: .*utf-8"):
        read_file(b"\xff", "a")
    with pytest.raises(SettingsError, match="a has 1048577 bytes, more than 1048576"):
        read_file(b"#" * (FILE_BYTES_MAX + 1), "a")


def test_switches_and_the_file_are_told_apart_from_values() -> None:
    said = arguments(SETTINGS, ["--check-config", "--config", "x.toml", "--help", "--port=1"])
    assert (said.is_check, said.is_help, said.config, said.values) == (
        True,
        True,
        "x.toml",
        {"port": "1"},
    )


def test_settings_in_force_are_written_as_an_equal_file() -> None:
    flags = arguments(SETTINGS, ["--port", "5", "--store", 'a"\\\tb'])
    found = in_force(SETTINGS, flags, {}, {}, section="process")
    text = as_text(SETTINGS, found, "process")
    assert text.splitlines()[1:] == [
        'store = "a\\u0022\\u005c\\u0009b"  # --store',
        "port = 5  # --port",
        'name = "ripple"  # default',
    ]
    again = in_force(
        SETTINGS, arguments(SETTINGS, []), {}, read_file(text.encode(), "b"), section="process"
    )
    assert {name: one.value for name, one in again.items()} == {
        name: one.value for name, one in found.items()
    }


@given(st.text())
def test_any_text_survives_being_printed(text: str) -> None:
    flags = arguments(SETTINGS, [f"--store={text}"])
    if not text:
        return
    found = in_force(SETTINGS, flags, {}, {}, section="process")
    assert tomllib.loads(as_text(SETTINGS, found, "process"))["process"]["store"] == text


def test_missing_setting_is_named_with_how_to_give_it() -> None:
    found = in_force(SETTINGS, arguments(SETTINGS, []), {}, {}, section="process")
    assert missing(SETTINGS, found) == ["store is missing: give --store or RIPPLE_STORE (where)"]
    assert "# store is missing: where" in as_text(SETTINGS, found, "process")


def test_help_has_every_setting() -> None:
    shown = help_text("ripple-process", SETTINGS)
    for setting in SETTINGS:
        assert setting.flag in shown
        assert setting.variable in shown
        assert setting.help in shown


SWITCHES = (Setting(name="insecure", help="no TLS", default=False),)


def switched(*flags: str, file: str = "", **environment: str) -> object:
    said = arguments(SWITCHES, flags)
    held = read_file(file.encode(), "a.toml")
    return in_force(SWITCHES, said, environment, held, section="process")["insecure"].value


def test_switch_needs_no_value() -> None:
    assert switched() is False
    assert switched("--insecure") is True
    assert switched("--insecure=false") is False
    assert switched(RIPPLE_INSECURE="true") is True
    assert switched(file="[process]\ninsecure = true\n") is True
    assert switched(file="((process ((insecure true))))") is True
    for wrong in ("1", "yes", ""):
        with pytest.raises(SettingsError, match="not true or false"):
            switched(RIPPLE_INSECURE=wrong)
    with pytest.raises(SettingsError, match="insecure is 1, not true or false"):
        switched(file="[process]\ninsecure = 1\n")
    assert "--insecure (default off; RIPPLE_INSECURE)" in help_text("a", SWITCHES)
