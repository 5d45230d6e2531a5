"""Grammars for constrained sampling: calls of the offered tools, or plain words.

A constrained answer is either one or more calls, each exactly as the renderer writes it, with arguments that follow the
tool's JSON schema (types, required, enum, nothing undeclared, in the order of the schema), or text that opens no call,
so that declining stays possible. Compiled by xgrammar; the byte-for-byte form leaves no blank space to drift in.

Not covered: text before a call, several calls in the forms of other families than Hermes, and schema keywords that
xgrammar does not know.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedTokenizerBase

from postgrad.core.errors import DataError, MissingDependency
from postgrad.core.message import Tool
from postgrad.models.call_forms import CallForm, Hermes

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar, GrammarCompiler


HERMES = Hermes()


def tool_grammar(
    tools: Sequence[Tool],
    tokenizer: PreTrainedTokenizerBase,
    *,
    vocabulary: int | None = None,
    stop_ids: Sequence[int] = (),
    require_call: bool = False,
    form: CallForm = HERMES,
) -> CompiledGrammar:
    """The grammar "calls of `tools`, or text".

    Args:
        tools: what may be called.
        tokenizer: whose tokens are masked.
        vocabulary: width of the model's logits, where it differs from the tokenizer's.
        stop_ids: tokens that may end the answer; the tokenizer's end token if empty.
        require_call: leave no way but a call.
        form: how the model writes calls.

    Raises:
        DataError: there is no tool to call, or a schema cannot be turned into a grammar.
        MissingDependency: xgrammar is not installed.
    """
    if not tools and require_call:
        raise DataError("a call is required and no tool is offered")
    calls = _one_call(form, tools) if form.native else _calls(form, tools)
    words = {"type": "regex", "pattern": form.words}
    choices = ([calls] if tools else []) + ([] if require_call else [words])
    whole = choices[0] if len(choices) == 1 else {"type": "or", "elements": choices}
    compiler = _compiler(tokenizer, vocabulary, tuple(sorted(stop_ids)))
    try:
        return compiler.compile_structural_tag({"type": "structural_tag", "format": whole})
    except RuntimeError as error:
        names = ", ".join(tool.name for tool in tools)
        raise DataError(f"these tools make no grammar: {error}", got=names) from None


def _calls(form: CallForm, tools: Sequence[Tool]) -> dict[str, Any]:
    """One call or several, a line break between."""
    around = [(tool, *form.around(tool.name)) for tool in tools]
    tags = [
        {"type": "tag", "begin": before, "content": _arguments(tool, form), "end": after}
        for tool, before, after in around
    ]
    return {"type": "tags_with_separator", "tags": tags, "separator": "\n", "at_least_one": True}


def _one_call(form: CallForm, tools: Sequence[Tool]) -> dict[str, Any]:
    """One call of one of the tools."""
    choices = []
    for tool in tools:
        before, after = form.around(tool.name)
        ending = [{"type": "const_string", "value": after}] if after else []
        parts = [{"type": "const_string", "value": before}, _arguments(tool, form), *ending]
        choices.append({"type": "sequence", "elements": parts})
    return choices[0] if len(choices) == 1 else {"type": "or", "elements": choices}


def _arguments(tool: Tool, form: CallForm) -> dict[str, Any]:
    if not form.style:
        raise DataError("no grammar is known for this model's form of calls", got=form.around(tool.name)[0])
    try:
        import xgrammar
    except ImportError:
        raise MissingDependency("xgrammar", extra="eval") from None
    schema = {"type": "object", "properties": {}, **tool.parameters, "additionalProperties": False}
    if form.style != "json":
        return {"type": "json_schema", "json_schema": schema, "style": form.style}
    try:
        ebnf = str(xgrammar.Grammar.from_json_schema(schema, any_whitespace=False, strict_mode=True))
    except RuntimeError as error:
        raise DataError(f"the parameters of tool {tool.name} make no grammar: {error}") from None
    return {"type": "grammar", "grammar": ebnf}


@functools.lru_cache(maxsize=4)
def _compiler(tokenizer: PreTrainedTokenizerBase, vocabulary: int | None, stop_ids: tuple[int, ...]) -> GrammarCompiler:
    try:
        import xgrammar
    except ImportError:
        raise MissingDependency("xgrammar", extra="eval") from None
    info = xgrammar.TokenizerInfo.from_huggingface(
        tokenizer, vocab_size=vocabulary, stop_token_ids=list(stop_ids) or None
    )
    return xgrammar.GrammarCompiler(info, max_threads=2)
