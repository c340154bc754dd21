"""Recurrent layers (nn.LSTM, nn.GRU, nn.RNN) where Dynamo captures them (torch._dynamo.config.allow_rnn): scans over the sequence.

torch's own decomposition makes as many operations as there are steps, and has none for gradients of what oneDNN runs.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensor = torch.Tensor
linear = torch.nn.functional.linear

#: From what the input gives to a step, the states, and the weights of the states: the next states, whose first is the result.
Step = Callable[..., tuple[Tensor, ...]]


def _lstm_step(given: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Any, projection: Any) -> tuple[Tensor, ...]:
    hidden, cell = states
    i, f, g, o = (given + linear(hidden, weight, bias)).chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    hidden = o.sigmoid() * cell.tanh()
    return hidden if projection is None else linear(hidden, projection), cell


def _gru_step(given: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Any, projection: Any) -> tuple[Tensor, ...]:
    r, z, n = given.chunk(3, -1)
    hidden_r, hidden_z, hidden_n = linear(states[0], weight, bias).chunk(3, -1)
    n = (n + (r + hidden_r).sigmoid() * hidden_n).tanh()
    return (n + (z + hidden_z).sigmoid() * (states[0] - n),)


def _plain_step(function: Callable[[Tensor], Tensor]) -> Step:
    def step(given: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Any, projection: Any) -> tuple[Tensor, ...]:
        return (function(given + linear(states[0], weight, bias)),)

    return step


def _direction(x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], has_biases: bool, step: Step, reverse: bool) -> Any:
    """One layer in one direction: the results of all steps, and the last states."""
    of_input, of_state = weights[:2]
    input_bias, state_bias = weights[2:4] if has_biases else (None, None)
    projection = weights[-1] if len(weights) % 2 else None
    rest = [of_state, *(each for each in (state_bias, projection) if each is not None)]
    count = len(states)

    def trip(*values: Tensor) -> list[Tensor]:
        weight, *more = values[count + 1:]
        bias = more[0] if has_biases else None
        after = step(values[count], values[:count], weight, bias, None if projection is None else more[-1])
        return [*after, after[0].clone()]

    given = linear(x, of_input, input_bias)
    scanned = given.flip(0) if reverse else given
    *last, results = torch.ops.higher_order.scan(trip, [each.contiguous() for each in states], [scanned], rest)
    return results.flip(0) if reverse else results, last


def _layers(
    step: Step, x: Tensor, hx: Any, weights: Sequence[Tensor], has_biases: bool, layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """As torch._VF.lstm and its like are called."""
    given = hx if isinstance(hx, (tuple, list)) else (hx,)
    directions = 2 if bidirectional else 1
    group = len(weights) // (layers * directions)
    x = x.transpose(0, 1) if batch_first else x
    last: list[list[Tensor]] = []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            number = layer * directions + direction
            own = weights[number * group:(number + 1) * group]
            made, states = _direction(x, [each[number] for each in given], own, has_biases, step, direction == 1)
            results.append(made)
            last.append(states)
        x = torch.cat(results, -1) if bidirectional else results[0]
        if dropout and train and layer + 1 < layers:
            x = torch.dropout(x, dropout, True)
    return (x.transpose(0, 1) if batch_first else x, *(torch.stack(states) for states in zip(*last)))


_STEPS: dict[Any, Step] = {
    torch._VF.lstm: _lstm_step, torch._VF.gru: _gru_step, torch._VF.rnn_tanh: _plain_step(torch.tanh),
    torch._VF.rnn_relu: _plain_step(torch.relu),
}  # fmt: skip


def keep_loops(module: torch.fx.GraphModule) -> None:
    """Makes recurrent layers of Dynamo's graph scans. Those of packed sequences, which have no flag for biases there, stay torch's."""
    layers = [node for node in module.graph.nodes if node.op == "call_function" and node.target in _STEPS and isinstance(node.args[3], bool)]
    for node in layers:
        layer = functools.partial(_layers, _STEPS[node.target])
        layer.__name__ = "recurrent_layers"  # type: ignore[attr-defined]
        node.target = layer
    if layers:
        module.recompile()
