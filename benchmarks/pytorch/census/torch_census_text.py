"""Models of transformers that read and write text."""

import torch

from torch_census_kinds import BART, BASE, LLAMA, SHORT, T5, SIZES, text, to_text, transformers_model


def encoder(name, prefix, mask=True, **options):
    transformers_model(name, f"{prefix}Config", f"{prefix}ForMaskedLM", text(mask), **options)


def decoder(name, prefix, **options):
    transformers_model(name, f"{prefix}Config", f"{prefix}ForCausalLM", text(use_cache=False), **options)


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

# Of more families.

encoder("nystromformer", "Nystromformer", False, **BASE, num_landmarks=4, segment_means_seq_len=16)
encoder("longformer", "Longformer", attention_window=8, **BASE)
encoder("bigbird", "BigBird", attention_type="original_full", **BASE)
encoder("bigbird-sparse", "BigBird", attention_type="block_sparse", block_size=2, num_random_blocks=1, **BASE)
transformers_model("reformer", "ReformerConfig", "ReformerForMaskedLM", text(), vocab_size=99, hidden_size=64, attention_head_size=16,
                   num_attention_heads=4, feed_forward_size=128, attn_layers=["local", "lsh"], axial_pos_embds=False, is_decoder=False,
                   max_position_embeddings=128, local_attn_chunk_length=4, lsh_attn_chunk_length=4, num_buckets=4, num_hashes=1,
                   hash_seed=0, hidden_dropout_prob=0.0, local_attention_probs_dropout_prob=0.0, lsh_attention_probs_dropout_prob=0.0)  # fmt: skip
encoder("roformer", "RoFormer", **BASE)
encoder("squeezebert", "SqueezeBert", **BASE, embedding_size=64, q_groups=2, k_groups=2, v_groups=2, post_attention_groups=1,
        intermediate_groups=2, output_groups=2)  # fmt: skip
encoder("ibert", "IBert", **BASE)
encoder("ibert-quant", "IBert", quant_mode=True, **BASE)
encoder("deberta", "Deberta", relative_attention=True, pos_att_type=["p2c", "c2p"], **BASE)
encoder("megatron-bert", "MegatronBert", **BASE)
encoder("rembert", "RemBert", input_embedding_size=32, output_embedding_size=48, **BASE)
encoder("ernie", "Ernie", **BASE)
encoder("mpnet", "MPNet", **BASE)
encoder("mra", "Mra", **BASE)
encoder("yoso", "Yoso", use_expectation=True, **BASE)
encoder("esm", "Esm", pad_token_id=1, mask_token_id=2, position_embedding_type="rotary", **BASE)
encoder("luke", "Luke", entity_vocab_size=10, entity_emb_size=16, **BASE)
encoder("xlm-roberta-xl", "XLMRobertaXL", **BASE)
encoder("data2vec-text", "Data2VecText", **BASE)
encoder("roc-bert", "RoCBert", enable_pronunciation=False, enable_shape=False, **BASE)
encoder("xmod", "Xmod", languages=["en_XX"], default_language="en_XX", **BASE)
encoder("eurobert", "EuroBert", **LLAMA)
transformers_model("xlm", "XLMConfig", "XLMWithLMHeadModel", text(), vocab_size=99, emb_dim=64, n_layers=2, n_heads=4,
                   max_position_embeddings=128)  # fmt: skip
transformers_model("flaubert", "FlaubertConfig", "FlaubertWithLMHeadModel", text(), vocab_size=99, emb_dim=64, n_layers=2, n_heads=4,
                   max_position_embeddings=128)
transformers_model("xlnet", "XLNetConfig", "XLNetLMHeadModel", text(), vocab_size=99, d_model=64, n_layer=2, n_head=4, d_inner=128)
transformers_model("funnel", "FunnelConfig", "FunnelForMaskedLM", text(True), vocab_size=99, block_sizes=[1, 1], d_model=64, n_head=4,
                   d_head=16, d_inner=128, num_decoder_layers=1)  # fmt: skip
transformers_model("canine", "CanineConfig", "CanineForSequenceClassification", text(True), hidden_size=64, num_hidden_layers=2,
                   num_attention_heads=4, intermediate_size=128, max_position_embeddings=128, num_hash_buckets=64, num_hash_functions=4,
                   downsampling_rate=4, local_transformer_stride=8)  # fmt: skip
