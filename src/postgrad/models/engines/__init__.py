"""Samplers that are servers: the engines by name, as `module:Class`; `served.ServedSampler` draws from one."""

ENGINES = {
    "vllm": "postgrad.models.engines.completions:Vllm",
    "sglang": "postgrad.models.engines.sglang:SGLang",
    "openai_compatible": "postgrad.models.engines.completions:Completions",
}
