"""How databases refuse a query, in the words of each: what a tool that runs queries gives back instead of rows.

An answer is a refusal only where it begins with one, behind at most a lead such as "Query failed: ". Rows can hold any
text, and do not begin like that. Sources: the manuals and drivers of SQLite, PostgreSQL, MySQL, SQL Server, Oracle,
DB2, DuckDB, ClickHouse, Snowflake, BigQuery, Spark, MongoDB, Cypher and SQLAlchemy. Not covered: refusals in other
languages than English.
"""

from __future__ import annotations

import re

from postgrad.signals.words.phrases import one_of

_LEAD = (
    r"(?:[^\n:\[{]{0,60}\b(?:error|errors|failed|failure|exception|invalid|executed|because|with)\b"
    r"[^\n:]{0,60}: ?){0,2}"
)
_CODES = one_of(
    r"\((?:\w+\.)+(?:errors\.)?[A-Z]\w+\) ",  # SQLAlchemy: (psycopg2.errors.UndefinedColumn) column ...
    r"(?:ORA|PLS|TNS)-\d{4,5}\b|SQL\d{4,5}N\b|SQLSTATE\W|SQLCODE\W|Msg \d+, Level \d+|\[[\w ]+\]\[ODBC\b",
    r"(?:ERROR )?\d{4,6} \([0-9A-Z]{5}\)|Code: \d+\. DB::",
    r"\(\d{4}, ['\"](?:unknown|table|column|you have|duplicate|field|can|incorrect|data |out of|operand)",
)
_CLASSES = (
    r"(?:binder|parser|catalog|conversion|constraint|invalid input|out of range|sql|sql compilation|query|semantic"
    r"|analysis|syntax|database)(?: error| exception|error|exception)\s*:"
)
_NAMES = one_of(
    r"no such (?:table|column|function|module|view|index|collection)\b",
    r"(?:unrecognized|unknown|invalid|undefined|ambiguous) (?:name|column|identifier|field|table|object|function"
    r"|operator|top level operator|(?:aggregation |pipeline )?stage|column name|object name)s?\b",
    r"(?:column|relation|table|view|function|schema|operator|type|database|collection) [^\n]{1,120} (?:does not exist"
    r"|is ambiguous|not found|must appear in the)",
    r"(?:column|table|relation|schema|operator|database) (?:does not exist|not found)\b|column reference ",
    r"(?:referenced |missing )column(?:s|\b)[^\n]{0,120}(?:not found|while processing)|cannot resolve (?:column|')",
)
_GRAMMAR = one_of(
    r"near [\"'][^\n]{0,60}[\"']: syntax error|syntax error (?:at|in|near|on|:)|you have an error in your sql",
    r"incorrect syntax near|unexpected (?:token|end of (?:input|statement))[^\n]{0,80}(?:sql|query|line \d|position)",
    r"incomplete input\s*\Z|unterminated (?:quoted )?(?:string|identifier)|mismatched input|no viable alternative",
    r"aggregate functions? (?:are )?not allowed|misuse of aggregate|sub-?query (?:must|returns|uses)|you can only"
    r" execute one statement|execution failed on sql|invalid input syntax for|operator does not exist",
)
_RULES = (
    r"(?:unique|foreign key|not null|check|primary key) constraint|duplicate (?:key|entry)|null value in column"
    r"|violates (?:unique|foreign key|not-null|check)|data too long for column|out of range value for"
)
DATABASE_REFUSAL = re.compile(
    rf"\A[^\w\[{{]{{0,12}}?{_LEAD}[^\w\[{{]{{0,4}}?(?:400 )?{one_of(_CODES, _CLASSES, _NAMES, _GRAMMAR, _RULES)}",
    re.IGNORECASE,
)
"""An answer that begins with a database's word that it did not run the query."""
