import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

# So that tests can import the helpers beside them however pytest was started.
sys.path.insert(0, str(Path(__file__).parents[3]))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
