"""Gradients of what every step of a loop reads a part of."""

import unittest

import torch
from with_torch import Whole


class Parts(Whole):
    def check_joined(self, function, *inputs):
        graphs = self.check_gradients(function, *inputs)
        self.assertFalse([line for graph in graphs for text in graph.texts for line in text.splitlines() if "select_backward" in line])

    def test_steps(self):
        def function(x, w):
            state = torch.zeros(2, 5)
            for i in range(6):
                state = (state * w).tanh() + x[:, i] * x[:, i].sin()
            return state * x[:, 1:].sum(1)

        self.check_joined(function, torch.randn(2, 6, 5), torch.randn(5))

    def test_two_axes_some_left_out(self):
        def function(x):
            total = torch.zeros(3)
            for i in (0, 2, 3, 4):
                for j in (1, 2, 3, -1):
                    total = total + (x[:, i, j] * (i + j)).sin()
            return total

        self.check_joined(function, torch.randn(3, 6, 7))

    def test_in_functions_of_torch(self):
        def loss(x):
            return sum((x[i] * x[i - 1]).cos().sum() for i in range(5))

        with torch.no_grad():
            self.check(lambda x: torch.func.grad(loss)(x) * 2, torch.randn(5, 4))

    def test_few_stay(self):
        self.check_gradients(lambda x: x[0].exp() * x[1], torch.randn(3, 4))


if __name__ == "__main__":
    unittest.main()
