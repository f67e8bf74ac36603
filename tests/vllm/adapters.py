"""A LoRA adapter of random numbers for SmolLM2-135M, written without torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

LAYERS, HIDDEN, VALUES = 30, 576, 192


def random_adapter(folder: Path, seed: int, rank: int = 8, scale: float = 0.05) -> Path:
    """Makes `folder` with an adapter of q_proj and v_proj; returns it."""
    rng = np.random.default_rng(seed)
    tensors: dict[str, np.ndarray] = {}
    for layer in range(LAYERS):
        for name, out in (("q_proj", HIDDEN), ("v_proj", VALUES)):
            base = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors[f"{base}.lora_A.weight"] = rng.normal(0, scale, (rank, HIDDEN)).astype(np.float32)
            tensors[f"{base}.lora_B.weight"] = rng.normal(0, scale, (out, rank)).astype(np.float32)
    folder.mkdir()
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "SmolLM2-135M-Instruct",
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    _safetensors(folder / "adapter_model.safetensors", tensors)
    return folder


def _safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """The format: length of the header (u64), header in JSON, raw numbers."""
    header: dict[str, object] = {}
    at = 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())
