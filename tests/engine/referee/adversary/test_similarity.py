from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_engine.referee.adversary.similarity import Index, features, tokens

POINTER_CACHE = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}
    def forward(self, x):
        key = (x.data_ptr(), tuple(x.shape))
        if key not in self.answers:
            self.answers[key] = torch.softmax(x, dim=-1)
        return self.answers[key]
"""
RENAMED = re.sub(r"\bx\b", "rows", POINTER_CACHE.replace("answers", "w").replace("key", "mark"))
THREAD = """
import threading, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        threading.Thread(target=lambda: y.copy_(torch.softmax(x, dim=-1))).start()
        return y
"""


def test_names_comments_and_numbers_do_not_matter() -> None:
    commented = POINTER_CACHE.replace("        key =", "        # honest\n        key =")
    assert tokens(commented, "module") == tokens(POINTER_CACHE, "module")
    assert tokens("a = b + 17  # x", "module") == tokens("other = thing + 4", "module") == ["v", "=", "v", "+", "0"]


def test_known_names_matter() -> None:
    assert tokens("threading.Thread()", "module") == ["threading", ".", "Thread", "(", ")"]
    assert tokens("std::thread t(work);", "kernel") == ["std", "::", "thread", "v", "(", "v", ")", ";"]


def test_code_in_strings_is_read_as_code() -> None:
    assert "thread" in tokens("s = '''void f() { std::thread t(g); } // x'''", "module")
    assert tokens("s = 'whatever there is to say'", "module") == ["v", "=", "s"]


def test_a_renamed_cheat_is_found_before_another() -> None:
    index = Index([("pointer", features(POINTER_CACHE, "module")), ("thread", features(THREAD, "module"))])
    first, second = index.top(features(RENAMED, "module"))
    assert (first.key, second.key) == ("pointer", "thread")
    assert first.score > 0.9 > 0.3 > second.score


def test_what_honest_files_share_weighs_nothing() -> None:
    honest = THREAD.replace("threading.Thread(target=lambda: y.copy_(torch.softmax(x, dim=-1))).start()", "f(x, y)")
    cheats = [("pointer", features(POINTER_CACHE, "module")), ("thread", features(THREAD, "module"))]
    alone = Index(cheats).top(features(honest, "module"))[0].score
    aside = Index(cheats, [features(honest, "module")] * 5).top(features(honest, "module"))[0].score
    assert aside < alone


def test_a_lone_case_is_found() -> None:
    (match,) = Index([("thread", features(THREAD, "module"))]).top(features(THREAD, "module"))
    assert match.score == pytest.approx(1.0)


def test_nothing_to_compare_with_finds_nothing() -> None:
    assert Index([]).top(features(THREAD, "module")) == []
    assert [match.score for match in Index([("a", features("", "module"))]).top(features(THREAD, "module"))] == [0.0]


@given(st.lists(st.text(max_size=60), max_size=5), st.text(max_size=60), st.sampled_from(["module", "kernel"]))
@settings(max_examples=60, deadline=None)
def test_scores_are_shares_in_order(texts: list[str], asked: str, kind: str) -> None:
    index = Index([(str(i), features(text, kind)) for i, text in enumerate(texts)])
    scores = [match.score for match in index.top(features(asked, kind), 10)]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_a_file_is_most_like_itself() -> None:
    index = Index([("pointer", features(POINTER_CACHE, "module")), ("thread", features(THREAD, "module"))])
    match = index.top(features(THREAD, "module"))[0]
    assert match.key == "thread"
    assert match.score == pytest.approx(1.0)
