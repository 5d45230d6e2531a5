"""`cpt`: continued pretraining on plain text, cross-entropy on every token.

Documents are never joined: each is a branch of its own in the forest, so packing lets none see another. A document
longer than `length` is cut into pieces that overlap; every token is scored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from postgrad.core.annotation import CrossEntropyItem, Span, Unit
from postgrad.core.errors import ConfigError
from postgrad.methods.batches import Batches
from postgrad.methods.corpus import Corpus, corpus_files, documents
from postgrad.methods.pieces import Piece, pieces
from postgrad.run.config import Config

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from postgrad.models.policy import Policy


class CPT(Config):
    """Continued pretraining on text files, JSON lines and Parquet."""

    paths: tuple[Path, ...]
    """Files or folders: .txt and .md (a document a file), .jsonl, .parquet."""
    field: str = "text"
    """Where a JSON line or a table has its text."""
    length: Annotated[int, Field(ge=2)] = 1024
    """Most tokens of a row; longer documents are cut into pieces."""
    overlap: Annotated[int, Field(ge=1)] = 64
    """Tokens that a piece repeats of the one before, as context that is not scored again."""
    batch_size: Annotated[int, Field(ge=1)] = 16
    """Rows per optimiser step."""

    @model_validator(mode="after")
    def _moves_on(self) -> CPT:
        if self.overlap >= self.length:
            raise ValueError(f"overlap is {self.overlap}, expected less than length ({self.length})")
        if not self.paths:
            raise ValueError("paths is empty, expected files or folders of text")
        return self

    def weights(self) -> Mapping[str, float]:
        """Cross-entropy alone."""
        return {"cross_entropy": 1.0}

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Every setting of the channel is fine."""

    def data(self) -> Sequence[Path]:
        """The files.

        Raises:
            DataError: one is missing or of an unknown kind.
        """
        return corpus_files(self.paths)

    def source(self, policy: Policy, *, seed: int) -> TextSource:
        """Tokenise the files for `policy`.

        Raises:
            ConfigError: rows longer than the model's context.
            DataError: a file is broken, or there is no text.
        """
        if self.length > policy.context_length:
            raise ConfigError("method.length", got=self.length, expected=f"at most {policy.context_length}")
        tokenizer = policy.tokenizer
        texts = (text for path in self.data() for text in documents(path, field=self.field))

        def encode(batch: list[str]) -> list[list[int]]:
            return [list(ids) for ids in tokenizer(batch, add_special_tokens=False)["input_ids"]]

        end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        corpus = Corpus.of(texts, encode, before=_begin(tokenizer), after=end)
        return TextSource(corpus, self, seed=seed)


class TextSource:
    """Rows of a corpus, a batch a step; holds no state of its own.

    Attributes:
        rows: how many documents there were, what was dropped, and how many rows they make.
    """

    samples = False

    def __init__(self, corpus: Corpus, config: CPT, *, seed: int) -> None:
        self._corpus, self._config, self._seed = corpus, config, seed
        self.rows = dict(corpus.rows) | {"rows": len(self._pieces)}

    def units(self, step: int) -> Sequence[Unit]:
        """The batch of `step`."""
        return [self._unit(row) for row in self._batches.units(step)]

    def state(self) -> dict[str, Any]:
        """Nothing: batches are a function of seed and step."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to take back."""

    @cached_property
    def _pieces(self) -> list[tuple[int, Piece]]:
        """Document and place of every row; a piece of one fresh token at its start has nothing to score."""
        longest, overlap = self._config.length, self._config.overlap
        return [
            (document, piece)
            for document, length in enumerate(self._corpus.lengths())
            for piece in pieces(int(length), longest=longest, overlap=overlap)
        ]

    @cached_property
    def _batches(self) -> Batches[int]:
        return Batches([[row] for row in range(len(self._pieces))], self._config.batch_size, self._seed)

    def _unit(self, row: int) -> Unit:
        import numpy as np

        document, piece = self._pieces[row]
        first = int(self._corpus.starts[document])
        tokens = tuple(np.asarray(self._corpus.tokens[first + piece.start : first + piece.stop]).tolist())
        scored = tuple(range(max(1, piece.fresh - piece.start), len(tokens)))
        return Unit((tokens,), (CrossEntropyItem(Span(0, scored)),))


def _begin(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The begin-of-text token where the tokenizer itself would set it."""
    begin = tokenizer.bos_token_id
    return [int(begin)] if begin is not None and tokenizer.encode("a")[:1] == [begin] else []
