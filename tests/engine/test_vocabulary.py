"""The words of the dialect."""

from __future__ import annotations

from dataclasses import fields

import pytest

from skimql import Settings, vocabulary
from skimql.optimizer.methods import METHODS


def test_it_has_every_setting_and_method():
    words = vocabulary()
    assert list(words.settings) == [f.name for f in fields(Settings)]
    assert words.methods == tuple(sorted(n for n, m in METHODS.items() if m.named))


@pytest.mark.parametrize("name", vocabulary().settings)
def test_every_value_that_is_offered_is_taken(name):
    assert vocabulary().settings[name]
    for value in vocabulary().settings[name]:
        Settings().with_text({name: value.strip("'")})


def test_words_of_spark_are_spark_s(spark):
    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    ours = set(vocabulary().functions)
    assert len(ours & known) > 0.9 * len(known)
