"""Canned answers: always the same kernel with another number in it, in the form that the request asks for.

Every answer must be a new candidate (all three engines drop what they have seen), so a number is all that differs.
"""

from __future__ import annotations

from typing import Any

ANCHOR_PYTHON = "    return [2.0 * value for value in x]"
ANCHOR_CPP = "  for (long long i = 0; i < dim[0]; ++i) out_[i] = 2.0f * in_[i];"
"""Lines that every candidate has, so that a change to any parent can be asked for by them."""

PYTHON = f"""\
# EVOLVE-BLOCK-START
def run(x):
    variant = 0
{ANCHOR_PYTHON}
# EVOLVE-BLOCK-END
"""
"""What OpenEvolve and ShinkaEvolve start from."""

CPP = f"""\
// flags: -O3
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {{
  const int variant = 0;
  const float* in_ = (const float*)in[0];
  float* out_ = (float*)out[0];
{ANCHOR_CPP}
}}
"""

ANALYSIS = "Memory bound: one read and one write an element, two operations between them."
DESIGN = "One pass over the elements, in order, so that the hardware prefetches them."


def answer(system: str, body: dict[str, Any], number: int) -> str:
    """The text for one request of `system` ("workbench", "openevolve", "shinka"). `number` makes it new."""
    asked = "\n".join(str(message.get("content", "")) for message in body.get("messages", []))
    changes = "<<<<<<< SEARCH" in asked
    variant = f"variant = {number}"
    if system == "workbench":
        code = (
            _changes(ANCHOR_CPP, f"  {{ const int {variant}; }}\n{ANCHOR_CPP}")
            if changes
            else _fenced("cpp", CPP, variant)
        )
        return f"## Performance analysis\n{ANALYSIS}\n\n## Algorithm design\n{DESIGN}\n\n## Code\n{code}\n"
    diff = _changes(ANCHOR_PYTHON, f"    {variant}\n{ANCHOR_PYTHON}")
    if system == "openevolve":
        return f"{ANALYSIS} {DESIGN}\n\n{diff if changes else _fenced('python', PYTHON, variant)}\n"
    body_text = f"<DIFF>\n{diff}\n\n</DIFF>" if changes else f"<CODE>\n{_fenced('python', PYTHON, variant)}\n</CODE>"
    return f"<NAME>\n{variant.replace(' = ', '_')}\n</NAME>\n\n<DESCRIPTION>\n{DESIGN}\n</DESCRIPTION>\n\n{body_text}\n"


def _changes(before: str, after: str) -> str:
    return f"<<<<<<< SEARCH\n{before}\n=======\n{after}\n>>>>>>> REPLACE"


def _fenced(language: str, code: str, variant: str) -> str:
    return f"```{language}\n{code.replace('variant = 0', variant)}```"
