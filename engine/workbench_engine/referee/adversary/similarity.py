"""Which past cases a file looks like: token shingles with names taken out, weighed by TF-IDF, compared by cosine.

TF-IDF as usual: w = (1 + ln tf) * (0.05 + ln((1 + N) / (1 + df))) over all documents, here the cases and, where given,
honest files, so that what everybody writes weighs next to nothing.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from workbench_engine.referee.adversary.stripping import cxx_without_comments, without_comments
from workbench_engine.referee.advice import cxx_table, python_table
from workbench_engine.referee.advice.advising import advise
from workbench_engine.referee.advice.cxx_rules import looks_like_cxx
from workbench_engine.referee.advice.python_names import STAR_NAMES

SHINGLES = (1, 3, 5)
"""Lengths of the runs of tokens that are compared."""

LONGEST = 400_000
LEAST_WEIGHT = 0.05
"""Of what every document has: without it a lone case would weigh nothing at all."""

_TOKEN = re.compile(
    r"\"\"\"(?P<a>.*?)\"\"\"|'''(?P<b>.*?)'''|\"(?P<c>(?:\\.|[^\"\\\n])*)\"|'(?P<d>(?:\\.|[^'\\\n])*)'"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<mark>::|->|<<<|>>>|\*\*|//|[-+*/%&|^<>=!]=|&&|\|\||<<|>>|\+\+|--|\S)",
    re.DOTALL,
)
_CXX_WORDS = """alignas asm auto bool break case catch char class const constexpr continue default delete do double
else enum extern float for friend goto if inline int long mutable namespace new nullptr operator private public
register return short signed sizeof static static_cast reinterpret_cast struct switch template this thread_local throw
try typedef typename union unsigned using virtual void volatile while include define pragma omp parallel simd nowait
std vector unordered_map map mutex atomic memcpy memset size data begin end find push_back detach join load store
torch at c10 Tensor data_ptr clone copy_ empty empty_like zeros is contiguous shape self forward Module nn Parameter
super training append items keys values get update main exit expf sqrtf fmaxf"""


def _known() -> frozenset[str]:
    found = set(_CXX_WORDS.split()) | set(keyword.kwlist) | {n for n in dir(builtins) if not n.startswith("_")}
    for dotted in (*python_table.NAMES, *cxx_table.QUALIFIED):
        found.update(re.split(r"\.|::", dotted))
    for names in STAR_NAMES.values():
        found.update(names)
    return frozenset(
        found
        | set(python_table.ATTRIBUTES)
        | python_table.COMPUTE
        | python_table.NATIVE_SYMBOLS
        | set(cxx_table.CALLS)
        | cxx_table.METHODS
    )


KNOWN = _known()
"""Names of languages and libraries; every other name is the author's own and stands as "v"."""


class Match(Struct, frozen=True):
    """One document that is alike, `score` in 0..1."""

    key: str
    score: float


def tokens(text: str, kind: str) -> list[str]:
    """The code as a row of words: own names "v", numbers "0", strings "s" unless they are code or a known name."""
    return list(_tokens(without_comments(text[:LONGEST], kind)))


def _tokens(code: str) -> Iterable[str]:
    for match in _TOKEN.finditer(code):
        if match["name"] is not None:
            yield match[0] if match[0] in KNOWN else "v"
        elif match["number"] is not None:
            yield "0"
        elif match["mark"] is not None:
            yield match[0]
        else:
            inside = next((match[g] for g in "abcd" if match[g] is not None), "")
            if len(inside) > 20 and looks_like_cxx(inside):
                yield from _tokens(cxx_without_comments(inside))
            else:
                yield inside if inside in KNOWN else "s"


def features(text: str, kind: str) -> Counter[str]:
    """What is compared: shingles of tokens, and the codes of the static advice, which name the mechanism."""
    row = tokens(text, kind)
    found: Counter[str] = Counter()
    for length in SHINGLES:
        for start in range(len(row) - length + 1):
            shingle = row[start : start + length]
            if length > 1 or shingle[0] in KNOWN:
                found[" ".join(shingle)] += 1
    for one in advise(text, kind):
        found[f"advice:{one.code}"] += 1
    return found


class Index:
    """Documents that can be asked which of them a file looks like."""

    def __init__(self, documents: Sequence[tuple[str, Counter[str]]], background: Sequence[Counter[str]] = ()) -> None:
        """`background` are files known to be honest: they are never found, and take the weight from common code."""
        everything = [counts for _, counts in documents] + list(background)
        appears = Counter(name for counts in everything for name in counts)
        count = len(everything)
        self._idf = {name: LEAST_WEIGHT + math.log((1 + count) / (1 + df)) for name, df in appears.items()}
        self._unseen = LEAST_WEIGHT + math.log(1 + count)
        self._documents = [(key, self._vector(counts)) for key, counts in documents]

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        vector = {name: (1.0 + math.log(count)) * self._idf.get(name, self._unseen) for name, count in counts.items()}
        length = math.sqrt(sum(value * value for value in vector.values()))
        return {name: value / length for name, value in vector.items()} if length > 0.0 else {}

    def top(self, counts: Counter[str], most: int = 3) -> list[Match]:
        """The most alike, best first; of equals the earlier."""
        query = self._vector(counts)
        scored = [
            Match(key, min(1.0, sum(value * vector[name] for name, value in query.items() if name in vector)))
            for key, vector in self._documents
        ]
        return sorted(scored, key=lambda match: -match.score)[:most]
