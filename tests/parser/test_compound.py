"""Where the parts of a script begin and end."""

from __future__ import annotations

import pytest

from skimql.parser.compound import is_script, parts_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("BEGIN SELECT 1; END", ["SELECT 1", "END"]),
        ("l: BEGIN SELECT ';' AS `;`; -- x;\n SELECT (1; 2); END l", ["SELECT ';' AS `;`", "SELECT (1; 2)", "END l"]),
        ("BEGIN FOR r AS SELECT CASE WHEN x THEN 1 END FROM t DO SELECT r.c; END FOR; END", ["FOR r AS SELECT CASE WHEN x THEN 1 END FROM t", "SELECT r.c", "END FOR", "END"]),
        ("BEGIN IF CASE WHEN x THEN 1 END > 0 THEN SELECT 1; ELSEIF (SELECT 2) THEN SELECT 3; ELSE SELECT 4; END IF; END", ["IF CASE WHEN x THEN 1 END > 0", "SELECT 1", "ELSEIF (SELECT 2)", "SELECT 3", "SELECT 4", "END IF", "END"]),
        ("BEGIN CASE x WHEN 1 THEN SELECT 1; ELSE SELECT CASE WHEN x THEN 1 ELSE 2 END; END CASE; END", ["CASE x", "WHEN 1", "SELECT 1", "SELECT CASE WHEN x THEN 1 ELSE 2 END", "END CASE", "END"]),
        ("BEGIN DECLARE n INT = 1; w: WHILE n < 3 DO SET n = n + 1; END WHILE w; REPEAT SELECT n; UNTIL n > 5 END REPEAT; END", ["DECLARE n INT = 1", "WHILE n < 3", "SET n = n + 1", "END WHILE w", "SELECT n", "UNTIL n > 5 END REPEAT", "END"]),
        ("BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 1; END; SELECT 2; END", ["DECLARE EXIT HANDLER FOR SQLEXCEPTION", "SELECT 1", "END", "SELECT 2", "END"]),
        ("BEGIN", []),
        ("BEGIN ) SELECT 1", [") SELECT 1"]),
    ],
)  # fmt: skip
def test_a_script_is_its_statements_and_conditions(text, parts):
    assert [text[p.start : p.end] for p in parts_of(text)] == parts


def test_what_is_a_script():
    assert is_script("/* x */ begin SELECT 1; END")
    assert not is_script("SELECT 'BEGIN'")
