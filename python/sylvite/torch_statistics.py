"""Running statistics of norms, which torch's kernels write without counting that as a write: what a program takes them for, and what tells that they
have changed."""

import gc
from collections.abc import Sequence

import torch
from torch.fx import Node

aten = torch.ops.aten

#: By operation: where a running mean and variance stand among its arguments.
_NORMS = {
    getattr(aten, name).default: (3, 4)
    for name in ("_native_batch_norm_legit_no_training", "_native_batch_norm_legit", "native_batch_norm", "batch_norm", "cudnn_batch_norm", "miopen_batch_norm")
}
#: What hands them on: norms of single images repeat them.
_HANDS_ON = {aten.repeat.default, aten.expand.default, aten._to_copy.default, aten.alias.default, aten.detach.default, aten.view.default}


def kind_of_parameter(node: Node) -> str:
    """"statistics" where batches are counted beside them; "tensor", whose value is no constant, where other norms read them; else "parameter"."""
    for user in node.users:
        if user.target in _NORMS and any(len(user.args) > place and user.args[place] is node for place in _NORMS[user.target]):
            return "statistics"
        if user.target in _HANDS_ON and kind_of_parameter(user) != "parameter":
            return "tensor"
    return "parameter"


def write_counters(statistics: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """For each its norm's count of batches, whose own writes torch counts: it lies in the same dictionary of buffers."""
    counters: dict[int, torch.Tensor] = {}
    for owner in gc.get_referrers(*statistics):
        count = owner.get("num_batches_tracked") if isinstance(owner, dict) else None
        if isinstance(count, torch.Tensor):
            counters.update((id(value), count) for value in owner.values())
    return [counters.get(id(each)) for each in statistics]
