"""`load`: what wins over what, and that every mistake is told in one line that names the key, the place, the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError, model_validator

from postgrad.core.errors import ConfigError
from postgrad.run.config import Config, check, load
from postgrad.run.schema import schema_lines
from postgrad.run.yaml import read_yaml


class Lora(Config):
    rank: int = 8
    """Rank of the update."""
    alpha: float = 16.0


class Teacher(Config):
    name: str
    kind: Literal["local", "gold"] = "local"


class Recipe(Config):
    model: str = "tiny"
    """Which
    model."""
    lora: Lora | None = Lora()
    teachers: tuple[Teacher, ...] = ()
    modes: list[str] = Field(default=["free"])
    fast: bool = False
    lr: float = Field(default=1e-3, gt=0)
    channels: dict[str, Lora] = Field(default_factory=dict)
    store: Path | None = None
    switch: Literal["on", "off"] = "off"
    paths: list[Path] = Field(default_factory=list)
    with_: dict[str, Any] = Field(default_factory=dict, alias="with")


def recipe(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    return path


def told(Model: type[Config], path: Path | None = None, **overrides: Any) -> str:
    with pytest.raises(ConfigError) as error:
        load(Model, path, overrides)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_option_beats_recipe_beats_default(tmp_path: Path) -> None:
    path = recipe(tmp_path, "lora: {rank: 4}\nmodel: from-file\n")
    config = load(Recipe, path, {"lora.rank": "2"})
    assert (config.lora, config.model, config.lr) == (Lora(rank=2), "from-file", 1e-3)


def test_an_explicit_null_beats_a_default() -> None:
    assert load(Recipe, None, {"lora": "null"}).lora is None


def test_a_frozen_section_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load(Recipe).model = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("lr", "1e-4", 1e-4),
        ("lr", "1E+2", 100.0),
        ("model", "2024", "2024"),
        ("model", "no", "no"),
        ("model", "null", "null"),
        ("model", "a: b: c", "a: b: c"),
        ("store", "2024", Path("2024")),
        ("store", "null", None),
        ("switch", "on", "on"),
        ("paths", ["2024", "no"], [Path("2024"), Path("no")]),
        ("modes", "free", ["free"]),
        ("modes", "[free, constrained]", ["free", "constrained"]),
        ("modes", ["free", "constrained"], ["free", "constrained"]),
        ("fast", "yes", True),
        ("channels.rl.rank", "3", {"rl": Lora(rank=3)}),
        ("with", "{a: 1}", {"a": 1}),
        ("with.a.b", "1e-4", {"a": {"b": 1e-4}}),
    ],
)
def test_the_text_of_an_option_becomes_what_the_field_holds(key: str, text: Any, value: Any) -> None:
    config = load(Recipe, None, {key: text})
    assert getattr(config, {"with": "with_"}.get(key.split(".")[0], key.split(".")[0])) == value


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_text_field_holds_what_was_typed(text: str) -> None:
    """Whatever the text would mean as YAML, unless YAML reads it as another text (quotes, blanks around it)."""
    import yaml

    try:
        meaning = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        meaning = None
    if not isinstance(meaning, str):
        assert load(Recipe, None, {"model": text}).model == text


def test_items_of_a_list_are_addressed_by_name_or_number(tmp_path: Path) -> None:
    path = recipe(tmp_path, "teachers: [{name: a}, {name: b}]")
    config = load(Recipe, path, {"teachers.b.kind": "gold", "teachers.0.name": "z"})
    assert config.teachers == (Teacher(name="z"), Teacher(name="b", kind="gold"))
    assert "no such item; got 'c'; expected a, b" in told(Recipe, path, **{"teachers.c.kind": "gold"})


def test_overrides_leave_the_callers_data_alone(tmp_path: Path) -> None:
    defaults = load(Recipe)
    load(Recipe, None, {"lora.rank": "2", "channels.rl.rank": "3"})
    assert load(Recipe) == defaults


def test_resolved_is_what_a_recipe_would_say(tmp_path: Path) -> None:
    config = load(Recipe, None, {"with.a": "1"})
    assert config.resolved()["with"] == {"a": 1}
    assert Recipe.model_validate(config.resolved()) == config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lora: {rnak: 4}", "unknown key 'lora.rnak' in {path}: did you mean 'lora.rank'?"),
        ("rank: 4", "unknown key 'rank' in {path}: did you mean 'lora.rank' or 'channels.NAME.rank'?"),
        (
            "zzz: 4",
            "known: channels, fast, lora, lr, model, modes, paths, store, switch, teachers, with",
        ),
        ("teachers: [{name: a, knid: gold}]", "did you mean 'teachers.0.kind'?"),
        ("channels: {rl: {rnk: 1}}", "did you mean 'channels.rl.rank'?"),
        ("teachers: [{kind: gold}]", "missing 'teachers.0.name' in {path}: give it in the recipe"),
        ("teachers: [{name: a, kind: golden}]", "got 'golden', expected 'local' or 'gold'"),
        ("lr: fast", "'lr' in {path}: got 'fast', expected a valid number"),
        ("lr: 0", "'lr' in {path}: got 0, expected greater than 0"),
        ("model: 7", "'model' in {path}: got 7, expected a valid string"),
        ("lr: 1\nmodel: a\nlr: 2", "{path}, line 3, column 1: key 'lr' is given twice"),
        ("paths: notes.txt", "'paths' in {path}: got 'notes.txt', expected a list, such as [notes.txt]"),
        ("lora: {rank: 1, rank: 2}", "key 'rank' is given twice"),
        ("a: [1, 2", "{path}, line 1, column"),
        ("- a\n- b", "a recipe is a mapping, not a list; got '{path}'"),
    ],
)
def test_a_mistake_in_a_recipe_is_told(text: str, expected: str, tmp_path: Path) -> None:
    path = recipe(tmp_path, text)
    assert expected.replace("{path}", str(path)) in told(Recipe, path)


def test_a_key_wins_over_what_a_merge_brings(tmp_path: Path) -> None:
    """`<<` brings lr 1 and model a; the mapping's own model stands."""
    path = recipe(tmp_path, "base: &base {lr: 1, model: a}\nother: {<<: *base, model: b}")
    assert read_yaml(path)["other"] == {"lr": 1, "model": "b"}


