from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.policies.llm.briefing import HOST, scored, task
from tests.engine.policies.llm.kernels import KERNEL, MODULE

from workbench_engine.llm.settings import PatchWeights
from workbench_engine.llm.shortening import shortened, unmarked
from workbench_engine.policies.contract import Context, Remark
from workbench_engine.policies.llm.hardware import hardware_facts, read_caches, vector_extensions
from workbench_engine.policies.llm.planning import Plan, plan
from workbench_engine.policies.llm.prompting import Prompts, TemplateProblem, shown_source, text_of

FULL, DIFF, CROSS = PatchWeights(full=1, diff=0, cross=0), PatchWeights(0, 1, 0), PatchWeights(0, 0, 1)
SLOW, FAST = scored("c1", KERNEL, 0.8), scored("c2", KERNEL.replace("2.0f", "7.0f"), 1.9)
OTHER = scored("c3", KERNEL.replace("2.0f", "9.0f"), 1.4)
CONTEXT = Context("t", 1, 0, parents=(OTHER,), exemplars=(SLOW, FAST))


def rendered(planned: Plan, context: Context = CONTEXT, folder: str = "", kind: str = "kernel") -> str:
    prompts = Prompts(task(), "cpu", kind, ("Processor: fast",), folder)  # type: ignore[arg-type]
    return text_of(prompts.messages(planned, context, 2))


def test_a_contrastive_prompt_holds_what_it_must() -> None:
    context = Context(
        "t",
        1,
        0,
        exemplars=(SLOW, FAST),
        steering="Use AVX-512.",
        failures=(scored("c4", KERNEL, None, feedback="wrong on zeros", failed="verify"),),
        remarks=(Remark("c2", True, "tidy"), Remark("c5", False, "unreadable")),
    )
    text = rendered(plan(context, "kernel", FULL, random.Random(0)), context)
    for part in (
        "class Model(nn.Module)",
        'extern "C" void kernel_run',
        "`in[0]`: `x`, float32 [4, 8]",
        "`in[1]`: `weight`, float32 [8] (a weight)",
        "`out[0]`: `output`",
        "`dim[1]`: `cols`",
        "Processor: fast",
        "Implementation A: speedup 0.80",
        "Implementation B: speedup 1.90, accepted by a person",
        "was wrong: wrong on zeros",
        "rejected c5: unreadable",
        "Use AVX-512.",
        "## Performance analysis",
        "## Algorithm design",
        "## Code",
    ):
        assert part in text
    assert text.index("speedup 0.80") < text.index("speedup 1.90") < text.index("Use AVX-512.")
    assert "<!--" not in text and "{{" not in text
    assert "\n\n\n" not in text.split("# Machine")[1]


def test_hidden_shapes_are_not_shown() -> None:
    text = rendered(Plan("full"))
    assert "HIDDEN" not in text and "129" not in text and "def cost" not in text
    assert shown_source("x = (") == "x = ("


def test_what_never_changes_comes_first() -> None:
    one, other = rendered(Plan("full")), rendered(plan(CONTEXT, "kernel", FULL, random.Random(0)))
    shared = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert "Hyper-parameters of the model stay" in one[:shared]


def test_changes_are_asked_of_the_fastest_and_a_cross_of_two() -> None:
    changes = plan(CONTEXT, "kernel", DIFF, random.Random(0))
    assert (changes.patch, changes.parents) == ("diff", ("c2",))
    text = rendered(changes)
    assert text.count("7.0f") == 1 and "speedup 0.80" in text and "<<<<<<< SEARCH" in text
    cross = plan(CONTEXT, "kernel", CROSS, random.Random(0))
    assert (cross.patch, cross.parents) == ("cross", ("c2", "c1"))
    text = rendered(cross)
    assert text.count("7.0f") == 1 and text.count("2.0f") == 1
    assert [s.candidate for s in cross.shown] == ["c1", "c2"]


def test_frozen_regions_are_asked_for() -> None:
    frozen = scored(
        "c9", KERNEL.replace("#include", "// frozen: begin\n#include").replace("h>", "h>\n// frozen: end"), 2.0
    )
    context = Context("t", 1, 0, exemplars=(frozen,))
    assert "frozen markers" in rendered(plan(context, "kernel", DIFF, random.Random(0)), context)
    assert "frozen markers" not in rendered(plan(CONTEXT, "kernel", DIFF, random.Random(0)))


