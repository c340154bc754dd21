"""Models of transformers that see: images, videos, and images with text."""

import torch

from torch_census_kinds import BASE, LLAMA, MODELS, VIT, normal, pixels, transformers_model

for name, prefix, size, options in [
    ("vit", "ViT", 64, {
        "image_size": 64,
        "patch_size": 8,
        **VIT
    }),
    ("deit", "DeiT", 64, {
        "image_size": 64,
        "patch_size": 8,
        **VIT
    }),
    ("beit", "Beit", 64, {
        "image_size": 64,
        "patch_size": 8,
        "use_relative_position_bias": True,
        **VIT
    }),
    ("swin", "Swin", 64, {
        "image_size": 64,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [2, 2],
        "num_heads": [2, 2],
        "window_size": 4
    }),
    ("convnext", "ConvNext", 64, {
        "hidden_sizes": [16, 32],
        "depths": [1, 1],
        "num_stages": 2
    }),
    ("mobilevit", "MobileViT", 64, {
        "image_size": 64
    }),
]:  # fmt: skip
    transformers_model(name, f"{prefix}Config", f"{prefix}ForImageClassification", pixels(size), **options)
transformers_model("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", pixels(64), depths=[1, 1, 1, 1],
                   hidden_sizes=[16, 32, 32, 64], decoder_hidden_size=32)  # fmt: skip

SMALLER = {"image_size": 64, "patch_size": 16, **VIT}
for name, prefix, size, options in [
    ("dinov2", "Dinov2", 56, {
        "image_size": 56,
        "patch_size": 14,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4
    }),
    ("data2vec-vision", "Data2VecVision", 64, {
        **SMALLER, "use_relative_position_bias": True
    }),
    ("swinv2", "Swinv2", 64, {
        "image_size": 64,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [2, 2],
        "num_heads": [2, 2],
        "window_size": 4
    }),
    ("poolformer", "PoolFormer", 64, {
        "depths": [1, 1, 1, 1],
        "hidden_sizes": [16, 16, 32, 32]
    }),
    ("levit", "Levit", 64, {
        "image_size": 64,
        "hidden_sizes": [16, 32, 48],
        "num_attention_heads": [2, 2, 2],
        "depths": [1, 1, 1],
        "key_dim": [8, 8, 8]
    }),
    ("convnextv2", "ConvNextV2", 64, {
        "hidden_sizes": [16, 32],
        "depths": [1, 1],
        "num_stages": 2
    }),
    ("resnet", "ResNet", 64, {
        "embedding_size": 16,
        "hidden_sizes": [16, 32],
        "depths": [1, 1]
    }),
    ("regnet", "RegNet", 64, {
        "embedding_size": 16,
        "hidden_sizes": [16, 32],
        "depths": [1, 1],
        "groups_width": 8
    }),
    ("bit", "Bit", 64, {
        "embedding_size": 32,
        "hidden_sizes": [32, 64],
        "depths": [1, 1],
        "num_groups": 8
    }),
    ("mobilenet-v1", "MobileNetV1", 64, {}),
    ("mobilenet-v2", "MobileNetV2", 64, {}),
    ("mobilevitv2", "MobileViTV2", 64, {
        "image_size": 64
    }),
    ("focalnet", "FocalNet", 64, {
        "image_size": 64,
        "embed_dim": 16,
        "depths": [1, 1],
        "focal_levels": [2, 2],
        "focal_windows": [3, 3]
    }),
    ("hiera", "Hiera", 64, {
        "image_size": [64, 64],
        "embed_dim": 16,
        "depths": [1, 1, 1],
        "num_heads": [1, 2, 4],
        "num_query_pool": 2
    }),
    ("pvt", "Pvt", 64, {
        "image_size": 64,
        "hidden_sizes": [16, 32, 40, 64],
        "depths": [1, 1, 1, 1]
    }),
    ("swiftformer", "SwiftFormer", 64, {
        "depths": [1, 1, 1, 1]
    }),
    ("vit-msn", "ViTMSN", 64, SMALLER),
    ("ijepa", "IJepa", 64, SMALLER),
    ("textnet", "TextNet", 64, {}),
]:
    transformers_model(name, f"{prefix}Config", f"{prefix}ForImageClassification", pixels(size), **options)
