"""A graph in parts: some are programs of Sylvite, the others are run by torch."""

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .torch_graph import Text, Writer, computes, data_symbols, device_of, is_size, is_write, leaves_device, symbols_of
from .torch_rewrites import Borders, open_borders, outputs_of, with_borders
from .torch_runs import run_by_torch
from .torch_sizes import Unwritable, is_of_data
from .torch_views import is_remade, root_of, view_chain

MakeProgram = Callable[[GraphModule, Text], Callable[[list[Any]], Any]]
Refusals = Callable[[Text], list[tuple[str, str, str]]]


def levels(nodes: Sequence[Node], refused: set[Node]) -> dict[Node, int]:
    """The part of each node that computes: even ones are Sylvite's, odd ones are run by torch.

    A node's part is the first of its kind that is not before those of the nodes that it reads. So parts are few, and each
    needs only what earlier ones made.
    """
    level: dict[Node, int] = {}
    for node in nodes:
        if not (computes(node) or is_size(node)):
            continue
        least = max((level[used] for used in node.all_input_nodes if used in level), default=0)
        if node.target is operator.getitem and node.args[0] in level:
            level[node] = level[node.args[0]]
        elif is_size(node):
            level[node] = least  # computed again by whoever reads it
        else:
            level[node] = least + (least % 2 != (node in refused))
    for node in reversed(nodes):
        if level.get(node) == 0 and not any(used.op == "placeholder" or used in level for used in node.all_input_nodes):
            level[node] = _first_reader(node, level)
    return level


def _first_reader(node: Node, level: dict[Node, int]) -> int:
    """The part of Sylvite's that reads, or is before what reads, a value that needs nothing: no other has to hand it on."""
    first = min((level[user] for user in node.users if user in level), default=0)
    return first - first % 2


def _tellers(nodes: Sequence[Node], level: dict[Node, int]) -> dict[str, list[tuple[int, Node]]]:
    """For each size of data the values that leave their parts and tell it, with those parts, the earliest first."""
    found: dict[str, list[tuple[int, Node]]] = {}
    for node in nodes:
        if computes(node) and any(level.get(user) != level[node] for user in node.users):
            for name, *_ in symbols_of([node]):
                found.setdefault(name, []).append((level[node], node))
    return {name: sorted(telling, key=lambda each: each[0]) for name, telling in found.items() if is_of_data(name)}


def spread(refused: set[Node]) -> set[Node]:
    """With the items of refused tuples."""
    found = set(refused)
    todo = list(refused)
    while todo:
        node = todo.pop()
        near = [node.args[0]] if node.target is operator.getitem else []
        near += [user for user in node.users if user.target is operator.getitem and user.args[0] is node]
        for other in near:
            if computes(other) and other not in found:
                found.add(other)
                todo.append(other)
    return found


def copy_part(module: GraphModule, nodes: Sequence[Node], outputs: Sequence[Any]) -> tuple[GraphModule, list[Node]]:
    """A module of these nodes, which also computes the sizes and holds the attributes that they need, and the nodes outside
    that are its inputs."""
    graph = Graph()
    inside = set(nodes)
    inputs = _outside(nodes, outputs, inside)
    copies: dict[Node, Node] = {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)

    def copy(node: Node) -> Node:
        if node not in copies:
            copies[node] = graph.node_copy(node, copy)
        return copies[node]

    for node in nodes:
        copy(node)
    graph.output(torch.fx.map_arg(list(outputs), copy))
    return GraphModule(module, graph), inputs


