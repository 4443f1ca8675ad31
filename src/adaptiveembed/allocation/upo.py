"""Utility Policy Optimization (Eq. 4): the expected utility of a policy, in closed form."""

from adaptiveembed.shapes import ActionLogits, ActionUtilities, Loss, StateValues


def expected_utility(logits: ActionLogits, utilities: ActionUtilities) -> StateValues:
    """What a policy of these logits can expect at every state.

    An action of logit minus infinity is never taken; its utility is any finite number.
    """
    return (logits.softmax(dim=-1) * utilities).sum(dim=-1)


def upo_loss(logits: ActionLogits, utilities: ActionUtilities) -> Loss:
    """Minus the expected utility, mean over all states of all samples (R11).

    Adding a number to the utilities of all actions of a state, STOP included, changes no gradient.
    """
    return -expected_utility(logits, utilities).mean()
