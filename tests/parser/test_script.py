"""Statements between semicolons, and the text without its comments."""

from skimql.parser.script import split_statements, without_comments


def test_semicolons_in_texts_names_and_comments_end_nothing():
    text = "SELECT ';'; SELECT `a;b` -- ; no\n; /* ; */ SELECT 3"
    parts = split_statements(text)
    assert [p.sql.split()[-1] for p in parts] == ["';'", "no", "3"]
    assert [p.terminated for p in parts] == [True, True, False]
    assert all(text[p.start :].startswith(p.sql) for p in parts)


def test_the_queries_of_a_workload_are_one_statement():
    text = "CREATE SKETCHES w FOR QUERIES (SELECT 1; SELECT 2) SIZE 1 MB MINIMIZE MAX ERROR; SELECT 3"
    assert len(split_statements(text)) == 2


def test_comments_are_blanked_in_place():
    text = "SELECT 1 /* two */ + 2; -- end"
    plain, ends = without_comments(text)
    assert len(plain) == len(text)
    assert "two" not in plain
    assert ends == [text.index(";")]
