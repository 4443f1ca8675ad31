from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from adaptiveembed.errors import SettingError
from adaptiveembed.pipeline.settings import (
    differences,
    leaves,
    merged,
    read_settings,
    read_toml,
    to_table,
    to_toml,
    with_assignments,
)


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Inner:
    size: int = 3
    colour: Colour = Colour.RED

    def __post_init__(self):
        if self.size < 1:
            raise SettingError(f"size is {self.size}; give at least 1")


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float = 0.5
    quick: bool = False
    limit: int | None = None
    parts: tuple[str, ...] = ()
    inner: Inner = field(default_factory=Inner)
    many: tuple[Inner, ...] = ()


def test_keys_that_are_not_given_keep_their_defaults():
    assert read_settings(Outer, {"name": "a", "inner": {"size": 4}}) == Outer(
        "a", inner=Inner(size=4)
    )


def test_what_is_written_is_read_as_equal_settings(tmp_path):
    settings = Outer(
        'a "quoted" name',
        1e-5,
        quick=True,
        limit=7,
        parts=("x", "y"),
        inner=Inner(2, Colour.GREEN),
        many=(Inner(1), Inner(5)),
    )
    path = tmp_path / "recipe.toml"
    path.write_text(to_toml(to_table(settings)), encoding="utf-8")
    assert read_settings(Outer, read_toml(path)) == settings


def test_a_setting_left_open_is_written_as_none(tmp_path):
    text = to_toml(to_table(Outer("a")))
    assert 'limit = "none"' in text
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    assert read_settings(Outer, read_toml(path)).limit is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "a", "ratte": 1}, "no setting ratte; did you mean rate"),
        ({"name": "a", "inner": {"colour": "gren"}}, "inner.colour is 'gren'; did you mean green"),
        ({"name": "a", "inner": {"size": "big"}}, "inner.size is 'big'; give a whole number"),
        ({"name": "a", "inner": {"size": True}}, "inner.size is True; give a whole number"),
        ({"name": "a", "inner": {"size": 0}}, "inner: size is 0; give at least 1"),
        ({"name": "a", "inner": 3}, r"inner is 3; it is a table \[inner\] with keys size, colour"),
        ({"name": "a", "parts": "x"}, "parts is 'x'; give a list"),
        ({"name": "a", "parts": [1]}, r"parts\[0\] is 1; give a text"),
        ({"name": "a", "many": [{"size": 0}]}, r"many\[0\]: size is 0"),
        ({"name": "a", "quick": 1}, "quick is 1; give true or false"),
        ({}, "name is missing; add it"),
    ],
)
def test_a_wrong_value_is_named_with_its_key_and_the_remedy(table, message):
    with pytest.raises(SettingError, match=message):
        read_settings(Outer, table)


def test_a_whole_number_is_a_number():
    assert read_settings(Outer, {"name": "a", "rate": 2}).rate == 2.0


def test_assignments_change_a_copy():
    table = {"inner": {"size": 3}}
    changed = with_assignments(table, ["inner.size=4", "rate = 1e-3", "name=plain text"])
    assert changed == {"inner": {"size": 4}, "rate": 1e-3, "name": "plain text"}
    assert table == {"inner": {"size": 3}}


@pytest.mark.parametrize("text", ["size", "=3", "inner..size=3"])
def test_an_assignment_without_key_or_value_is_refused(text):
    with pytest.raises(SettingError, match="write key=value"):
        with_assignments({}, [text])


def test_tables_are_merged_key_by_key():
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 9}}) == {
        "a": {"b": 9, "c": 2},
        "d": 3,
    }


def test_differences_are_dotted_paths():
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 2}, "d": 1}) == ["a.b", "c", "d"]
    assert dict(leaves({"a": {"b": 1}})) == {"a.b": 1}


def test_notes_stand_above_their_keys():
    text = to_toml({"a": {"b": 1}}, {"a.b": "what b is"})
    assert "[a]\n# what b is\nb = 1\n" in text


def test_a_file_that_is_missing_or_no_toml_is_named(tmp_path):
    with pytest.raises(SettingError, match="there is no file"):
        read_toml(tmp_path / "missing.toml")
    path = tmp_path / "broken.toml"
    path.write_text("a = ", encoding="utf-8")
    with pytest.raises(SettingError, match=r"broken\.toml is not TOML"):
        read_toml(path)
