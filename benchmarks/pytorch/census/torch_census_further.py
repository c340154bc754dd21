"""Models of further families, of timm and transformers."""

import torch

from torch_census_kinds import BART, BASE, LLAMA, VIT, normal, pixels, text, timm_model, to_text, transformers_model

# Small networks, where calls cost as much as work.
for name, size in [("test_byobnet", 96), ("test_convnext2", 96), ("test_efficientnet", 96), ("test_resnet", 96), ("test_vit3", 160),
                   ("test_nfnet", 96), ("test_mambaout", 96)]:  # fmt: skip
    timm_model(name, size, {})

# Networks of usual sizes.
for name, size, options in [
    ("lcnet_050", 128, {}),
    ("tinynet_e", 106, {}),
    ("fbnetc_100", 96, {}),
    ("regnetz_005", 128, {}),
    ("ese_vovnet19b_dw", 128, {}),
    ("selecsls42b", 128, {}),
    ("resnet10t", 176, {}),
    ("seresnext26t_32x4d", 96, {}),
    ("resnetv2_18", 128, {}),
    ("dpn68b", 96, {}),
    ("mobileone_s0", 96, {}),
    ("fasternet_t0", 128, {}),
    ("repghostnet_050", 128, {}),
    ("gernet_s", 128, {}),
    ("shvit_s1", 128, {}),
    ("poolformerv2_s12", 96, {}),
    ("convformer_s18", 96, {}),
    ("efficientformerv2_s0", 224, {}),
    ("davit_tiny", 128, {
        "depths": (1, 1, 1, 1)
    }),
    ("tiny_vit_5m_224", 224, {
        "depths": (1, 1, 2, 1)
    }),
    ("hiera_tiny_224", 224, {
        "stages": (1, 1, 2, 1)
    }),
    ("nextvit_small", 96, {}),
    ("rdnet_tiny", 96, {}),
    ("efficientvim_m1", 128, {}),
    ("lowformer_b0", 128, {}),
    ("sebotnet33ts_256", 256, {}),
]:  # fmt: skip
    timm_model(name, size, options)


def encoder(name, prefix, model, make, **options):
    transformers_model(name, f"{prefix}Config", model, make, **options)


#: A width at which work, not calls, takes most of the time.
WIDE = {"vocab_size": 999, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 768,
        "max_position_embeddings": 512}  # fmt: skip
