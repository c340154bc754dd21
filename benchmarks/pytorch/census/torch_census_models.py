"""The models of torch_census.py: random weights, small configurations. MODELS is as torch_census_kinds.py says."""

import torch

import torch_census_functions  # noqa: F401
import torch_census_further  # noqa: F401
import torch_census_learning  # noqa: F401
import torch_census_networks
import torch_census_numeric  # noqa: F401
import torch_census_programs  # noqa: F401
import torch_census_science  # noqa: F401
import torch_census_sequences  # noqa: F401
import torch_census_sight  # noqa: F401
import torch_census_sound  # noqa: F401
import torch_census_text  # noqa: F401
import torch_census_vision  # noqa: F401
from torch_census_kinds import MODELS

# As their users have them, for a GPU: batches of 32 images, of 128 tokens, or 16 of 512; and as they are trained.


def large_images(name, batch=32, suffix=""):
    def build():
        import torchvision
        return torchvision.models.get_model(name, weights=None), lambda variant: (torch.randn(batch + 16 * variant, 3, 224, 224),)

    MODELS[f"large/{name}{suffix}"] = build


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
for name, batch in (("resnet50", 128), ("mobilenet_v3_large", 128), ("efficientnet_b0", 64), ("convnext_tiny", 64), ("vit_b_16", 64),
                    ("resnet18", 128), ("vgg16", 64), ("swin_t", 64), ("densenet121", 64), ("regnet_y_3_2gf", 64)):  # fmt: skip
    large_images(name, batch, "/train")
MODELS["large/unet/train"] = lambda: (torch_census_networks.Unet(64), lambda variant: (torch.randn(16, 3, 256, 256),))
MODELS["large/diffusion-unet/train"] = lambda: (torch_census_networks.Diffusion(128), lambda variant: (
    torch.randn(16, 3, 64, 64), torch.randint(0, 1000, (16,))))  # fmt: skip
large_text("bert", "BertConfig", "BertModel", (32, 128))
large_text("distilbert", "DistilBertConfig", "DistilBertModel", (32, 128))
large_text("gpt2", "GPT2Config", "GPT2LMHeadModel", (16, 512))


def large_conformer():
    import transformers
    config = transformers.Wav2Vec2BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8, intermediate_size=2048,
                                             apply_spec_augment=False)  # fmt: skip
    return transformers.Wav2Vec2BertModel(config), lambda variant: {"input_features": torch.randn(16, 400, 160)}


MODELS["large/conformer"] = large_conformer