def _outside(nodes: Sequence[Node], outputs: Sequence[Any], inside: set[Node]) -> list[Node]:
    """What the part reads, through sizes, of what is neither in it nor copied into it."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    todo = [*nodes, *(output for output in outputs if isinstance(output, Node))]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in inside or is_size(node):
            todo.extend(node.all_input_nodes)
        elif node.op != "get_attr":
            found[node] = None
    return sorted(found, key=lambda node: node._sort_key)


@dataclasses.dataclass
class Part:
    """A part that becomes a program."""

    text: Text
    module: GraphModule
    borders: Borders
    inputs: list[Node]  #: of the whole graph
    results: list[Node]


class SplitGraph:
    """Runs parts in order. Each is (function of one list, numbers of the values that it takes, and of those that it gives, and
    of those that nobody reads any more)."""

    _boxed_call = True

    def __init__(self, inputs: int, values: int) -> None:
        self.inputs = inputs
        self.values = values
        self.steps: list[tuple[Callable[[list[Any]], Any], list[int], list[int], list[int]]] = []
        self.torch_parts = 0
        self.refused: list[tuple[str, str, str]] = []

    def __call__(self, given: list[Any]) -> Any:
        values = [*given, *([None] * (self.values - self.inputs))]
        given.clear()
        for run, takes, gives, dies in self.steps:
            taken = [values[i] for i in takes]
            for i in dies:
                values[i] = None
            results = run(taken)
            if not gives:
                continue
            for i, result in zip(gives, results):
                values[i] = result
        return results


class Splitter:
    def __init__(self, module: GraphModule, parameters: set[Node], find_refusals: Refusals, make_program: MakeProgram) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.device = device_of(self.nodes)
        self.parameters = parameters
        self.find_refusals = find_refusals
        self.make_program = make_program
        self.why: dict[Node, str] = {}
        self.tellers: dict[str, list[tuple[int, Node]]] = {}
        self.last_step = self._last_step()

    def split(self, refused: set[Node]) -> SplitGraph:
        refused = spread(refused)
        while True:
            level = levels(self.nodes, refused)
            self.tellers = _tellers(self.nodes, level)
            parts = self._parts(level)
            more = self._more_refused(parts)
            if not more - refused:
                return self._assemble(parts)
            refused = spread(refused | more)

    def _parts(self, level: dict[Node, int]) -> list[tuple[int, list[Node]]]:
        by_level: dict[int, list[Node]] = {}
        for node in self.nodes:
            if computes(node):
                by_level.setdefault(level[node], []).append(node)
        # Those of torch may be there for an effect.
        return sorted((level, part) for level, part in by_level.items() if level % 2 or self._results(part))

    def _results(self, part: list[Node]) -> list[Node]:
        """What is read outside, or by the last step, which makes views again; sizes are computed there."""
        inside, last = set(part), set(self.last_step[1])
        return [node for node in part if node in last or any(user not in inside for user in node.users)]

    def _text(self, level: int, part: list[Node]) -> "Part":
        results = [node for node in self._results(part) if isinstance(node.meta.get("val"), torch.Tensor)]
        copy, inputs = copy_part(self.module, part, results)
        # Numbers that the part's types speak of, and that none of its inputs tells.
        told = {name for name, *_ in symbols_of(inputs)}
        speaking = {symbol for node in (*part, *inputs) for symbol in data_symbols(node)}
        telling = [node for symbol in sorted(speaking - told) for found, node in self.tellers.get(symbol, [])[:1] if found < level]
        for size in [*(n for n in self.nodes if n.op == "placeholder" and isinstance(n.meta.get("val"), torch.SymInt)), *telling]:
            if size not in inputs:
                inputs.append(size)
        _with_inputs(copy, inputs)
        borders = open_borders(copy)
        nodes = list(copy.graph.nodes)
        given = [node for node in nodes if node.op == "placeholder"]
        parameters = {inside for inside, node in zip(given, inputs) if node in self.parameters}
        text = Writer(given, nodes, outputs_of(copy), self.device).write(parameters, copy)
        return Part(text, copy, borders, inputs, results)

    def _more_refused(self, parts: list[tuple[int, list[Node]]]) -> set[Node]:
        more: set[Node] = set()
        by_name = {node.name: node for node in self.nodes}
        for level, part in parts:
            if level % 2:
                continue
            if all(_is_view(node) for node in part):
                more.update(part)  # not worth a program
                continue
            leaving = [node for node in self._results(part) if leaves_device(node.meta.get("val"), self.device)]
            if leaving:
                more.update(leaving)
                self.why.update({node: "a result in the CPU's memory" for node in leaving})
                continue
            numbers = [node for node in self._results(part) if isinstance(node.meta.get("val"), NUMBERS)]
            if numbers:
                more.update(numbers)
                self.why.update({node: "a number that other parts read" for node in numbers})
                continue
            try:
                text = self._text(level, part).text
            except Unwritable as reason:
                more.update(part)
                self.why.update({node: str(reason) for node in part[:1]})
                continue
            for name, _, reason in self.find_refusals(text):
                if name in by_name:
                    more.add(by_name[name])
                    self.why[by_name[name]] = reason
        return more

    def _assemble(self, parts: list[tuple[int, list[Node]]]) -> SplitGraph:
        inputs = [node for node in self.nodes if node.op == "placeholder"]
        number = {node: i for i, node in enumerate(inputs)}
        steps: list[tuple[Callable[[list[Any]], Any], list[Node], list[Node]]] = []
        torch_parts = 0
        for level, part in parts:
            if level % 2:
                results = self._results(part)
                copy, takes = copy_part(self.module, part, results)
                run: Callable[[list[Any]], Any] = run_by_torch(copy)
                torch_parts += 1
            else:
                made = self._text(level, part)
                takes, results = made.inputs, made.results
                run = with_borders(self.make_program(made.module, made.text), made.borders)
            for node in results:
                number.setdefault(node, len(number))
            steps.append((run, takes, results))
        steps.append(self.last_step)
        whole = SplitGraph(len(inputs), len(number))
        whole.torch_parts = torch_parts
        whole.refused = [(node.name, str(node.target), reason) for node, reason in self.why.items()]
        whole.steps = _with_deaths([(run, [number[n] for n in takes], [number[n] for n in results]) for run, takes, results in steps])
        return whole

    def _last_step(self) -> tuple[Callable[[list[Any]], Any], list[Node], list[Node]]:
        """Writes into inputs, and what the graph returns."""
        writes = [node for node in self.nodes if is_write(node)]
        outputs = next(node for node in self.nodes if node.op == "output").args[0]
        inputs = {node for node in self.nodes if node.op == "placeholder"}
        ends = inputs | {root_of(output) for output in outputs if is_remade(output)}
        views = {node for output in outputs if isinstance(output, Node) for node in view_chain(output, ends)}
        copy, takes = copy_part(self.module, [node for node in self.nodes if node in views] + writes, outputs)
        return run_by_torch(copy), takes, []


#: What programs do not return.
NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _is_view(node: Node) -> bool:
    return node.target is operator.getitem or (isinstance(node.target, torch._ops.OpOverload) and node.target.is_view)


def _with_inputs(module: GraphModule, inputs: Sequence[Node]) -> None:
    """Gives the module as many inputs: those that it does not read come last."""
    graph = module.graph
    present = [node for node in graph.nodes if node.op == "placeholder"]
    anchor = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(anchor):
        for node in inputs[len(present):]:
            graph.placeholder(node.name).meta = dict(node.meta)
    module.recompile()


def _with_deaths(steps: list[tuple[Any, list[int], list[int]]]) -> list[tuple[Any, list[int], list[int], list[int]]]:
    """With the values that no later step takes."""
    made = []
    alive_later: set[int] = set()
    for run, takes, gives in reversed(steps):
        made.append((run, takes, gives, sorted(set(takes) - alive_later)))
        alive_later.update(takes)
    return made[::-1]


def split(
    module: GraphModule, refused: set[Node], parameters: set[Node], find_refusals: Refusals, make_program: MakeProgram
) -> SplitGraph:
    """Parts of the graph such that none of Sylvite's has a node of `refused`, or one that `find_refusals` names."""
    return Splitter(module, parameters, find_refusals, make_program).split(refused)
