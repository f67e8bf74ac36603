"""How a vLLM server of our own is started, and what of that can be decided without starting one. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from workbench_engine.llm.settings import Endpoint, LlmSettings

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Those that vLLM accepts as --max-lora-rank."""

KEY_VARIABLE = "VLLM_API_KEY"
CPU_KV_GIB = "2"


class VllmSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[vllm]`: a server that a run starts and ends, or one that runs already. Durations in seconds.

    `attach` is the address of a running server (http://HOST/v1): nothing is started then. `command` is what serves,
    as the `vllm` of another environment; `args` are added at the end of its command line, `env` to its environment.
    `gpus` are the devices it may use as CUDA_VISIBLE_DEVICES takes them ("" = all), `tensor_parallel` over how many
    it splits the model, `gpu_memory` the share of their memory it takes (0 = vLLM's own: most of it; 0.45 leaves room
    for candidates on the same GPU). `max_model_len` is the context in tokens, `max_num_seqs` the answers written at
    once, `port` the port on 127.0.0.1 (0 = vLLM's own; a free one). `priority` serves requests by their priority.
    """

    attach: str = ""
    command: tuple[str, ...] = ("vllm",)
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    gpus: str = ""
    tensor_parallel: int = 1
    gpu_memory: float = 0.0
    max_model_len: int = 0
    max_num_seqs: int = 0
    prefix_caching: bool = True
    lora: bool = True
    lora_rank: int = 16
    max_loras: int = 4
    priority: bool = False
    port: int = 0
    start_s: float = 900.0

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise ValueError("vllm.command is empty; give the program that serves, as the path of `vllm`")
        if self.lora_rank not in LORA_RANKS:
            raise ValueError(f"vllm.lora_rank = {self.lora_rank} is not one of {', '.join(map(str, LORA_RANKS))}")
        if not 0.0 <= self.gpu_memory <= 1.0:
            raise ValueError(f"vllm.gpu_memory = {self.gpu_memory} must be a share of 0 (vLLM's own) to 1")
        if self.tensor_parallel < 1 or self.max_loras < 1:
            raise ValueError("vllm.tensor_parallel and vllm.max_loras must be at least 1")
        if self.max_model_len < 0 or self.max_num_seqs < 0 or not 0 <= self.port < 65536:
            raise ValueError("vllm.max_model_len, vllm.max_num_seqs and vllm.port must be 0 (its own) or more")
        if not self.start_s > 0.0:
            raise ValueError(f"vllm.start_s = {self.start_s} must be more than 0")


def served_name(model: str) -> str:
    """What the server and all records call the model: the last part of a path, so that no path leaks; else its name."""
    return Path(model).name if model.startswith(("/", "./", "../", "~")) else model


def command_line(settings: VllmSettings, model: str, port: int) -> list[str]:
    """The whole command line for `model`, a folder or a name."""
    line = [*settings.command, "serve", str(Path(model).expanduser()) if model.startswith("~") else model]
    line += ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", served_name(model)]
    line += ["--enable-prefix-caching" if settings.prefix_caching else "--no-enable-prefix-caching"]
    # What a trainer compares with its own must be the probabilities that were sampled from.
    line += ["--logprobs-mode", "processed_logprobs"]
    # A small model may otherwise fill a schema with line breaks until its tokens are spent.
    line += ["--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}']
    if settings.lora:
        line += ["--enable-lora", "--max-lora-rank", str(settings.lora_rank), "--max-loras", str(settings.max_loras)]
    if settings.tensor_parallel > 1:
        line += ["--tensor-parallel-size", str(settings.tensor_parallel)]
    if settings.gpu_memory:
        line += ["--gpu-memory-utilization", f"{settings.gpu_memory:g}"]
    if settings.max_model_len:
        line += ["--max-model-len", str(settings.max_model_len)]
    if settings.max_num_seqs:
        line += ["--max-num-seqs", str(settings.max_num_seqs)]
    if settings.priority:
        line += ["--scheduling-policy", "priority"]
    return [*line, *settings.args]


def environment_of(
    settings: VllmSettings, model: str, key: str, cores: Sequence[int], outer: Mapping[str, str]
) -> dict[str, str]:
    """The server's environment. On a CPU it computes on `cores` only: those that nothing is timed on.

    Keys of model services in ours are left out: the server asks nobody.
    """
    inner = {k: v for k, v in outer.items() if not k.endswith("_API_KEY")}
    inner |= {
        KEY_VARIABLE: key,
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_COLOR": "0",
        "PYTHONUNBUFFERED": "1",
    }
    inner.setdefault("VLLM_CPU_OMP_THREADS_BIND", ",".join(map(str, cores)))
    # On a CPU it would claim nearly all memory, and refuse to start where somebody has some of it.
    inner.setdefault("VLLM_CPU_KVCACHE_SPACE", CPU_KV_GIB)
    if model.startswith(("/", "./", "../", "~")):
        inner.setdefault("HF_HUB_OFFLINE", "1")
    if settings.gpus:
        inner["CUDA_VISIBLE_DEVICES"] = settings.gpus
    return inner | settings.env


def endpoint_of(llm: LlmSettings, base_url: str, model: str) -> Endpoint:
    """The endpoint of a server at `base_url`, asked as the section `[llm]` says."""
    shared = {f: getattr(llm, f) for f in Endpoint.__struct_fields__ if hasattr(llm, f)}
    shared |= {"base_url": base_url, "model": model, "key_env": KEY_VARIABLE}
    return Endpoint(**shared, name="vllm", price=llm.prices.get(model))


_PREFIX = re.compile(r"^(?:\([^)]*\)\s*)*(?:(?:DEBUG|INFO|WARNING|ERROR)\s+[\d-]+\s+[\d:]+\s+\[[^\]]*\]\s*)?")
_FAULT = re.compile(
    r"^(?:[\w.]*(?:Error|Exception|Fault)\b(?:: |$)|.*\berror: |cannot be started: |.*\b(?:out of memory|Killed)\b)"
)
_COUNTED = re.compile(r"\bValidationError: \d+ validation errors? for ")
_WRAPPERS = re.compile(
    r"(?:Engine core|WorkerProc) initialization failed|See root cause above|Failed core proc|SystemExit"
)
_WORTH = re.compile(
    r"load(?:ing)? (?:model|weight|safetensors)|shards|compil|captur|warm|kv cache|profiling|download", re.IGNORECASE
)
_IDLE = re.compile(r"disabled|config:|Route:|Redirecting|not supported", re.IGNORECASE)
KEPT = 300


def plain_line(line: str) -> str:
    """A line of vLLM's log without process names and time stamps."""
    return _PREFIX.sub("", line.strip()).strip()


def telling_line(log: str) -> str:
    """The one line of a failed server's log that says why; "" for an empty log."""
    lines = [plain_line(line) for line in log.splitlines()]
    lines = [line for line in lines if line]
    faults = [i for i, line in enumerate(lines) if _FAULT.search(line) and not _WRAPPERS.search(line)]
    if not faults:
        return lines[-1][:KEPT] if lines else ""
    last = faults[-1]
    # A refused setting names only its class there; what is wrong with it stands in the next line.
    reasons = lines[last + 1 : last + 2] if _COUNTED.search(lines[last]) else []
    return (reasons or [lines[last]])[0][:KEPT]


def progress_line(log: str) -> str:
    """What a starting server is at, from the tail of its log; "" when it does not say."""
    for line in reversed(log.splitlines()):
        said = plain_line(line.rpartition("\r")[2] or line)
        if said and _WORTH.search(said) and not _IDLE.search(said):
            return said[:KEPT]
    return ""
