import subprocess
import sys

import pytest

from workbench_engine.policies.person import edited
from workbench_engine.policies.registry import POLICY_NAMES, make_policy
from workbench_engine.tasks.design import DesignSpace, Dimension, Kernel


def space() -> DesignSpace:
    dims = (Dimension("a", "loops", (1, 2, 3), ""), Dimension("b", "math", ("x", "y"), ""))
    return DesignSpace("t", dims, lambda v: Kernel(f"// {v['a']} {v['b']}", ("-O3",)), {"a": 1, "b": "x"})


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_listed_policy_is_made_and_knows_its_name(name: str) -> None:
    assert make_policy(name, space(), 0).name == name


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'design-space'"):
        make_policy("design_space", space(), 0)
    with pytest.raises(ValueError, match="known: design-space, best-of-n, random"):
        make_policy("qqqq", space(), 0)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_without_a_space_the_remedy_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="choose a bundled task"):
        make_policy(name, None, 0)


def test_the_random_baseline_does_not_cost_an_import_of_torch() -> None:
    code = (
        "import sys; from workbench_engine.policies.registry import make_policy; "
        "from workbench_engine.tasks.design import *; "
        "make_policy('random', DesignSpace('t', (Dimension('a', 'loops', (1, 2), ''),), None, {'a': 1}), 0); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_edit_is_a_proposal_of_a_person() -> None:
    proposal = edited("kernel", "// flags: -O3\nint x;", person="ada", note="try")
    assert (proposal.origin.policy, proposal.origin.person, proposal.point, proposal.sample) == (
        "person",
        "ada",
        None,
        None,
    )
    with pytest.raises(ValueError, match="empty"):
        edited("module", " \n")
