"""Settings of the machine that searches must not notice."""

import pytest
import torch


@pytest.fixture
def set_threads():
    """Sets the number of threads for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
