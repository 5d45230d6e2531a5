"""`Policy`: a causal language model of any family, its tokenizer, its renderer and, usually, an adapter.

It knows how to run a forest, how to turn hidden states into logits, how to switch its adapter off for the reference,
and how to save itself. It trains nothing and samples nothing.

Weights are kept in fp32 unless bf16 is asked for; ``dtype="auto"`` adds bf16 autocast only where it was measured
faster.

Shapes: T tokens of the forest, N positions, D hidden width, V vocabulary.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from postgrad.core.errors import ConfigError, TrainingFault
from postgrad.core.files import write_folder
from postgrad.core.forest import Forest
from postgrad.core.message import Tool
from postgrad.models.adapter.adalora import AdaLoraSchedule
from postgrad.models.adapter.attach import attach
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.folder import read_adapter, write_adapter
from postgrad.models.adapter.geometry import geometry
from postgrad.models.adapter.merging import merge
from postgrad.models.adapter.start import Start
from postgrad.models.adapter.variants import AdaLora
from postgrad.models.forward import Scheme, flat_hidden_TD, tree_hidden_TD
from postgrad.models.heap import watch_layers
from postgrad.models.load import WEIGHT_DTYPES, is_adapter, keep_weights, load_adapted, load_plain, load_tokenizer
from postgrad.models.machine import bf16_is_faster, set_threads, usable_device
from postgrad.models.render import Renderer
from postgrad.models.resolve import resolve_model
from postgrad.models.selfcheck import Layout, choose_layout
from postgrad.models.split import SplitModel

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar

log = logging.getLogger(__name__)


@dataclass
class Policy:
    """A model that acts. Build it with `load_policy` or `make_policy`.

    Attributes:
        name: the name it was loaded by.
        model: the module whose parameters are trained: a `PeftModel`, or the plain model for full fine-tuning.
        tokenizer: its tokenizer.
        renderer: messages to tokens and back.
        autocast: dtype of autocast for forward passes, None for none.
        start: what the adapter was when training began; None without an adapter.
    """

    name: str
    model: PeftModel | PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    renderer: Renderer
    autocast: torch.dtype | None = None
    start: Start | None = None
    _scheduled: bool = field(init=False, repr=False, default=False)
    _layout: Layout = field(init=False, repr=False)
    _running: SplitModel = field(init=False, repr=False)
    _frozen: SplitModel | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if isinstance(self.model, PeftModel) and self.start is None:
            self.start = Start.of(self.model, None, fresh=False)
        self._running = SplitModel(self.network)
        self._layout = choose_layout(self._running)
        watch_layers(self.network)
        told = log.info if self.layout == "tree" else log.warning  # flat costs time: a person should know why
        told("%s runs %s: %s", self.name, self.layout, self.layout_reason)

    @property
    def accepts(self) -> frozenset[str]:
        """Names of the arguments that `body` takes."""
        return frozenset(inspect.signature(self._running.body.forward).parameters)

    @property
    def network(self) -> PreTrainedModel:
        """The transformers model itself, adapter layers inside."""
        return self.model.get_base_model() if isinstance(self.model, PeftModel) else self.model

    @property
    def layout(self) -> Literal["tree", "flat"]:
        """How forests run: decided by the self-check at load."""
        return self._layout.kind

    @property
    def layout_reason(self) -> str:
        """Why, in one sentence."""
        return self._layout.reason

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._running.device

    @property
    def context_length(self) -> int:
        """Longest sequence in tokens that the model was made for; without a limit, a very large number."""
        return int(getattr(self._running.config, "max_position_embeddings", None) or 2**31)

    def grammar(self, tools: Sequence[Tool], *, require_call: bool = False) -> CompiledGrammar:
        """The grammar "calls of `tools`, or text" for this policy's vocabulary and stop tokens."""
        return self.renderer.grammar(tools, vocabulary=int(self._running.config.vocab_size), require_call=require_call)

    def hidden_TD(self, forest: Forest) -> Tensor:
        """Final hidden states (T, D) in forest order, after the last norm; gradients flow if enabled."""
        with self._cast():
            if self.layout == "tree":
                return tree_hidden_TD(self._running, forest, scheme=self.scheme)
            return flat_hidden_TD(self._running, forest)

    @property
    def scheme(self) -> Scheme:
        """How the model takes its masks, as the self-check found."""
        return self._layout.scheme

    def body(self, **arguments: Any) -> Any:
        """The model without its head, called as transformers calls it (for decoding with a cache)."""
        with self._cast():
            return self._running.body(**arguments)

    def head(self, hidden_ND: Tensor) -> Tensor:
        """Logits (N, V) in fp32 as the model computes them, soft-capping and scaling included."""
        with self._cast():
            return self._running.head(hidden_ND)

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Inside, `hidden_TD` and `head` are those of the reference, without gradients.

        The reference is the model as it was when training began: with a new LoRA adapter that is the adapter off; for
        full fine-tuning it is the copy that `freeze_reference` made.

        Raises:
            TrainingFault: full fine-tuning without a frozen reference.
        """
        if isinstance(self.model, PeftModel):
            assert self.start is not None
            with torch.no_grad(), self.start.reference(self.model):
                yield
            return
        if self._frozen is None:
            raise TrainingFault("full fine-tuning has no reference: call policy.freeze_reference() before training")
        own, self._running = self._running, self._frozen
        try:
            with torch.no_grad():
                yield
        finally:
            self._running = own

    def freeze_reference(self) -> None:
        """Keep a frozen copy of the weights as they are now as the reference (an adapter keeps its own start)."""
        if isinstance(self.model, PeftModel):
            return
        self._frozen = SplitModel(copy.deepcopy(self.network).eval().requires_grad_(False))

    def twin(self) -> Policy:
        """A frozen copy of the policy as it is now: trainable weights are copied, all others are shared."""
        shared = {id(p): p for p in self.model.parameters() if not p.requires_grad}
        twin = copy.copy(self)
        twin.model = copy.deepcopy(self.model, shared).eval().requires_grad_(False)
        twin._running, twin._frozen = SplitModel(twin.network), None
        return twin

    def companions(self, *, steps: int) -> tuple[AdaLoraSchedule, ...]:
        """What the loop has to call around its optimiser for this adapter, in a run of `steps` steps."""
        self._scheduled = True
        found = self.start.variant(AdaLora) if self.start is not None else None
        return () if found is None else (AdaLoraSchedule(self.model, found, steps=steps),)

    def geometry(self) -> dict[str, Any] | None:
        """Ranks and norms of what the adapter learned, layer by layer; None without an adapter."""
        if not isinstance(self.model, PeftModel):
            return None
        assert self.start is not None
        return geometry(self.model, self.start)

    def save(self, folder: Path) -> None:
        """Write the adapter (or, without one, the whole model), tokenizer and chat template, in one step.

        Raises:
            TrainingFault: the adapter is empty or still as it was initialised.
            OutsideFailure: the folder cannot be written.
        """
        if not isinstance(self.model, PeftModel):
            self.save_merged(folder)
            return
        model, start = self.model, self._learned()

        def fill(target: Path) -> None:
            write_adapter(model, target, start=start)
            self.tokenizer.save_pretrained(target)

        write_folder(folder, fill)

    def save_merged(self, folder: Path) -> None:
        """Write the whole model in fp32 with the adapter merged in, tokenizer and chat template, in one step.

        Raises:
            TrainingFault: the adapter is empty or still as it was initialised, or the merged model would not compute
                what this policy does.
            OutsideFailure: the folder cannot be written.
        """
        if isinstance(self.model, PeftModel):
            network = merge(self.model, start=self._learned())
        else:
            network = self.model if self.model.dtype == torch.float32 else copy.deepcopy(self.model).float()

        def fill(target: Path) -> None:
            network.save_pretrained(target)
            self.tokenizer.save_pretrained(target)

        write_folder(folder, fill)

    def _learned(self) -> Start:
        """The adapter's start, once it is certain that it has moved away from it."""
        assert self.start is not None
        self.start.require_learned(self.model, scheduled=self._scheduled)
        return self.start

    def _cast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, dtype=self.autocast) if self.autocast else nullcontext()


