"""Refusals of databases in their own words, and rows that hold the same words."""

from __future__ import annotations

import pytest

from postgrad.signals.words.database import DATABASE_REFUSAL

REFUSALS = [
    'near "FROM": syntax error',
    "(sqlite3.OperationalError) no such table: users",
    'ORA-00904: "TOTALS": invalid identifier',
    "Msg 207, Level 16, State 1, Line 1\nInvalid column name 'x'.",
    "1054 (42S22): Unknown column 'x' in 'field list'",
    "(1054, \"Unknown column 'o.totl' in 'field list'\")",
    "no such table: users",
    "no such column: o.total",
    'Parser Error: syntax error at or near "SELCT"',
    "SQL compilation error:\ninvalid identifier 'TOTL'",
    "000904 (42000): SQL compilation error: error line 1 at position 7\ninvalid identifier 'TOTL'",
    "ERROR 1064 (42000): You have an error in your SQL syntax; check the manual",
    "Unrecognized name: totl at [1:8]",
    "400 Unrecognized name: totl; Did you mean total? at [1:8]",
    "SQLSTATE[42S22]: Column not found: 1054 Unknown column 'a' in 'where clause'",
    'column "x" does not exist',
    'relation "users" does not exist',
    'syntax error at or near "FORM"',
    "Code: 47. DB::Exception: Missing columns: 'totl' while processing query",
    "pymongo.errors.OperationFailure: unknown operator: $foo, full error: {'ok': 0.0}",
    "Execution failed on sql 'SELECT totl FROM orders': no such column: totl",
    "The query failed with: no such column: x",
    "You have an error in your SQL syntax near 'x'",
    "Query could not be executed: unknown column totl",
    "Query execution error: column totl does not exist",
    "Database error: UNIQUE constraint failed: users.email",
    "Sorry, the query is invalid: unknown field `totl`.",
    "AnalysisException: cannot resolve 'totl' given input columns: [id, total]",
]
ANSWERS = [
    "[(1054, 'Widget'), (1055, 'Gadget')]",
    "(1054, 'Widget')",
    "id | message\n1 | no such table: users",
    "[{'error': 'syntax error at or near'}]",
    "customers, orders, order_lines",
    "CREATE TABLE t (id INTEGER, UNIQUE (id))",
    "The query returned 12 rows. The first: column totals",
    "",
]


@pytest.mark.parametrize("text", REFUSALS)
@pytest.mark.parametrize("lead", ["", "Error: ", "Query failed: "])
def test_a_refusal_is_known_behind_any_lead(text: str, lead: str) -> None:
    assert DATABASE_REFUSAL.match(lead + text)


@pytest.mark.parametrize("text", ANSWERS)
def test_rows_are_no_refusal(text: str) -> None:
    assert DATABASE_REFUSAL.match(text) is None