def test_while_nothing_is_correct_broken_ones_are_mended_or_all_starts_afresh() -> None:
    broken = scored("c1", KERNEL, None, feedback="error: expected ;", failed="build")
    context = Context("t", 1, 0, parents=(broken,))
    plans = [plan(context, "kernel", FULL, random.Random(i)) for i in range(40)]
    assert {p.patch for p in plans} == {"full", "repair"}
    repair = next(p for p in plans if p.patch == "repair")
    text = rendered(repair, context)
    assert "does not build" in text and "error: expected ;" in text and "2.0f" in text


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from([SLOW, FAST, OTHER, scored("m", MODULE, 1.2), scored("w", KERNEL, None)]), max_size=4),
    st.lists(st.sampled_from([SLOW, FAST, OTHER, scored("m", MODULE, 1.2), scored("w", KERNEL, None)]), max_size=2),
    st.integers(0, 50),
    st.sampled_from(["kernel", "module"]),
)
def test_every_context_has_a_plan_that_renders(exemplars: list, parents: list, seed: int, kind: str) -> None:  # type: ignore[type-arg]
    context = Context("t", 1, 0, tuple(parents), tuple(exemplars))
    planned = plan(context, kind, PatchWeights(), random.Random(seed))  # type: ignore[arg-type]
    if planned.base is not None and planned.patch != "repair":
        assert ("class ModelNew" in planned.base.text) == (kind == "module")
    assert "## Code" in rendered(planned, context, kind=kind)


def test_exemplars_go_before_the_task_when_a_prompt_is_too_long() -> None:
    prompts = Prompts(task(), "cpu", "kernel", ())
    messages = prompts.messages(plan(CONTEXT, "kernel", FULL, random.Random(0)), CONTEXT, 2)
    once = shortened(messages)
    assert once is not None
    text = text_of(once)
    # The slow one goes before the fast one.
    assert "speedup 0.80" not in text and "speedup 1.90" in text and "class Model" in text


def test_a_person_may_replace_a_template(tmp_path: Path) -> None:
    (tmp_path / "system.j2").write_text("Be terse about {{ task.name }}.")
    text = rendered(Plan("full"), folder=str(tmp_path))
    assert text.startswith("[system]\nBe terse about made_up.") and "# Restrictions" in text


@pytest.mark.parametrize(
    ("body", "said"),
    [("{% if %}", "line 1"), ("{{ nothing }}", "'nothing' is undefined"), ("{% include 'absent.j2' %}", "absent.j2")],
)
def test_a_bad_template_is_one_line_with_its_name(tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "system.j2").write_text(body)
    with pytest.raises(TemplateProblem) as caught:
        rendered(Plan("full"), folder=str(tmp_path))
    assert said in str(caught.value) and "template" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(TemplateProblem, match="is no folder"):
        rendered(Plan("full"), folder=str(tmp_path / "absent"))


def test_facts_of_the_machine_name_no_host() -> None:
    facts = hardware_facts(HOST, "flags\t: fpu avx2 fma avx512f\nflags\t: other\n", {"L1": "48K"})
    text = "\n".join(facts)
    assert "A processor, 2 cores" in text and "avx2, fma, avx512f" in text and "L1 48K" in text
    assert HOST.hostname not in text
    assert vector_extensions("") == ()


def test_caches_are_read_where_the_system_tells_them(tmp_path: Path) -> None:
    for i, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M")]
    ):
        folder = tmp_path / f"index{i}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    assert read_caches(tmp_path) == {"L1": "48K", "L2": "2M"}
    assert read_caches(tmp_path / "absent") == {}


def test_marks_are_kept_until_something_is_sent() -> None:
    prompts = Prompts(task(), "cpu", "kernel", ())
    messages = prompts.messages(plan(CONTEXT, "kernel", FULL, random.Random(0)), CONTEXT, 2)
    assert "<!-- optional" in messages[1].content
    assert "<!-- optional" not in unmarked(messages)[1].content