transformers_model("vit-mae", "ViTMAEConfig", "ViTMAEForPreTraining", lambda v: {**pixels(64)(v), "noise": torch.rand((2, 3, 5)[v], 16)},
                   decoder_num_hidden_layers=1, decoder_hidden_size=64, decoder_num_attention_heads=4, decoder_intermediate_size=128,
                   **SMALLER)  # fmt: skip
transformers_model("dpt", "DPTConfig", "DPTForDepthEstimation", pixels(64), backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 16,
                   16, 16], fusion_hidden_size=16, is_hybrid=False, **{**SMALLER, "num_hidden_layers": 4})  # fmt: skip
transformers_model("glpn", "GLPNConfig", "GLPNForDepthEstimation", pixels(64), depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64],
                   decoder_hidden_size=16)  # fmt: skip
transformers_model("yolos", "YolosConfig", "YolosForObjectDetection", pixels(64), num_detection_tokens=8, **{**SMALLER, "image_size": [64,
                   64]})  # fmt: skip
transformers_model("timesformer", "TimesformerConfig", "TimesformerForVideoClassification", normal(pixel_values=(4, 3, 64, 64)),
                   num_frames=4, **SMALLER)  # fmt: skip
transformers_model("videomae", "VideoMAEConfig", "VideoMAEForVideoClassification", normal(pixel_values=(4, 3, 64, 64)), num_frames=4,
                   **SMALLER)  # fmt: skip
transformers_model("vivit", "VivitConfig", "VivitForVideoClassification", normal(pixel_values=(4, 3, 64, 64)), num_frames=4,
                   tubelet_size=[2, 16, 16], **{k: v for k, v in SMALLER.items() if k != "patch_size"})  # fmt: skip
transformers_model("swin2sr", "Swin2SRConfig", "Swin2SRForImageSuperResolution", pixels(16), image_size=16, embed_dim=16, depths=[2, 2],
                   num_heads=[2, 2], window_size=4, upscale=2)  # fmt: skip
transformers_model("superpoint", "SuperPointConfig", "SuperPointForKeypointDetection", pixels(64), encoder_hidden_sizes=[16, 16, 32, 32],
                   decoder_hidden_size=32, keypoint_decoder_dim=65, descriptor_decoder_dim=32)  # fmt: skip


def joined(name, build):
    MODELS[f"transformers/{name}"] = build


def text_and_image(variant):
    batch, length = ((2, 16), (3, 24), (5, 32))[variant]
    return {"input_ids": torch.randint(3, 99, (batch, length)), "pixel_values": torch.randn(batch, 3, 64, 64)}


TEXT = {**BASE, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}


def two_towers(name, prefix, text_options=None, **options):
    def build():
        import transformers as t
        config = getattr(t, f"{prefix}Config")(text_config={**TEXT, **(text_options or {})}, vision_config=SMALLER, **options)
        return getattr(t, f"{prefix}Model")(config), text_and_image

    joined(name, build)


two_towers("clip", "CLIP", projection_dim=32)
two_towers("siglip", "Siglip", {"projection_size": 64})
two_towers("blip", "Blip", projection_dim=32)
two_towers("altclip", "AltCLIP", {"project_dim": 32}, projection_dim=32)
two_towers("owlvit", "OwlViT", projection_dim=32)
transformers_model("vilt", "ViltConfig", "ViltModel", text_and_image, **{**BASE, "image_size": 64, "patch_size": 16})
transformers_model("git", "GitConfig", "GitForCausalLM", text_and_image, vision_config=SMALLER, **TEXT)