WIDE_LLAMA = {**WIDE, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def long_text(mask=False, **more):
    def make(variant):
        ids = torch.randint(3, 99, ((2, 128), (3, 96), (1, 200))[variant])
        return {"input_ids": ids, **({"attention_mask": torch.ones_like(ids)} if mask else {}), **more}

    return make


encoder("roberta-prelayernorm", "RobertaPreLayerNorm", "RobertaPreLayerNormForMaskedLM", long_text(True), **WIDE)
encoder("nomic-bert", "NomicBert", "NomicBertForMaskedLM", long_text(True), **WIDE)
encoder("lilt", "Lilt", "LiltModel", long_text(True), **{**WIDE, "hidden_size": 192})
encoder("tapas", "Tapas", "TapasForSequenceClassification", text(True), **{**BASE, "num_labels": 2})
encoder("markuplm", "MarkupLM", "MarkupLMForTokenClassification", text(True), **BASE)
for name, prefix, more in [("persimmon", "Persimmon", {}), ("bitnet", "BitNet", {}), ("nanochat", "NanoChat", {}),
                           ("modernbert-decoder", "ModernBertDecoder", {}), ("doge", "Doge", {}), ("minimax", "MiniMax", {
                               "num_local_experts": 4, "head_dim": 64}), ("dots1", "Dots1", {
                               "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "first_k_dense_replace": 1,
                               "n_shared_experts": 1}), ("glm4-moe", "Glm4Moe", {
                               "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "first_k_dense_replace": 1}),
                           ("granite-hybrid", "GraniteMoeHybrid", {
                               "layer_types": ["mamba", "attention"], "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16,
                               "mamba_chunk_size": 32, "num_local_experts": 0, "shared_intermediate_size": 512}),
                           ("qwen3-next", "Qwen3Next", {
                               "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "head_dim": 64,
                               "shared_expert_intermediate_size": 128, "layer_types": ["linear_attention", "full_attention"],
                               "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 32,
                               "linear_value_head_dim": 32})]:  # fmt: skip
    transformers_model(name, f"{prefix}Config", f"{prefix}ForCausalLM", long_text(use_cache=False), **WIDE_LLAMA, **more)
transformers_model("zamba2", "Zamba2Config", "Zamba2ForCausalLM", text(use_cache=False), **LLAMA, layers_block_type=["mamba", "hybrid"],
                   mamba_d_state=8, n_mamba_heads=4, mamba_ngroups=1, chunk_size=8, use_mem_rope=False, num_mem_blocks=1,
                   use_shared_attention_adapter=False, adapter_rank=8)  # fmt: skip
transformers_model("trocr", "TrOCRConfig", "TrOCRForCausalLM", text(use_cache=False), vocab_size=99, d_model=64, decoder_layers=2,
                   decoder_attention_heads=4, decoder_ffn_dim=128, max_position_embeddings=128)  # fmt: skip
transformers_model("mvp", "MvpConfig", "MvpForConditionalGeneration", to_text, **BART, max_position_embeddings=128)
transformers_model("imagegpt", "ImageGPTConfig", "ImageGPTForCausalImageModeling", text(use_cache=False), vocab_size=99, n_embd=64,
                   n_layer=2, n_head=4, n_positions=128)  # fmt: skip

# Of images, detection and matching.
transformers_model("vitpose", "VitPoseConfig", "VitPoseForPoseEstimation", pixels(64), num_labels=17, backbone_config={
    "model_type": "vitpose_backbone", "image_size": (64, 64), "patch_size": (16, 16), **VIT, "num_experts": 1, "out_indices": [2]})  # fmt: skip
transformers_model("vitdet", "VitDetConfig", "VitDetModel", pixels(128), image_size=128, pretrain_image_size=128, hidden_size=64,
                   num_hidden_layers=2, num_attention_heads=4, window_size=4, window_block_indices=[0])  # fmt: skip
transformers_model("pp-lcnet", "PPLCNetConfig", "PPLCNetForImageClassification", pixels(128))
transformers_model("rt-detr", "RTDetrConfig", "RTDetrForObjectDetection", pixels(128), num_queries=20, decoder_layers=2, d_model=64,
                   encoder_hidden_dim=64, encoder_in_channels=[32, 64, 128], feat_strides=[8, 16, 32], encoder_ffn_dim=64,
                   decoder_in_channels=[64, 64, 64], decoder_ffn_dim=64, decoder_attention_heads=4, encoder_attention_heads=4,
                   anchor_image_size=None, backbone_config={"model_type": "rt_detr_resnet", "hidden_sizes": [16, 32, 64, 128],
                   "embedding_size": 16, "depths": [1, 1, 1, 1], "layer_type": "basic", "out_features": ["stage2", "stage3", "stage4"]})  # fmt: skip
transformers_model("vjepa2", "VJEPA2Config", "VJEPA2Model", lambda v: {"pixel_values_videos": torch.randn(2 + v, 4, 3, 64, 64),
                   "skip_predictor": True}, crop_size=64, frames_per_clip=4, patch_size=16, **VIT)  # fmt: skip
transformers_model("mgp-str", "MgpstrConfig", "MgpstrForSceneTextRecognition", lambda v: {"pixel_values": torch.randn(2 + v, 3, 32, 128)}, hidden_size=64, num_hidden_layers=2,
                   num_attention_heads=4)  # fmt: skip

# Of sound and series.
transformers_model("univnet", "UnivNetConfig", "UnivNetModel", lambda v: {"input_features": torch.randn(1 + v, 20, 100),
                   "noise_sequence": torch.randn(1 + v, 20, 64)})  # fmt: skip
transformers_model("mimi", "MimiConfig", "MimiModel", lambda v: {"input_values": torch.randn(1 + v, 1, 3840)}, hidden_size=64,
                   num_filters=8, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, head_dim=16, intermediate_size=128,
                   upsample_groups=64, codebook_dim=16, vector_quantization_hidden_dimension=16, num_quantizers=4,
                   num_semantic_quantizers=1, codebook_size=64)  # fmt: skip
transformers_model("clap-audio", "ClapAudioConfig", "ClapAudioModel", normal(input_features=(1, 256, 64)), spec_size=128,
                   hidden_size=64, patch_embeds_hidden_size=16, num_mel_bins=64, depths=[1, 1], num_attention_heads=[2, 4],
                   window_size=4, patch_size=4, patch_stride=[4, 4], num_hidden_layers=2)  # fmt: skip
transformers_model("parakeet", "ParakeetEncoderConfig", "ParakeetEncoder", normal(input_features=(200, 80)), hidden_size=64,
                   num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, subsampling_conv_channels=32)  # fmt: skip
