"""Which values of a graph show parts of others, and which results are made again of how they lie in memory."""

import operator
from collections.abc import Container
from typing import Any

import torch
from torch._functorch._aot_autograd.schemas import OutputType
from torch.fx import GraphModule, Node

#: Results that AOTAutograd makes again as views of an input or of another result.
REMADE = {
    OutputType.alias_of_input,
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_save_as_output,
    OutputType.alias_of_intermediate_base_is_user_output,
}


def shown_by(node: Node) -> Node | None:
    """What the node is a view of at once: an operation's first argument, or what gives one of several views."""
    source = node.args[0] if node.op == "call_function" and node.args else None
    if not isinstance(source, Node):
        return None
    if node.target is operator.getitem:
        return source if shown_by(source) is not None else None
    return source if isinstance(node.target, torch._ops.OpOverload) and node.target.is_view else None


def view_chain(node: Node, ends: Container[Node]) -> list[Node]:
    """The operations that make the node as a view of one of `ends`, the last first; none where it is not one."""
    chain = []
    while node not in ends:
        source = shown_by(node)
        if source is None:
            return []
        chain.append(node)
        node = source
    return chain


def root_of(node: Node) -> Node:
    """What the node is a view of, itself where it is none."""
    while (source := shown_by(node)) is not None:
        node = source
    return node


def is_remade(node: Any) -> bool:
    """A result whose strides and place in memory AOTAutograd takes for those in what it shows."""
    return isinstance(node, Node) and bool(node.meta.get("remade"))


def mark_remade(module: GraphModule) -> None:
    """Marks such results of a graph that is no backward one. With sizes that are known it repeats the views instead."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return
    outputs = next(node for node in module.graph.nodes if node.op == "output").args[0]
    for told, node in zip(metadata.output_info, outputs[metadata.num_mutated_inp_runtime_indices :]):
        value = node.meta.get("val") if isinstance(node, Node) else None
        if told.output_type in REMADE and isinstance(value, torch.Tensor):
            numbers = (*value.shape, *value.stride(), value.storage_offset())
            node.meta["remade"] = any(isinstance(number, torch.SymInt) for number in numbers)
