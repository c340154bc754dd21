"""The models of torch_census.py: random weights, small configurations. MODELS maps a name to a function that returns a module and
make(variant), which makes its arguments at three sizes (0, 1, 2), by position (tuple) or name (dict)."""

import torch
from torch import nn

MODELS = {}

# Images of (batch, size).


def images(size):
    return lambda variant: (torch.randn((2, 3, 5)[variant], 3, size, size),)


def pixels(size):
    return lambda variant: {"pixel_values": torch.randn((2, 3, 5)[variant], 3, size, size)}


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


for name, size in {
    "alexnet": 224, "vgg11": 64, "resnet18": 224, "resnet50": 64, "resnext50_32x4d": 64, "squeezenet1_1": 128,
    "densenet121": 64, "googlenet": 128, "inception_v3": 160, "mobilenet_v2": 64, "mobilenet_v3_large": 64,
    "shufflenet_v2_x1_0": 64, "mnasnet1_0": 64, "efficientnet_b0": 64, "regnet_y_400mf": 64, "convnext_tiny": 64,
    "deeplabv3_mobilenet_v3_large": 128, "lraspp_mobilenet_v3_large": 128,
}.items():  # fmt: skip
    torchvision_model(name, size)


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


TWO = {"depth": 2}
for name, size, options in [
    ("vit_tiny_patch16_224", 224, TWO), ("deit_tiny_distilled_patch16_224", 224, TWO), ("beit_base_patch16_224", 224, TWO),
    ("eva02_tiny_patch14_224", 224, TWO), ("vit_small_patch14_dinov2", 112, {"depth": 2, "img_size": 112}),
    ("cait_xxs24_224", 224, TWO), ("xcit_nano_12_p16_224", 224, TWO), ("mixer_s16_224", 224, {"first_blocks": 2}),
    ("gmlp_ti16_224", 224, {"first_blocks": 2}), ("convnextv2_atto", 64, {}), ("convmixer_768_32", 64, TWO),
    ("swin_tiny_patch4_window7_224", 224, {"depths": (2, 2), "num_heads": (3, 6)}), ("pvt_v2_b0", 64, {}),
    ("twins_pcpvt_small", 224, {"depths": (1, 1, 1, 1)}), ("levit_128s", 224, {}), ("mobilevit_xxs", 128, {}),
    ("efficientformer_l1", 224, {}), ("edgenext_xx_small", 128, {}), ("maxvit_rmlp_pico_rw_256", 256, {"embed_dim": (32, 64), "depths": (1, 1)}),
    ("pit_ti_224", 224, {}), ("volo_d1_224", 224, {}), ("poolformer_s12", 64, {}), ("ghostnet_100", 64, {}),
    ("tf_efficientnet_b0", 64, {}), ("mobilenetv4_conv_small", 64, {}), ("dm_nfnet_f0", 64, {}), ("repvgg_a0", 64, {}),
    ("res2net50_14w_8s", 64, {}), ("resnest14d", 64, {}), ("botnet26t_256", 256, {}), ("halonet26t", 256, {}), ("fastvit_t8", 64, {}),
    ("focalnet_tiny_srf", 64, {}),
]:  # fmt: skip
    timm_model(name, size, options)

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
    return {"input_values": torch.randn((1, 2, 3)[variant], (2000, 2400, 2800)[variant])}


def transformers_model(name, config, model, make, **options):
    def build():
        import transformers
        return getattr(transformers, model)(getattr(transformers, config)(**options)), make

    MODELS[f"transformers/{name}"] = build


def encoder(name, prefix, mask=True, **options):
    transformers_model(name, f"{prefix}Config", f"{prefix}ForMaskedLM", text(mask), **options)


def decoder(name, prefix, **options):
    transformers_model(name, f"{prefix}Config", f"{prefix}ForCausalLM", text(use_cache=False), **options)


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

encoder("bert", "Bert", **BASE)
encoder("roberta", "Roberta", **BASE)
encoder("electra", "Electra", **BASE, embedding_size=64)
encoder("albert", "Albert", **BASE, embedding_size=64)
encoder("convbert", "ConvBert", **BASE, embedding_size=64)
encoder("modernbert", "ModernBert", **BASE, pad_token_id=0)
encoder("mobilebert", "MobileBert", vocab_size=99, num_hidden_layers=2)
encoder("fnet", "FNet", False, **BASE)
encoder("deberta-v2", "DebertaV2", relative_attention=True, position_buckets=32, norm_rel_ebd="layer_norm", share_att_key=True,
        pos_att_type=["p2c", "c2p"], **BASE)  # fmt: skip
