"""What the models of torch_census.py are made with. MODELS maps a name to a function that returns a module and make(variant), which makes
its arguments at three sizes (0, 1, 2), by position (tuple) or name (dict); make.train, where there is one, makes those of training."""

import torch
from torch import nn

MODELS = {}

#: Batches by variant, and those of what is large.
BATCHES = (2, 3, 5)
FEW = (1, 2, 3)

# Images of (batch, size).


def images(size):
    return lambda variant: (torch.randn(BATCHES[variant], 3, size, size),)


def pixels(size):
    return lambda variant: {"pixel_values": torch.randn(BATCHES[variant], 3, size, size)}


def torchvision_model(name, size):
    def build():
        import torchvision
        options = {"weights": None}
        if name in ("googlenet", "inception_v3"):
            options["init_weights"] = False
        if "deeplab" in name or "lraspp" in name or "fcn" in name:
            options["weights_backbone"] = None
        return torchvision.models.get_model(name, **options), images(size)

    MODELS[f"torchvision/{name}"] = build


def timm_model(name, size, options):
    """Of the option `first_blocks` only so many blocks are kept: some models take no depth."""
    def build():
        import timm
        given = dict(options)
        kept = given.pop("first_blocks", None)
        model = timm.create_model(name, pretrained=False, **given)
        if kept is not None:
            model.blocks = model.blocks[:kept]
        return model, images(size)

    MODELS[f"timm/{name}"] = build


# Text of (batch, length).
SIZES = ((2, 16), (3, 24), (5, 32))


def text(mask=False, **more):
    def make(variant):
        ids = torch.randint(3, 99, SIZES[variant])
        return {"input_ids": ids, **({"attention_mask": torch.ones_like(ids)} if mask else {}), **more}

    return make


def to_text(variant):
    batch, length = SIZES[variant]
    return {"input_ids": torch.randint(3, 99, (batch, length)), "decoder_input_ids": torch.randint(3, 99, (batch, length // 2))}


def sound(variant):
    return {"input_values": torch.randn(FEW[variant], (2000, 2400, 2800)[variant])}


def normal(**sizes):
    """Normal numbers by name, of these sizes behind the batch."""
    return lambda variant: {name: torch.randn(FEW[variant], *size) for name, size in sizes.items()}


def transcribed(**sizes):
    """The same, and the beginning of a text."""
    return lambda variant: {**normal(**sizes)(variant), "decoder_input_ids": torch.randint(3, 99, (FEW[variant], 8))}


def transformers_model(name, config, model, make, **options):
    def build():
        import transformers
        return getattr(transformers, model)(getattr(transformers, config)(**options)), make

    MODELS[f"transformers/{name}"] = build


BASE = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "max_position_embeddings": 128}  # fmt: skip
LLAMA = {**BASE, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SHORT = {"vocab_size": 99, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
VIT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
BART = {"vocab_size": 99, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}  # fmt: skip
T5 = {"vocab_size": 99, "d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16, "d_ff": 128}
SOUND = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 32,
         "conv_dim": (32, 32, 32), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3), "num_conv_pos_embeddings": 16,
         "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3, "apply_spec_augment": False}  # fmt: skip

# Programs by hand.


def program(name, *sizes):
    """Of a module class whose inputs are normal numbers of these sizes behind the batch."""
    def add(build):
        MODELS[f"nn/{name}"] = lambda: (build(), lambda v: tuple(torch.randn(BATCHES[v], *size) for size in sizes))
        return build
    return add


def program_of(name, make):
    def add(build):
        MODELS[f"nn/{name}"] = lambda: (build(), make)
        return build
    return add


def function(name, *sizes):
    """Of a function without parameters, with one scale so that there is a gradient."""
    def add(f):
        class Function(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.tensor(1.1))

            def forward(self, *given):
                return f(given[0] * self.scale, *given[1:])

        MODELS[f"nn/{name}"] = lambda: (Function(), lambda v: tuple(torch.randn(BATCHES[v], *size) for size in sizes))
        return f
    return add
