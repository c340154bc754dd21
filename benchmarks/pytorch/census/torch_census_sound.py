"""Models of transformers of sounds and of series of numbers."""

import torch

from torch_census_kinds import BART, BATCHES, FEW, SOUND, VIT, normal, sound, transcribed, transformers_model

transformers_model("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForCTC", sound, **SOUND)
transformers_model("hubert", "HubertConfig", "HubertForCTC", sound, **SOUND)
transformers_model("whisper", "WhisperConfig", "WhisperForConditionalGeneration", transcribed(input_features=(80, 100)),
                   max_source_positions=50, max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                   decoder_start_token_id=1, **BART)  # fmt: skip
transformers_model("speech-to-text", "Speech2TextConfig", "Speech2TextForConditionalGeneration", transcribed(input_features=(40, 80)),
                   max_source_positions=100, max_target_positions=64, conv_channels=32, **BART)  # fmt: skip
transformers_model("moonshine", "MoonshineConfig", "MoonshineForConditionalGeneration", transcribed(input_values=(4000,)), vocab_size=99,
                   hidden_size=64, intermediate_size=128, encoder_num_hidden_layers=2, decoder_num_hidden_layers=2,
                   encoder_num_attention_heads=4, decoder_num_attention_heads=4, max_position_embeddings=64)  # fmt: skip
for name, prefix in [("wavlm", "WavLM"), ("unispeech", "UniSpeech"), ("unispeech-sat", "UniSpeechSat"), ("data2vec-audio", "Data2VecAudio"),
                     ("sew", "SEW"), ("wav2vec2-conformer", "Wav2Vec2Conformer")]:
    options = dict(SOUND)
    if name == "data2vec-audio":
        options.update(num_conv_pos_embeddings=2, conv_pos_kernel_size=3)
    if name == "sew":
        options.update(squeeze_factor=2)
    transformers_model(name, f"{prefix}Config", f"{prefix}ForCTC", sound, **options)
transformers_model("sew-d", "SEWDConfig", "SEWDForCTC", sound, **SOUND, squeeze_factor=2, position_buckets=16, max_position_embeddings=64)
transformers_model("wav2vec2-bert", "Wav2Vec2BertConfig", "Wav2Vec2BertForCTC", normal(input_features=(24, 160)), vocab_size=32,
                   hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, output_hidden_size=64,
                   apply_spec_augment=False)  # fmt: skip
transformers_model("ast", "ASTConfig", "ASTForAudioClassification", normal(input_values=(64, 32)), max_length=64, num_mel_bins=32, **VIT)
transformers_model("encodec", "EncodecConfig", "EncodecModel", normal(input_values=(1, 960)), num_filters=4, hidden_size=16,
                   codebook_size=16, codebook_dim=16, upsampling_ratios=[4, 2], num_residual_layers=1)  # fmt: skip
transformers_model("dac", "DacConfig", "DacModel", normal(input_values=(1, 512)), encoder_hidden_size=8, downsampling_ratios=[2, 4],
                   decoder_hidden_size=32, n_codebooks=3, codebook_size=16, codebook_dim=4)  # fmt: skip
transformers_model("speecht5", "SpeechT5Config", "SpeechT5ForTextToSpeech", lambda v: {"input_ids": torch.randint(3, 80, (FEW[v], 12)),
                   "decoder_input_values": torch.randn(FEW[v], 10, 80), "speaker_embeddings": torch.randn(FEW[v], 512), "use_cache":
                   False}, vocab_size=81, hidden_size=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                   decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, speech_decoder_prenet_dropout=0.0)  # fmt: skip
