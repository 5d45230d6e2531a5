"""Traces in: readers, the trace store, redaction, and postgrad's own capture form. No torch.

To add a format, write one file with one frozen class that has the three members of `readers.Reader`:

    format            its name, as `ingest --format` and the store show it
    recognises(head)  whether the first rows of a file are of this format; strict, because every file is asked
    read(path)        a `ReadResult`: traces, a record table in which every record says what it was used as,
                      and diagnostics for whatever could not be used

and add one line to `READERS`. JSON-lines formats get bytes, offsets and broken lines from `jsonl.JsonLines`.
Without touching this package: pass ``module:Class`` as the format, or declare the entry point ``postgrad.format``.
"""

from __future__ import annotations

READERS: dict[str, str] = {
    "claude_code": "postgrad.traces.claude_code:ClaudeCode",
    "openai_chat": "postgrad.traces.openai_chat:OpenAIChat",
}
