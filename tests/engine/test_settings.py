"""What a session assumes where a query is silent."""

import pytest

from skimql import SkimqlError
from skimql.engine.settings import Settings


def test_settings_are_read_as_people_write_them():
    made = Settings().with_text({"buckets": "4k", "error": "5%", "size_bytes": "1 MB", "sparse": "false"})
    assert (made.buckets, made.error, made.size_bytes, made.sparse) == (4096, 0.05, 1 << 20, False)
    assert made.by_hand
    assert not Settings().by_hand
    assert Settings(error=0.05).with_text({"error": "none"}).error is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nosuch", "1"),
        ("buckets", "0"),
        ("seed", "x"),
        ("route", "sideways"),
        ("confidence", "1"),
        ("cache", "maybe"),
        ("behavior", "odd"),
    ],
)
def test_what_no_setting_takes_is_refused_and_nothing_changes(name, value):
    with pytest.raises(SkimqlError):
        Settings().with_text({name: value})


@pytest.mark.parametrize(
    "wrong", [{"rows": 0}, {"buckets": 1.5}, {"error": 2.0}, {"seed": -1}, {"max_groups": True}]
)
def test_values_from_python_are_checked_alike(wrong):
    with pytest.raises(SkimqlError):
        Settings(**wrong)
