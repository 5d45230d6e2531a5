"""Reading and writing `Report` files, with errors that a user can act on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.errors import DataError
from postgrad.core.files import write_json
from postgrad.core.report import Report

REPORT = "report.json"


def read_report(path: Path) -> Report:
    """Read a report from its file, or from the run folder that holds it.

    Raises:
        DataError: it is missing or is no report.
    """
    file = path / REPORT if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=Report)
    except FileNotFoundError:
        raise DataError(
            "no report here", got=str(path), expected=f"{REPORT} of `postgrad evaluate`, or its run folder"
        ) from None
    except msgspec.MsgspecError as error:
        raise DataError(f"broken report: {error}", got=str(file), do="evaluate again") from None


def plain(value: Any) -> Any:
    """Turn a struct into what its JSON reads back as: dicts, lists, numbers and text."""
    return msgspec.json.decode(msgspec.json.encode(value))


def write_report(path: Path, report: Report) -> None:
    """Write `report` as JSON in one step."""
    write_json(path, plain(report))