transformers_model("hifigan", "SpeechT5HifiGanConfig", "SpeechT5HifiGan", normal(spectrogram=(20, 80)), upsample_initial_channel=32)
transformers_model("musicgen-decoder", "MusicgenDecoderConfig", "MusicgenForCausalLM", lambda v: {"input_ids": torch.randint(0, 60, (4 *
                   FEW[v], 8)), "use_cache": False}, vocab_size=64, hidden_size=64, num_hidden_layers=2, ffn_dim=128,
                   num_attention_heads=4, max_position_embeddings=64, pad_token_id=63, bos_token_id=63)  # fmt: skip
transformers_model("bark", "BarkSemanticConfig", "BarkSemanticModel", lambda v: {"input_ids": torch.randint(0, 60, (FEW[v], 8)),
                   "use_cache": False}, block_size=64, input_vocab_size=64, output_vocab_size=64, num_layers=2, num_heads=4,
                   hidden_size=64)  # fmt: skip
transformers_model("fastspeech2", "FastSpeech2ConformerConfig", "FastSpeech2ConformerModel", lambda v: {"input_ids": torch.randint(1, 70,
                   (FEW[v], 12))}, hidden_size=32, encoder_layers=1, decoder_layers=1, encoder_linear_units=64, decoder_linear_units=64,
                   speech_decoder_postnet_units=16, duration_predictor_channels=16, pitch_predictor_channels=16,
                   energy_predictor_channels=16)  # fmt: skip


def series(name, prefix, **options):
    def make(v):
        b = BATCHES[v]
        return {
            "past_values": torch.randn(b, 19),
            "past_time_features": torch.randn(b, 19, 2),
            "past_observed_mask": torch.ones(b, 19),
            "future_values": torch.randn(b, 6),
            "future_time_features": torch.randn(b, 6, 2)
        }

    transformers_model(name,
                       f"{prefix}Config",
                       f"{prefix}ForPrediction",
                       make,
                       prediction_length=6,
                       context_length=12,
                       num_time_features=2,
                       d_model=32,
                       encoder_layers=2,
                       decoder_layers=2,
                       encoder_attention_heads=2,
                       decoder_attention_heads=2,
                       encoder_ffn_dim=64,
                       decoder_ffn_dim=64,
                       **options)


series("time-series-transformer", "TimeSeriesTransformer")
series("informer", "Informer")
transformers_model("patchtst", "PatchTSTConfig", "PatchTSTForPrediction", lambda v: {"past_values": torch.randn(BATCHES[v], 32, 3)},
                   num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, prediction_length=6, d_model=32,
                   num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, loss="mse")  # fmt: skip
transformers_model("patchtsmixer", "PatchTSMixerConfig", "PatchTSMixerForPrediction", lambda v: {"past_values": torch.randn(BATCHES[v],
                   32, 3)}, num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, prediction_length=6, d_model=16,
                   num_layers=2)  # fmt: skip
transformers_model("decision-transformer", "DecisionTransformerConfig", "DecisionTransformerModel", lambda v: {"states": torch.randn((2,
                   3, 5)[v], 6, 5), "actions": torch.randn(BATCHES[v], 6, 3), "rewards": torch.randn(BATCHES[v], 6, 1),
                   "returns_to_go": torch.randn(BATCHES[v], 6, 1), "timesteps": torch.arange(6).repeat(BATCHES[v], 1),
                   "attention_mask": torch.ones(BATCHES[v], 6)}, state_dim=5, act_dim=3, hidden_size=64, max_ep_len=20, n_layer=2,
                   n_head=4, n_positions=64)  # fmt: skip
transformers_model("timesfm", "TimesFmConfig", "TimesFmModel", lambda v: {"past_values": torch.randn(BATCHES[v], 64),
                   "past_values_padding": torch.zeros(BATCHES[v], 64, dtype=torch.int64), "freq": torch.zeros(BATCHES[v], 1,
                   dtype=torch.int64)}, patch_length=16, context_length=64, horizon_length=16, hidden_size=64, intermediate_size=64,
                   num_hidden_layers=2, num_attention_heads=4, head_dim=16, freq_size=3)  # fmt: skip
