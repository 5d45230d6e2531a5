"""How replicas of a run, each a run of its own, are kept together: by name, for the plug-in point `sync`.

Named in a recipe as `sync: {name: diloco, ...}`; `choice` reads that section and imports no torch.
"""

SYNCS: dict[str, str] = {
    "none": "postgrad.train.sync.none:NoSync",
    "diloco": "postgrad.train.sync.diloco:DiLoCo",
}
"""Short name to the frozen class whose fields are the section's and whose `build` makes a `contracts.Sync`."""
