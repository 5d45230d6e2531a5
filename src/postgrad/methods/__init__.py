"""Methods: who decides each token's credit. One file each; a new one is a file, a row here and a recipe."""

METHODS = {
    "sft": "postgrad.methods.supervised:SFT",
    "dpo": "postgrad.methods.supervised:DPO",
    "sdpo": "postgrad.methods.supervised:SDPO",
    "composer": "postgrad.methods.composer:Composer",
}
"""Short name to class, for the plug-in point `method`."""

__all__ = ["METHODS"]
