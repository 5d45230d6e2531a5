from __future__ import annotations

import pytest
from torch import nn

from postgrad.models.evaluating import evaluating


class Broken(nn.Module):
    """Cannot be asked; remembers in which mode it was."""

    asked_in_training: bool | None = None

    def forward(self) -> None:
        self.asked_in_training = self.training
        raise ArithmeticError


@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_as_it_was_also_after_an_error(training: bool) -> None:
    inner = Broken()
    network = nn.Sequential(inner).train(training)
    with pytest.raises(ArithmeticError), evaluating(network):
        inner()
    assert inner.asked_in_training is False
    assert [network.training, inner.training] == [training, training]
