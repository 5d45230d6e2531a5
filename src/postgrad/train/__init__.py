"""The loop: units in, a trained policy out. It sums channels and knows no method."""

OPTIMIZERS: dict[str, str] = {
    name: f"postgrad.train.optimizers:{kind}"
    for name, kind in {
        "adamw": "AdamW",
        "adamw8bit": "AdamW8bit",
        "adafactor": "Adafactor",
        "galore": "GaLore",
        "lion": "Lion",
        "muon": "Muon",
        "sgd": "SGD",
    }.items()
}
"""Short name to class, for the plug-in point `optimizer`."""
