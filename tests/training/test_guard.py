"""The watch keeps the first failure until somebody asks, which on a GPU is some steps later."""

import math

import pytest
import torch

from adaptiveembed.training.guard import Watch, cause_in_size, cause_in_weights, gradient_norm

GOOD = 1.0


def watch_of(*steps):
    watch = Watch(torch.device("cpu"))
    for step, (loss, norm) in enumerate(steps):
        watch.note(step, torch.tensor(loss), torch.tensor(norm))
    return watch


def test_finite_numbers_are_no_failure():
    assert watch_of((GOOD, 3.0), (-2.0, 0.0)).failure() is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_the_first_failure_is_kept_whatever_comes_after_it(wrong):
    failure = watch_of((GOOD, 2.0), (wrong, 5.0), (GOOD, math.nan), (GOOD, 1.0)).failure()
    assert (failure.step, failure.gradient_norm) == (1, 5.0)
    assert str(failure) == f"the loss is {wrong}"


def test_a_gradient_may_fail_alone_and_in_the_first_step():
    failure = watch_of((0.25, math.inf), (math.nan, math.nan)).failure()
    assert (failure.step, failure.loss) == (0, 0.25)
    assert str(failure) == "the loss is 0.25 and the norm of its gradient inf"


def test_the_norm_is_that_of_all_gradients_together():
    weights = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1, 3))]
    weights[0].grad = torch.tensor([1.0, 2.0])
    assert float(gradient_norm(weights)) == pytest.approx(5**0.5)
    weights[1].grad = torch.tensor([[2.0, 4.0, 0.0]])
    assert float(gradient_norm(weights)) == pytest.approx(5)


def test_a_weight_that_is_not_finite_is_named():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    assert cause_in_weights(model) is None
    with torch.no_grad():
        model[1].bias[0] = math.inf
    assert cause_in_weights(model).startswith("the weight 1.bias holds NaN or infinity")


def test_the_largest_weight_is_named_if_it_is_too_large_to_compute_with():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    with torch.no_grad():
        model[0].weight[0, 1] = 9e5
    assert cause_in_size(model) is None
    with torch.no_grad():
        model[1].bias[0] = -1e30
    assert cause_in_size(model).startswith("the weight 1.bias reaches 1e+30, so earlier steps")
