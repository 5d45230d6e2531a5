"""A plain model that computes what the adapted one does, checked on a probe before anyone gets it."""

from __future__ import annotations

import copy

import torch
from peft import PeftModel
from transformers import PreTrainedModel

from postgrad.core.errors import TrainingFault
from postgrad.models.adapter.start import Start
from postgrad.models.evaluating import evaluating


def merge(model: PeftModel, *, start: Start) -> PreTrainedModel:
    """A plain fp32 model that computes what `model` does; `model` itself stays as it is.

    Raises:
        TrainingFault: the merged model computes something else, so a layer does not go through its adapter.
    """
    merged = _plain(model)
    network = model.get_base_model()
    probe_1L = torch.arange(3, 15, device=network.device)[None] % network.config.get_text_config().vocab_size
    with torch.no_grad(), evaluating(model):
        live = model(input_ids=probe_1L, use_cache=False).logits.float()
        with start.reference(model):
            effect = float((live - model(input_ids=probe_1L, use_cache=False).logits.float()).abs().max())
        difference = float((merged(input_ids=probe_1L, use_cache=False).logits - live).abs().max())
    # A layer that misses its adapter shows as a part of the adapter's effect; rounding grows with depth and effect
    # (1.5e-4 of the largest logit on SmolLM2-135M, 30 layers, fp32, where the effect was thousands of times that).
    rounding = 1e-4 if network.dtype == torch.float32 else 5e-2
    allowed = rounding * float(live.abs().max()) + 1e-2 * effect
    if not difference <= allowed:
        raise TrainingFault(
            f"merged, the model differs from the adapted one: logits by {difference:.1e} > {allowed:.1e}"
        )
    return merged


def _plain(model: PeftModel) -> PreTrainedModel:
    """The merged copy. Weights held in 4 bits are dequantised first: merging into them would round the adapter away."""
    twin = copy.deepcopy(model)
    if getattr(twin.get_base_model(), "quantization_method", None) is not None:
        from postgrad.models.adapter.quantised import dequantised

        twin = dequantised(twin)
    merged: PreTrainedModel = twin.float().eval().merge_and_unload()
    return merged
