"""Exit codes and outputs as applications frame them."""

from __future__ import annotations

import pytest

from postgrad.signals.error_sites.outcomes import clean, json_object, read_outcome


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("Exit code 2\nboom", 2, "boom"),
        ("Error: Exit code 2\nboom", 2, "boom"),
        ("Process exited with code 1\nOutput:\nboom", 1, "\nboom"),
        ('{"output": "boom", "metadata": {"exit_code": 3}}', 3, "boom"),
        ('{"stdout": "a", "stderr": "boom", "returncode": 1}', 1, "a\nboom"),
        ("<returncode>1</returncode>\n<output>\nboom\n</output>", 1, "boom"),
        ("boom\n[The command completed with exit code 1.]", 1, "boom"),
        ("boom\n[Command finished with exit code 0]", 0, "boom"),
        ("boom\n<exited with exit code 127>", 127, "boom"),
        ("failed in sandbox X with execution error: e, exit code: 1, stdout: a, stderr: boom", 1, "a\nboom"),
        ("Código de salida: 1\nboom", 1, "boom"),
        ("终了: \n退出码：2\nboom", 2, "终了: \nboom"),
        ("Rückgabecode: 1\nboom", 1, "boom"),
    ],
)
def test_the_frame_is_read_and_taken_off(text: str, code: int, output: str) -> None:
    outcome = read_outcome(text)
    assert (outcome.code, outcome.output.strip("\n")) == (code, output.strip("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "boom",
        "the docs say: exit code 1 means that nothing was found",
        "\n".join(["line"] * 20 + ["exit code: 1"] + ["line"] * 20),
        '{"error": "boom"}',
        '{"exit_code": "one"}',
        "{" * 5000 + "}",
    ],
)
def test_output_that_only_speaks_of_codes_has_none(text: str) -> None:
    assert read_outcome(text).code is None


def test_a_very_long_output_costs_no_more_than_its_edges() -> None:
    """Half a million lines that each could be a frame's beginning: nothing is searched in the middle."""
    text = "error process " * 3 + "\n" + "command exit\n" * 500_000 + "Exit code 1"
    assert read_outcome(text).code == 1


def test_colours_frames_and_editor_states_are_cleaned_off() -> None:
    assert clean("\x1b[31mFAIL\x1b[0m\r\nx") == "FAIL\nx"
    assert (
        clean("[execute_command for 'ls'] Result:\na.txt\n\n<environment_details>\nx\n</environment_details>")
        == "a.txt"
    )
    assert clean("8.2\n(Open file: /a)\n(Current directory: /w)\nbash-$") == "8.2"


def test_json_objects_only() -> None:
    assert json_object(' {"a": 1} ') == {"a": 1}
    assert json_object("[1]") is None
    assert json_object('{"a": 1} and more') is None