def load_policy(
    name: str | Path,
    *,
    adapter: AdapterConfig | Path | None = None,
    device: str = "cpu",
    dtype: Literal["float32", "bfloat16", "auto"] = "float32",
) -> Policy:
    """Load a policy.

    Args:
        name: a short name, a model folder, a hub id, or the folder of a saved adapter, which brings its base along.
        adapter: a configuration puts a new adapter on the model; a folder loads a saved one. With `name` an adapter
            folder, a new adapter is put on that adapter merged into its base.
        device: torch device.
        dtype: "float32"; "bfloat16" holds the weights in bf16; "auto" is fp32 weights with bf16 autocast where it is
            measured faster.

    Raises:
        ConfigError: unknown model or dtype, no such device, or an adapter that fits nothing.
        DataError: a folder whose model or adapter does not load.
        MissingDependency: the weights shall be held in 4 bits, and bitsandbytes is not installed.
    """
    if dtype not in WEIGHT_DTYPES:
        raise ConfigError("unknown dtype", got=dtype, expected=" or ".join(WEIGHT_DTYPES))
    set_threads()
    target = usable_device(device)
    source, weights = resolve_model(str(name)), WEIGHT_DTYPES[dtype]
    model: PreTrainedModel | PeftModel
    start: Start | None = None
    if isinstance(adapter, AdapterConfig):
        model = attach(load_plain(source, dtype=weights, adapter=adapter), adapter, base=str(name))
        start = Start.of(model, adapter, fresh=True) if isinstance(model, PeftModel) else None
    elif adapter is not None or is_adapter(source):
        if adapter is not None:
            model, config = read_adapter(load_plain(source, dtype=weights), Path(adapter), base=str(name))
        else:
            model, config = load_adapted(Path(source), dtype=weights)
        start = Start.of(model, config, fresh=False)
    else:
        model = load_plain(source, dtype=weights)
    model.to(target)
    autocast = torch.bfloat16 if dtype == "auto" and bf16_is_faster(target) else None
    return make_policy(str(name), model, load_tokenizer(source), autocast=autocast, start=start)


def make_policy(
    name: str,
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    autocast: torch.dtype | None = None,
    start: Start | None = None,
) -> Policy:
    """A policy from parts that are already in memory; `model` is put into evaluation mode."""
    keep_weights(model)
    model.eval()
    end = model.generation_config.eos_token_id if model.generation_config is not None else None
    stop_ids = [end] if isinstance(end, int) else list(end or ())
    return Policy(name, model, tokenizer, Renderer(tokenizer, model_stop_ids=stop_ids), autocast, start)