transformers_model("perceiver", "PerceiverConfig", "PerceiverForMaskedLM", lambda v: {"inputs": torch.randint(3, 99, SIZES[v])},
                   vocab_size=99, num_latents=8, d_latents=64, d_model=32, num_blocks=1, num_self_attends_per_block=2,
                   num_self_attention_heads=4, num_cross_attention_heads=4, max_position_embeddings=128, qk_channels=32, v_channels=64)  # fmt: skip
transformers_model("layoutlm", "LayoutLMConfig", "LayoutLMForMaskedLM", text(), **BASE)
transformers_model("bert-qa", "BertConfig", "BertForQuestionAnswering", text(True), **BASE)
transformers_model("splinter", "SplinterConfig", "SplinterForQuestionAnswering", text(True, question_positions=torch.tensor([[2], [3]])),
                   **BASE)
transformers_model("dpr", "DPRConfig", "DPRReader", text(True), **BASE)
# Decoders.
for name, prefix in [("olmo", "Olmo"), ("olmo3", "Olmo3"), ("smollm3", "SmolLM3"), ("nemotron", "Nemotron"), ("cohere2", "Cohere2"),
                     ("ernie4.5", "Ernie4_5"), ("seed-oss", "SeedOss"), ("exaone4", "Exaone4"), ("arcee", "Arcee"),
                     ("diffllama", "DiffLlama"), ("apertus", "Apertus")]:
    decoder(name, prefix, **LLAMA)
for name, prefix in [("helium", "Helium"), ("hunyuan", "HunYuanDenseV1"), ("ministral", "Ministral"), ("glm", "Glm"), ("glm4", "Glm4"),
                     ("vaultgemma", "VaultGemma")]:
    decoder(name, prefix, **LLAMA, head_dim=16)
transformers_model("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", text(use_cache=False), **LLAMA, head_dim=16, sliding_window=8)
decoder("gpt-neo", "GPTNeo", vocab_size=99, hidden_size=64, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
        max_position_embeddings=128, window_size=8)
decoder("gpt-bigcode", "GPTBigCode", **SHORT)
decoder("codegen", "CodeGen", **SHORT, rotary_dim=8)
decoder("xglm", "XGLM", vocab_size=99, d_model=64, num_layers=2, attention_heads=4, ffn_dim=128)
decoder("biogpt", "BioGpt", **BASE)
decoder("mpt", "Mpt", vocab_size=99, d_model=64, n_layers=2, n_heads=4, max_seq_len=128)
transformers_model("ctrl", "CTRLConfig", "CTRLLMHeadModel", text(use_cache=False), vocab_size=99, n_embd=64, n_layer=2, n_head=4,
                   n_positions=128, dff=128)  # fmt: skip
transformers_model("openai-gpt", "OpenAIGPTConfig", "OpenAIGPTLMHeadModel", text(), **SHORT)
# Mixtures of experts.
decoder("qwen2-moe", "Qwen2Moe", **LLAMA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
        shared_expert_intermediate_size=32)  # fmt: skip
decoder("qwen3-moe", "Qwen3Moe", **LLAMA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, head_dim=16)
decoder("olmoe", "Olmoe", **LLAMA, num_experts=4, num_experts_per_tok=2)
decoder("phimoe", "Phimoe", **LLAMA, num_local_experts=4)
decoder("granitemoe", "GraniteMoe", **LLAMA, num_local_experts=4, num_experts_per_tok=2)
decoder("gpt-oss", "GptOss", **LLAMA, num_local_experts=4, head_dim=16)
decoder("deepseek-v2", "DeepseekV2", n_routed_experts=4, num_experts_per_tok=2, first_k_dense_replace=1, moe_intermediate_size=32,
        q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16, head_dim=8, **{**LLAMA,
        "num_key_value_heads": 4})  # fmt: skip
decoder("deepseek-v3", "DeepseekV3", n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=1,
        moe_intermediate_size=32, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16, **{**LLAMA,
        "num_key_value_heads": 4})  # fmt: skip
