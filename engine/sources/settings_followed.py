"""The settings of Spark that change what a text means, beside ANSI mode and the time zone.

They are part of what a kept sketch is: one that was made under others answers nothing. Those that the parser does not
follow are refused where a statement has what they change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...errors import UnsupportedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ANSI = "spark.sql.ansi.enabled"
TIME_ZONE = "spark.sql.session.timeZone"
DOUBLE_QUOTED = "spark.sql.ansi.doubleQuotedIdentifiers"

# Everything of Spark 4.0 to 4.3 that may change which tuples a text selects, or the values in them; what changes plans,
# speed, messages, results on their way to the client, or what is written, is not among it.
_MEANING = frozenset(
    f"spark.sql.{name}"
    for name in (
        "ansi.doubleQuotedIdentifiers",
        "ansi.enforceReservedKeywords",
        "ansi.relationPrecedence",
        "avro.datetimeRebaseModeInRead",
        "caseSensitive",
        "charAsVarchar",
        "chunkBase64String.enabled",
        "columnNameOfCorruptRecord",
        "csv.parser.columnPruning.enabled",
        "decimalOperations.allowPrecisionLoss",
        "files.ignoreCorruptFiles",
        "files.ignoreInvalidPartitionPaths",
        "files.ignoreMissingFiles",
        "files.ignoredPathSegmentRegex",
        "function.concatBinaryAsString",
        "function.eltOutputAsString",
        "groupByAliases",
        "groupByOrdinal",
        "hive.convertMetastoreParquet.mergeSchema",
        "icu.caseMappings.enabled",
        "json.enableExactStringParsing",
        "json.enablePartialResults",
        "jsonGenerator.ignoreNullFields",
        "mapKeyDedupPolicy",
        "orc.mergeSchema",
        "orderByOrdinal",
        "parquet.binaryAsString",
        "parquet.datetimeRebaseModeInRead",
        "parquet.fieldId.read.enabled",
        "parquet.fieldId.read.ignoreMissing",
        "parquet.inferTimestampNTZ.enabled",
        "parquet.int96AsTimestamp",
        "parquet.int96RebaseModeInRead",
        "parquet.int96TimestampConversion",
        "parquet.mergeSchema",
        "parquet.respectSummaryFiles",
        "parser.escapedStringLiterals",
        "parser.quotedRegexColumnNames",
        "parser.singleCharacterPipeOperator.enabled",
        "preserveCharVarcharTypeInfo",
        "readSideCharPadding",
        "sources.partitionColumnTypeInference.enabled",
        "timestampType",
        "variable.substitute",
        "xml.variant.respectInferSchema",
    )
)
_PREFIXES = (
    "spark.sql.legacy.",
    "spark.sql.session.collation",
    "spark.sql.collation.",
    "spark.sql.timeParser",
)

_TEXT = re.compile(
    r"""(?P<raw>\b[rR])?(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")|`(?:[^`]|``)*`""", re.DOTALL
)
_HAS = re.IGNORECASE | re.DOTALL
# What the parser does not follow: a setting, its value, and what a statement must have for it to matter.
_NOT_FOLLOWED = (
    ("spark.sql.caseSensitive", "true", re.compile("")),
    ("spark.sql.parser.quotedRegexColumnNames", "true", re.compile(r"`[^`]*[^\w`\s][^`]*`")),
    ("spark.sql.groupByOrdinal", "false", re.compile(r"\bGROUP\s+BY\b", _HAS)),
    ("spark.sql.groupByAliases", "false", re.compile(r"\bGROUP\s+BY\b", _HAS)),
    ("spark.sql.orderByOrdinal", "false", re.compile(r"\bORDER\s+BY\b", _HAS)),
    ("spark.sql.legacy.exponentLiteralAsDecimal.enabled", "true", re.compile(r"\d[eE]")),
    ("spark.sql.legacy.typeCoercion.datetimeToString.enabled", "true", re.compile("")),
    (
        "spark.sql.legacy.setopsPrecedence.enabled",
        "true",
        re.compile(r"\b(?:INTERSECT|EXCEPT|MINUS)\b", _HAS),
    ),
    ("spark.sql.legacy.consecutiveStringLiterals.enabled", "true", re.compile(r"""['"]\s*['"]""")),
    ("spark.sql.legacy.ctePrecedencePolicy", "legacy", re.compile(r"\bWITH\b.*\bWITH\b", _HAS)),
    ("spark.sql.legacy.ctePrecedencePolicy", "exception", re.compile(r"\bWITH\b.*\bWITH\b", _HAS)),
)
_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def meaning_of(spark: SparkSession, explicit: Mapping[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """The settings of a session that change what a text means and are off their defaults, by name.

    Parameters
    ----------
    spark : SparkSession
    explicit : mapping, optional
        Those that somebody has set, where that is known.
    """
    from ..spark.isolation import default_setting, explicit_settings

    found = []
    for name, value in (explicit_settings(spark) if explicit is None else explicit).items():
        if (name in _MEANING or name.startswith(_PREFIXES)) and not _same(
            value, default_setting(spark, name)
        ):
            found.append((name, value.strip().lower()))
    return tuple(sorted(found))


def _same(value: str, default: str | None) -> bool:
    return default is not None and value.strip().lower() == default.strip().lower()


def late_differences(frame: DataFrame, spark: SparkSession) -> list[str]:
    """Settings that a DataFrame of another session would be read by there, and not here.

    What its plan says is settled (casts, time zones of its expressions); what functions and readers look up when they
    run is not.
    """
    theirs = frame.sparkSession
    if theirs is spark:
        return []
    mine, other = dict(meaning_of(spark)), dict(meaning_of(theirs))
    names = sorted(n for n in {*mine, *other} if mine.get(n) != other.get(n))
    if theirs.conf.get(TIME_ZONE) != spark.conf.get(TIME_ZONE):
        from .source_state import sources_of

        if sources_of(frame).formats - {"Parquet", "ORC", "AVRO"}:
            names.append(TIME_ZONE)
    return names


def refuse_not_followed(sql: str, settings: Sequence[tuple[str, str]]) -> None:
    """Refuse a statement that means something else to the parser than to Spark, by one of its settings.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_SPARK_SETTING``.
    """
    now: Mapping[str, str] = dict(settings)
    for name, value, has in _NOT_FOLLOWED:
        if now.get(name) == value and has.search(sql):
            raise _refused(sql, name, value)
    if now.get(_ESCAPED) == "true":
        for found in _TEXT.finditer(sql):
            text = found["text"]
            if text and not found["raw"] and ("\\" in text or text[0] * 2 in text[1:-1]):
                raise _refused(sql, _ESCAPED, "true", found.span())


def _refused(sql: str, name: str, value: str, place: tuple[int, int] | None = None) -> UnsupportedQuery:
    other = "true" if value == "false" else "false"
    back = f"RESET {name}" if name.startswith("spark.sql.legacy.cte") else f"SET {name} = {other}"
    return UnsupportedQuery(
        f"{name} = {value} changes what this statement means, and SkimQL does not read it so",
        "SKIMQL_SPARK_SETTING",
        sql,
        place,
        f"EXACT SELECT ..., or {back}",
    )
