"""Networks of many families with random weights, as torch's exporter writes them: what cuda_breadth.py and cpu_breadth.py
compare. Nothing is downloaded. Needs torch, onnx and onnxscript, and the packages that the table names."""
import collections
import importlib
import os

import torch

import families_of_images
import families_of_others
import families_of_sequences
from network_options import OPTIONS

Network = collections.namedtuple("Network", "family package call dims")  # dims: of one input; of rank 1: token ids

NETWORKS = {
    name: Network(family, *row)
    for families in (families_of_images.FAMILIES, families_of_sequences.FAMILIES, families_of_others.FAMILIES)
    for family, rows in families.items()
    for name, row in rows.items()
}


def images():
    """The networks that take images of three channels."""
    return [name for name, network in NETWORKS.items() if len(network.dims) == 3]


class OneOutput(torch.nn.Module):
    """The first output of a module of the package transformers: of token ids, or of a signal."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        name = type(self.network).__name__
        if name in ("BartModel", "MarianModel"):
            return self.network(input_ids=x, decoder_input_ids=x, use_cache=False).last_hidden_state
        is_signal = x.dim() == 3 and x.shape[1] == 1
        return self.network(x[:, 0] if is_signal else x, return_dict=False)[0]


class Segmentation(torch.nn.Module):
    """The result of such a network of torchvision that is its answer."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)["out"]


def build(network):
    options = OPTIONS.get(network.call, {})
    package = importlib.import_module(network.package)
    if network.package.endswith("_networks"):
        return getattr(package, network.call)()
    if network.package == "timm":
        return package.create_model(network.call, pretrained=False)
    if network.package == "transformers":
        made = getattr(package.models.whisper.modeling_whisper, network.call) if network.call == "WhisperEncoder" \
            else getattr(package, network.call)
        return OneOutput(made(made.config_class(**options)))
    made = getattr(package, network.call)(weights=None, **options)
    return Segmentation(made) if network.package == "torchvision.models.segmentation" else made


def make(name):
    """The network with random weights, in mode eval, and the dims of its input without the batch."""
    torch.manual_seed(0)
    network = build(NETWORKS[name])
    settle_norms(network)
    fill_heads(network)
    return network.eval(), NETWORKS[name].dims


def settle_norms(network):
    """Random statistics: those of a new network, 0 and 1, would let a folded norm vanish unnoticed."""
    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            torch.nn.init.normal_(module.running_mean, std=0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)


def fill_heads(network):
    """Some heads start at zero: all that comes ahead of them would be computed and thrown away."""
    for parameter in network.parameters():
        if parameter.dim() > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)


def draw(dims, batch):
    return torch.randint(0, 100, (batch, *dims)) if len(dims) == 1 else torch.randn(batch, *dims)


def export(network, dims, batch, folder, name="model"):
    path = os.path.join(folder, f"{name}.onnx")
    torch.onnx.export(network, (draw(dims, batch),), path, input_names=["x"], dynamo=True, verbose=False)
    return path