def layoutlmv3():
    import transformers as t
    return (t.LayoutLMv3Model(
        t.LayoutLMv3Config(**BASE,
                           input_size=64,
                           patch_size=16,
                           coordinate_size=12,
                           shape_size=8,
                           hidden_dropout_prob=0.0,
                           attention_probs_dropout_prob=0.0,
                           rel_pos_bins=8,
                           rel_2d_pos_bins=8)), lambda v: {
                               **text_and_image(v), "bbox": torch.zeros(*((2, 16), (3, 24), (5, 32))[v], 4, dtype=torch.int64)
                           })


joined("layoutlmv3", layoutlmv3)


def small_resnet(t):
    return t.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], layer_type="basic",
                          out_features=["stage1", "stage2", "stage3", "stage4"])


DETR = {
    "num_queries": 12,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128
}


def detr(name, prefix, backbone_outputs=("stage4",), **options):
    def build():
        import transformers as t
        backbone = t.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], layer_type="basic",
                                  out_features=list(backbone_outputs))
        return getattr(t, f"{prefix}ForObjectDetection")(getattr(t, f"{prefix}Config")(backbone_config=backbone, **{
            **DETR,
            **options
        })), pixels(64)

    joined(name, build)


detr("detr", "Detr")
detr("conditional-detr", "ConditionalDetr")
detr("table-transformer", "TableTransformer")
detr("deformable-detr", "DeformableDetr", ("stage2", "stage3", "stage4"), num_feature_levels=3)


def upernet():
    import transformers as t
    return t.UperNetForSemanticSegmentation(
        t.UperNetConfig(backbone_config=small_resnet(t),
                        hidden_size=32,
                        pool_scales=[1, 2],
                        auxiliary_in_channels=32,
                        auxiliary_channels=16)), pixels(64)


def sam():
    import transformers as t
    vision = t.SamVisionConfig(**{
        **SMALLER, "output_channels": 32,
        "window_size": 2,
        "global_attn_indexes": [1],
        "num_pos_feats": 16,
        "mlp_dim": 128
    })
    prompt = t.SamPromptEncoderConfig(hidden_size=32, image_size=64, patch_size=16, mask_input_channels=4)
    mask = t.SamMaskDecoderConfig(hidden_size=32, mlp_dim=64, num_hidden_layers=2, num_attention_heads=4, iou_head_hidden_dim=32)
    return (t.SamModel(t.SamConfig(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=mask)),
            lambda v: {**pixels(64)(v), "input_points": torch.rand((2, 3, 5)[v], 1, 1, 2) * 60})


joined("upernet", upernet)
joined("sam", sam)


def depth_anything():
    import transformers as t
    backbone = t.Dinov2Config(image_size=56,
                              patch_size=14,
                              hidden_size=64,
                              num_hidden_layers=4,
                              num_attention_heads=4,
                              out_features=["stage1", "stage2", "stage3", "stage4"],
                              reshape_hidden_states=False)
    return t.DepthAnythingForDepthEstimation(
        t.DepthAnythingConfig(backbone_config=backbone,
                              reassemble_hidden_size=64,
                              neck_hidden_sizes=[16, 16, 16, 16],
                              fusion_hidden_size=16,
                              head_hidden_size=8,
                              patch_size=14)), pixels(56)


joined("depth-anything", depth_anything)


def vision_language(name, config_name, model_name, text_config, **options):
    def build():
        import transformers as t
        ids = torch.randint(5, 99, (2, 24))
        ids[:, 2:2 + options.get("image_tokens", 16)] = 98
        config = getattr(t, config_name)(text_config=text_config(t), vision_config=t.CLIPVisionConfig(**SMALLER), image_token_id=98,
                                         image_token_index=98, **{k: v for k, v in options.items() if k != "image_tokens"})
        return getattr(t, model_name)(config), lambda v: {"input_ids": ids, "pixel_values": torch.randn(2, 3, 64, 64), "use_cache": False}

    joined(name, build)


vision_language("llava", "LlavaConfig", "LlavaForConditionalGeneration", lambda t: t.LlamaConfig(**LLAMA), vision_feature_layer=-1)
