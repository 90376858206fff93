"""Expressions that come out of a file, not from the user: read again before Spark may see them.

What a stored sketch says of its filter, keys and weights is Spark SQL that REFRESH and APPEND hand to Spark. Whoever
made the file may have written anything; let through is what reads columns of the one tuple, and is the same tomorrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from ..errors import SkimqlError, UnsupportedQuery
from .join_graph import Span
from .select import parse_expression

# Spark's own functions of one tuple that are the same at every call and reach nothing but their arguments.
_FUNCTIONS = """
abs acos acosh add_months aes_decrypt aggregate and array array_append array_compact array_contains
array_distinct array_except array_insert array_intersect array_join array_max array_min array_position
array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin
asinh atan atan2 atanh base64 between bigint bin binary bit_count bit_get bit_length bitmap_bit_position
bitmap_bucket_number bitmap_count boolean bround btrim cardinality case cast cbrt ceil ceiling char char_length
character_length chr coalesce collate collation concat concat_ws contains conv convert_timezone cos cosh cot
crc32 csc date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff
datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees div double e element_at elt encode
endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten float floor forall
format_number format_string from_base32 from_csv from_json from_unixtime from_utc_timestamp get get_json_object
getbit greatest hash hex hmac hour hypot if ifnull ilike in initcap instr int is_valid_utf8 is_valid_variant
is_variant_null isnan isnotnull isnull jaro_winkler_similarity json_array_length json_object_keys last_day lcase
least left len length levenshtein like ln localtime locate log log10 log1p log2 lower lpad ltrim luhn_check
make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz
make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter map_from_arrays
map_from_entries map_keys map_values map_zip_with mask md5 mod month monthname months_between named_struct nanvl
negative next_day not nullif nullifzero nvl nvl2 octet_length or overlay parse_json parse_url pi pmod position
positive pow power printf quarter quote radians reduce regexp regexp_count regexp_extract regexp_extract_all
regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim
sec second sentences sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum sin sinh size
slice smallint sort_array soundex space split split_part sqrt startswith str_to_map string struct substr
substring substring_index tan tanh time time_bucket time_diff time_from_micros time_from_millis
time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_micros
timestamp_millis timestamp_nanos timestamp_seconds tinyint to_base32 to_binary to_char to_csv to_date to_json
to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
to_variant_object transform transform_keys transform_values translate trim trunc try_add try_aes_decrypt
try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz
try_mod try_multiply try_parse_json try_parse_url try_subtract try_to_binary try_to_date try_to_number
try_to_time try_to_timestamp try_url_decode try_validate_utf8 try_variant_array_append try_variant_get
try_variant_insert try_variant_set typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_nanos
unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 variant_array_append variant_delete
variant_get variant_insert variant_set variant_strip_nulls weekday weekofyear when width_bucket xxhash64 year
zeroifnull zip_with
"""
_KNOWN = frozenset(_FUNCTIONS.split())
# Words that may stand before a parenthesis and call nothing.
_CALLING_NOTHING = """
all and any as between binary case cast char character collate dec decimal div else escape extract ilike in
interval is like not numeric or regexp rlike some then try_cast varchar when
"""
_WORDS = frozenset(_CALLING_NOTHING.split())
_MOST_TEXT = 20_000  # characters
_ESCAPED_QUOTE = re.compile(r"\\['\"]")
_TYPE = re.compile(
    r"[a-z][a-z0-9_]*(\(\d{1,9}(, ?\d{1,9})?\))?( collate [a-z0-9_]+| to [a-z]+)?", re.IGNORECASE
)


def refuse_foreign(expression: str) -> None:
    """Refuse an expression out of a file unless it is known to do nothing but compute.

    Raises
    ------
    UnsupportedQuery
        ``SKIMQL_FOREIGN_EXPRESSION`` for a subquery, a parameter, a window, an expression that cannot be read, and a
        function that is not one of Spark's own, is another at every call, or reaches out of the query.
    """
    if len(expression) > _MOST_TEXT:
        raise _refused("it is too long", expression)
    if _ESCAPED_QUOTE.search(expression):
        raise _refused("where its texts end depends on a setting of Spark", expression)
    try:
        source = parse_expression(expression, Span(0, len(expression)))
    except SkimqlError as fault:
        raise _refused("it cannot be read", expression) from fault
    if source.sql != expression:
        raise _refused("it has comments", expression)
    for node in source.tree.walk():
        if isinstance(node, (exp.Query, exp.Placeholder, exp.Parameter, exp.Window, exp.Star)):
            raise _refused("it reads more than the columns of its table", expression)
    for name in _called(source.tokens):
        if name not in _KNOWN:
            raise _refused(f"it calls {name[:60]}", expression)


def refuse_foreign_type(name: str) -> None:
    """Refuse the name of a type out of a file unless keys are compared in types of such names; raises as above."""
    if not _TYPE.fullmatch(name):
        raise _refused("it is no type of keys", name)


def _called(tokens: Sequence[Token]) -> Iterator[str]:
    """Names of the functions that are called, with what qualifies them."""
    for index, token in enumerate(tokens[:-1]):
        if tokens[index + 1].text != "(" or token.token_type in (TokenType.L_PAREN, TokenType.COMMA):
            continue
        name = token.text.lower()
        if index and tokens[index - 1].text == ".":
            yield f"{tokens[index - 2].text.lower()}.{name}"
        elif token.token_type == TokenType.IDENTIFIER:
            yield f"`{name}`"
        elif (name[:1].isalpha() or name[:1] == "_") and name not in _WORDS:
            yield name


def _refused(why: str, expression: str) -> UnsupportedQuery:
    shown = expression if len(expression) <= 120 else expression[:120] + "…"
    return UnsupportedQuery(
        f"the expression {shown} is not taken from a file: {why}", "SKIMQL_FOREIGN_EXPRESSION"
    )
