"""Model folders and LoRA adapter folders: loaded from safetensors only, checked, and several adapters on one model.

Left out: adapters that bring more than low-rank matrices (trained biases, whole modules, single tokens).
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from sim.fingerprint import fingerprint as content

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
MODEL = "model.safetensors"

_MORE = ("modules_to_save", "trainable_token_indices", "layer_replication", "megatron_config")
"""Settings of an adapter that bring more than low-rank matrices."""


class WeightsError(ValueError):
    """A folder's weights can't be used; one line that says why."""


def load_model(folder: str | Path, dtype: torch.dtype | str, device: torch.device | str) -> Any:
    """The causal language model of a folder (or hub name), for inference, gradients off. Raises WeightsError."""
    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True)
    except (OSError, ValueError, SafetensorError) as error:
        raise WeightsError(f"{folder}: {_line(error)}") from error
    return model.to(device).eval().requires_grad_(False)


def fingerprint(folder: str | Path) -> str:
    """As `sim.fingerprint`. Raises WeightsError for a folder without weights."""
    try:
        return content(folder)
    except ValueError as error:
        raise WeightsError(str(error)) from None


def read_weights(file: str | Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file by name, on the CPU. Raises WeightsError."""
    try:
        tensors: dict[str, torch.Tensor] = load_file(file)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{file}: {_line(error)}") from error
    return tensors


def is_adapter(folder: str | Path) -> bool:
    """Whether the folder holds a LoRA adapter rather than a whole model."""
    return (Path(folder) / ADAPTER_CONFIG).is_file()


def adapter_config(folder: str | Path) -> LoraConfig:
    """The settings of an adapter folder. Raises WeightsError for anything but plain LoRA in safetensors."""
    folder = Path(folder)
    try:
        kept = json.loads((folder / ADAPTER_CONFIG).read_text())
    except (OSError, ValueError) as error:
        raise WeightsError(f"{folder} is no adapter: {_line(error)}") from error
    if not (folder / ADAPTER).is_file():
        raise WeightsError(f"{folder} holds no {ADAPTER}; pickled weights are never loaded")
    if kept.get("peft_type") != "LORA":
        raise WeightsError(f"{folder} is a {kept.get('peft_type')} adapter, only LORA can be used")
    more = [name for name in _MORE if kept.get(name)] + ["bias"] * (kept.get("bias", "none") != "none")
    if more:
        raise WeightsError(f"{folder} brings more than low-rank matrices: {', '.join(more)}")
    known = {name: value for name, value in kept.items() if name in LoraConfig.__dataclass_fields__}
    # How the matrices began is over, and some beginnings would change the base model.
    return LoraConfig(**known | {"init_lora_weights": True, "inference_mode": True})


class Adapted:
    """A model with LoRA adapters side by side, of which one or none is active. Not safe to share among threads."""

    def __init__(self, model: Any) -> None:
        self.model = model
        """Call this; it computes with the active adapter."""
        self._peft: Any = None
        self._keys: dict[str, str] = {}
        self._tensors: dict[str, dict[str, torch.Tensor]] = {}
        self._numbers = itertools.count()
        self._active: str | None = None

    def create(self, name: str, config: LoraConfig, seed: int = 0) -> None:
        """A new adapter that changes nothing yet; torch's own generator is left as it was. Raises WeightsError."""
        key = f"a{next(self._numbers)}"  # peft allows no dots
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            try:
                if self._peft is None:
                    self._peft = PeftModel(self.model, config, adapter_name=key)
                else:
                    self._peft.add_adapter(key, config)
            except ValueError as error:
                raise WeightsError(_line(error)) from error
        self._keys[name] = key
        self._tensors[name] = get_peft_model_state_dict(self._peft, adapter_name=key, save_embedding_layers=False)
        self.model.eval()
        self._active = None

    def load(self, name: str, folder: str | Path) -> None:
        """The adapter of a folder. Raises WeightsError where it doesn't fit the model."""
        config = adapter_config(folder)
        weights = read_weights(Path(folder) / ADAPTER)
        self.create(name, config)
        try:
            _check_fit(folder, {key: one.shape for key, one in weights.items()}, self.tensors(name))
        except WeightsError:
            self.remove(name)
            raise
        for key, value in self.tensors(name).items():
            value.copy_(weights[key])

    def tensors(self, name: str) -> dict[str, torch.Tensor]:
        """The adapter's matrices by the names that stand in its file, without gradients; what is written there acts."""
        return self._tensors[name]

    def parameters(self, name: str) -> list[torch.nn.Parameter]:
        """The adapter's matrices, in the order of the model's modules; they stay the same objects."""
        key = self._keys[name]
        return [value for path, value in self.model.named_parameters() if key in path.split(".")]

    def config(self, name: str) -> LoraConfig:
        """The adapter's settings."""
        return self._peft.peft_config[self._keys[name]]

    def activate(self, name: str) -> None:
        """Compute with this adapter from now on, or with none (""). Turns off the gradients of all adapters."""
        if self._peft is None or name == self._active:
            return
        self._peft.base_model.set_adapter([self._keys[name]] if name else [], inference_mode=True)
        self._active = name

    def remove(self, name: str) -> None:
        """Free an adapter."""
        self.activate("")  # peft warns where the active one goes
        self._peft.delete_adapter(self._keys.pop(name))
        del self._tensors[name]
        self._active = None

    def close(self) -> None:
        """Free the model."""
        self.model = self._peft = None
        self._tensors.clear()


def _check_fit(folder: str | Path, found: dict[str, torch.Size], wanted: dict[str, torch.Tensor]) -> None:
    """Whether a file's tensors are those the model takes. Raises WeightsError naming the first that isn't."""
    for name in sorted(wanted.keys() ^ found.keys()):
        what = "has no place in the model" if name in found else "is missing"
        raise WeightsError(f"the adapter {folder} doesn't fit: {name} {what}")
    for name, tensor in wanted.items():
        if found[name] != tensor.shape:
            shapes = f"{tuple(found[name])}, the model takes {tuple(tensor.shape)}"
            raise WeightsError(f"the adapter {folder} doesn't fit: {name} is {shapes}")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
