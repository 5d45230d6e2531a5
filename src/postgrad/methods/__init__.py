"""Methods: who decides each token's credit. One file each; a new one is a file, a row here and a recipe."""

METHODS = {
    "sft": "postgrad.methods.supervised:SFT",
    "dpo": "postgrad.methods.pairs:DPO",
    "kto": "postgrad.methods.pairs:KTO",
    "sdpo": "postgrad.methods.supervised:SDPO",
    "cpt": "postgrad.methods.pretraining:CPT",
    "es": "postgrad.methods.evolution:ES",
    "sdpo_fresh": "postgrad.methods.self_distillation:SDPOFresh",
    "opsd": "postgrad.methods.self_distillation:OPSD",
    "distillation": "postgrad.methods.distillation:Distillation",
    "gkd": "postgrad.methods.distillation:GKD",
    "composer": "postgrad.methods.composer:Composer",
}
"""Short name to class, for the plug-in point `method`."""

__all__ = ["METHODS"]