def test_a_misspelt_key_is_told_before_what_it_leaves_missing(tmp_path: Path) -> None:
    message = told(Recipe, recipe(tmp_path, "teachers: [{nmae: a}]"))
    assert message.index("did you mean 'teachers.0.name'") < message.index("missing 'teachers.0.name'")


def test_a_mistake_in_an_option_names_the_option() -> None:
    assert told(Recipe, **{"lora.rank": "x"}).startswith("--lora.rank: got 'x', expected a valid integer")
    assert "options --lora and --lora.rank conflict" in told(Recipe, **{"lora": "{}", "lora.rank": "2"})
    assert told(Recipe, **{"model.rank": "2"}).startswith("--model: got {'rank': 2}, expected a valid string")


def test_a_missing_recipe_is_the_users_mistake(tmp_path: Path) -> None:
    assert "recipe not found" in told(Recipe, tmp_path / "none.yaml")


def test_a_rule_between_fields_is_told_as_it_was_written() -> None:
    class Pair(Config):
        low: int = 0
        high: int = 1

        @model_validator(mode="after")
        def ordered(self) -> Pair:
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    assert told(Pair, low="2") == "low is above high"


def test_values_that_are_not_known_yet_may_be_anything_but_their_keys_may_not() -> None:
    data = {"lr": "${a.b}", "teachers": [{"name": "x", "kind": "${a.kind}"}]}
    paths = [("lr",), ("teachers", 0, "kind")]
    check(Recipe, data, source="stage", open_paths=paths)
    with pytest.raises(ConfigError, match="'lr' in stage"):
        check(Recipe, data, source="stage", open_paths=paths[1:])
    with pytest.raises(ConfigError, match="unknown key 'rl'"):
        check(Recipe, {"rl": "${a.b}"}, source="stage", open_paths=[("rl",)])


def test_help_lines_show_every_field_once_with_type_and_default() -> None:
    lines = {line.path: line for line in schema_lines(Recipe)}
    assert lines["lora.rank"] == ("lora.rank", "integer", "default 8", "Rank of the update.")
    assert lines["teachers[].name"][1:3] == ("text", "required")
    assert lines["teachers[].kind"].type == "local|gold"
    assert lines["modes"][1:3] == ("list of text", "default [free]")
    assert lines["fast"][1:3] == ("yes/no", "default false")
    assert lines["model"].description == "Which model."
    assert lines["channels.NAME.alpha"].type == "number"
    assert lines["with"].type == "mapping of any"


def test_an_item_is_found_by_its_name_with_dashes_or_underscores(tmp_path: Path) -> None:
    path = recipe(tmp_path, "teachers: [{name: a-b, kind: local}]")
    for name in ("a-b", "a_b"):
        assert load(Recipe, path, {f"teachers.{name}.kind": "gold"}).teachers[0].kind == "gold"


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("lr", "yes", "--lr: got 'yes', expected a valid number, and yes/no is none"),
        ("lora.rank", "true", "--lora.rank: got 'true', expected a valid integer, and yes/no is none"),
        ("lora.rank", "010", "expected a valid integer, written without quotes or leading zeros"),  # 8 in YAML 1.1
        ("lora.rank", "1:30", "--lora.rank: got '1:30', expected a valid integer"),  # 90 in YAML 1.1
        ("lora.rank", "2024-01-01", "--lora.rank: got '2024-01-01', expected a valid integer"),
        ("lr", "'1e-3'", "expected a valid number, written without quotes"),
        ("fast", "1", "--fast: got 1, expected a valid boolean"),
    ],
)
def test_no_type_is_guessed(key: str, text: str, expected: str) -> None:
    assert expected in told(Recipe, **{key: text})


def test_a_value_of_several_types_is_told_once() -> None:
    class Either(Config):
        size: float | Literal["auto"] = "auto"

    assert told(Either, size="on") == "--size: got 'on', expected a valid number or 'auto'"
    assert (load(Either, None, {"size": "3"}).size, load(Either, None, {"size": "auto"}).size) == (3.0, "auto")


class Listed(Config):
    name: str
    kinds: Annotated[tuple[Literal["taken", "fixed"], ...], Field(min_length=1)] = ("fixed",)


@pytest.mark.parametrize("typed", ["[takn]", "takn"])
def test_a_misspelt_item_of_a_list_is_told_with_the_nearest_name(typed: str) -> None:
    with pytest.raises(ConfigError) as told:
        load(Listed, None, {"name": "a", "kinds": typed})
    assert "--kinds.0: got 'takn', expected 'taken' or 'fixed' (did you mean 'taken'?)" in str(told.value)
    assert "at least" not in str(told.value)


def test_without_a_recipe_no_place_is_named() -> None:
    with pytest.raises(ConfigError) as told:
        load(Listed, None, {})
    assert str(told.value) == "missing 'name': give it in a recipe or as --name"
