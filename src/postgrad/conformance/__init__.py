"""The public conformance suite: golden values and gradients, ours and those of other libraries beside them.

    python -m postgrad.conformance [--json] [--peers trl,verl] [--only PREFIX]

Peers that are installed are measured; one that is asked for by name and is not installed is an error that says what to
install.

A case is a definition from a paper at one small input, worked out by hand: what must come out, how that was derived,
a function that measures ours, and functions that measure peers on the same input. To add cases, write a module with
`cases() -> list[Case]` and give it a row here. A peer's function imports the peer when it is called and not before;
`Case.peers` says which peers have such a thing at all, and `Case.notes` what is known of one that differs.
"""

from __future__ import annotations

# Subject -> module with `cases()`; a case is named "subject/...".
CASE_MODULES: dict[str, str] = {
    "policy": "postgrad.conformance.policy_cases",
    "policy_terms": "postgrad.conformance.policy_term_cases",
    "advantage": "postgrad.conformance.advantage_cases",
    "preference": "postgrad.conformance.preference_cases",
    "divergence": "postgrad.conformance.divergence_cases",
}

# Peer -> the command that installs it beside postgrad.
PEERS: dict[str, str] = {
    "trl": "pip install trl==1.16.0",
    "verl": (
        "pip install --no-deps verl==0.9.1 tensordict omegaconf hydra-core antlr4-python3-runtime==4.9.3 codetiming "
        "ray torchdata msgpack protobuf importlib_metadata zipp cloudpickle pyvers orjson"
    ),
}