decoder("jetmoe", "JetMoe", **{**LLAMA, "num_key_value_heads": 2}, num_local_experts=4, kv_channels=16)
# With states along the sequence.
decoder("mamba2", "Mamba2", vocab_size=99, hidden_size=64, num_hidden_layers=2, state_size=8, num_heads=8, head_dim=16, n_groups=2,
        chunk_size=8)  # fmt: skip
decoder("rwkv", "Rwkv", vocab_size=99, hidden_size=64, num_hidden_layers=2, attention_hidden_size=64)
decoder("recurrent-gemma", "RecurrentGemma", **LLAMA, lru_width=64, attention_window_size=8, block_types=["recurrent", "attention"],
        head_dim=16)  # fmt: skip
decoder("falcon-mamba", "FalconMamba", vocab_size=99, hidden_size=64, num_hidden_layers=2, state_size=8)
decoder("jamba", "Jamba", **LLAMA, num_experts=2, mamba_d_state=8, mamba_dt_rank=8, attn_layer_period=2, attn_layer_offset=1,
        use_mamba_kernels=False)  # fmt: skip
decoder("bamba", "Bamba", **LLAMA, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=1, mamba_d_state=8, mamba_chunk_size=8,
        attn_layer_indices=[1])  # fmt: skip
decoder("falcon-h1", "FalconH1", **LLAMA, head_dim=16, mamba_d_ssm=64, mamba_n_heads=4, mamba_d_head=16, mamba_d_state=8,
        mamba_chunk_size=8)  # fmt: skip
decoder("lfm2", "Lfm2", **LLAMA, layer_types=["conv", "full_attention"])
decoder("xlstm", "xLSTM", vocab_size=99, hidden_size=64, num_hidden_layers=2, num_blocks=2, num_heads=4, chunk_size=8)
# From text to text.
for name, prefix in [("blenderbot-small", "BlenderbotSmall"), ("blenderbot", "Blenderbot"), ("plbart", "PLBart")]:
    transformers_model(name, f"{prefix}Config", f"{prefix}ForConditionalGeneration", to_text, **BART, max_position_embeddings=128)
transformers_model("marian", "MarianConfig", "MarianMTModel", to_text, **BART, max_position_embeddings=128, pad_token_id=0,
                   decoder_start_token_id=0)  # fmt: skip
transformers_model("pegasus-x", "PegasusXConfig", "PegasusXForConditionalGeneration", to_text, **BART, block_size=8, num_global_tokens=4)
transformers_model("led", "LEDConfig", "LEDForConditionalGeneration", to_text, **BART, max_encoder_position_embeddings=128,
                   max_decoder_position_embeddings=128, attention_window=8)
transformers_model("bigbird-pegasus", "BigBirdPegasusConfig", "BigBirdPegasusForConditionalGeneration", to_text, **BART,
                   max_position_embeddings=128, attention_type="original_full")  # fmt: skip
transformers_model("prophetnet", "ProphetNetConfig", "ProphetNetForConditionalGeneration", to_text, vocab_size=99, hidden_size=64,
                   num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4,
                   encoder_ffn_dim=128, decoder_ffn_dim=128)  # fmt: skip
transformers_model("fsmt", "FSMTConfig", "FSMTForConditionalGeneration", to_text, **{k: v for k, v in BART.items() if k != "vocab_size"},
                   langs=["en", "de"], src_vocab_size=99, tgt_vocab_size=99)  # fmt: skip
transformers_model("umt5", "UMT5Config", "UMT5ForConditionalGeneration", to_text, **T5)
transformers_model("longt5", "LongT5Config", "LongT5ForConditionalGeneration", to_text, **T5, local_radius=4,
                   encoder_attention_type="local")  # fmt: skip
transformers_model("longt5-global", "LongT5Config", "LongT5ForConditionalGeneration", to_text, **T5, local_radius=4, global_block_size=4,
                   encoder_attention_type="transient-global")
transformers_model("switch", "SwitchTransformersConfig", "SwitchTransformersForConditionalGeneration", to_text, **T5, num_experts=4,
                   num_sparse_encoder_layers=1, num_sparse_decoder_layers=1)  # fmt: skip
transformers_model("nllb-moe", "NllbMoeConfig", "NllbMoeForConditionalGeneration", to_text, **BART, max_position_embeddings=128,
                   num_experts=4, encoder_sparse_step=2, decoder_sparse_step=2, router_jitter_noise=0.0)  # fmt: skip
