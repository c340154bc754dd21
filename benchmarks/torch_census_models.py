"""The models of torch_census.py: random weights, small configurations. MODELS is as torch_census_kinds.py says."""

import torch

import torch_census_functions  # noqa: F401
import torch_census_networks  # noqa: F401
import torch_census_science  # noqa: F401
import torch_census_sight  # noqa: F401
import torch_census_sound  # noqa: F401
import torch_census_text  # noqa: F401
import torch_census_vision  # noqa: F401
from torch_census_kinds import MODELS

# As their users have them, for a GPU: batches of 32 images, of 128 tokens, or 16 of 512.


def large_images(name):
    def build():
        import torchvision
        return torchvision.models.get_model(name, weights=None), lambda variant: (torch.randn((32, 48, 64)[variant], 3, 224, 224),)

    MODELS[f"large/{name}"] = build


def large_text(name, config, model, size, **options):
    def build():
        import transformers
        made = getattr(transformers, config)(**options)
        batch, length = size
        return (getattr(transformers, model)(made),
                lambda variant: {"input_ids": torch.randint(3, 999, (batch + 8 * variant, length)), **use_cache})  # fmt: skip

    use_cache = {"use_cache": False} if "Causal" in model or "LMHead" in model else {}
    MODELS[f"large/{name}"] = build


for name in ("resnet50", "mobilenet_v3_large", "vit_b_16"):
    large_images(name)
large_text("bert", "BertConfig", "BertModel", (32, 128))
large_text("gpt2", "GPT2Config", "GPT2LMHeadModel", (16, 512))