encoder("distilbert", "DistilBert", vocab_size=99, dim=64, n_layers=2, n_heads=4, hidden_dim=128)
for name, prefix in [("llama", "Llama"), ("mistral", "Mistral"), ("qwen2", "Qwen2"), ("phi", "Phi"), ("phi3", "Phi3"),
                     ("stablelm", "StableLm"), ("cohere", "Cohere"), ("olmo2", "Olmo2"), ("granite", "Granite"),
                     ("starcoder2", "Starcoder2")]:  # fmt: skip
    decoder(name, prefix, **LLAMA)
for name, prefix in [("gemma", "Gemma"), ("gemma2", "Gemma2"), ("qwen3", "Qwen3")]:
    decoder(name, prefix, **LLAMA, head_dim=16)
decoder("mixtral", "Mixtral", num_local_experts=4, **LLAMA)
transformers_model("gpt2", "GPT2Config", "GPT2LMHeadModel", text(use_cache=False), **SHORT)
decoder("gptj", "GPTJ", **SHORT, rotary_dim=8)
decoder("gpt-neox", "GPTNeoX", **BASE)
decoder("opt", "OPT", vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
        word_embed_proj_dim=64, max_position_embeddings=128)  # fmt: skip
decoder("bloom", "Bloom", vocab_size=99, hidden_size=64, n_layer=2, n_head=4)
decoder("falcon", "Falcon", vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
decoder("mamba", "Mamba", vocab_size=99, hidden_size=64, num_hidden_layers=2, state_size=8)
for name, prefix in [("bart", "Bart"), ("mbart", "MBart"), ("pegasus", "Pegasus"), ("m2m100", "M2M100")]:
    transformers_model(name, f"{prefix}Config", f"{prefix}ForConditionalGeneration", to_text, **BART, max_position_embeddings=128)
for name, prefix in [("t5", "T5"), ("mt5", "MT5")]:
    transformers_model(name, f"{prefix}Config", f"{prefix}ForConditionalGeneration", to_text, **T5)
transformers_model("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC", sound, **SOUND)
transformers_model("hubert", "HubertConfig", "HubertForCTC", sound, **SOUND)
for name, prefix, size, options in [
    ("vit", "ViT", 64, {"image_size": 64, "patch_size": 8, **VIT}), ("deit", "DeiT", 64, {"image_size": 64, "patch_size": 8, **VIT}),
    ("beit", "Beit", 64, {"image_size": 64, "patch_size": 8, "use_relative_position_bias": True, **VIT}),
    ("swin", "Swin", 64, {"image_size": 64, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}),
    ("convnext", "ConvNext", 64, {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2}), ("mobilevit", "MobileViT", 64, {"image_size": 64}),
]:  # fmt: skip
    transformers_model(name, f"{prefix}Config", f"{prefix}ForImageClassification", pixels(size), **options)
transformers_model("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", pixels(64), depths=[1, 1, 1, 1],
                   hidden_sizes=[16, 32, 32, 64], decoder_hidden_size=32)  # fmt: skip


class Unet(nn.Module):
    """Two levels down and up, with a skip connection each."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([self.block(3, 16), self.block(16, 32)])
        self.middle = self.block(32, 32)
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)])
        self.join = nn.ModuleList([self.block(64, 32), self.block(32, 16)])
        self.last = nn.Conv2d(16, 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.inner = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.inner(x)


MODELS["nn/unet"] = lambda: (Unet(), images(32))
MODELS["nn/lstm"] = lambda: (Recurrent(), lambda variant: (torch.randn((2, 3, 5)[variant], 7, 16),))
MODELS["nn/encoder"] = lambda: (Encoder(), lambda variant: (torch.randn((2, 3, 5)[variant], 10, 32),))
MODELS["nn/mlp"] = lambda: (nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)),
                            lambda variant: (torch.randn((4, 7, 9)[variant], 32),))  # fmt: skip

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
