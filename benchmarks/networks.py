"""Networks of many families with random weights, as torch's exporter writes them: what cuda_breadth.py and cpu_breadth.py
compare. Nothing is downloaded. Needs torch, onnx and onnxscript, and the packages that the table names."""
import collections
import importlib
import os

import torch

Network = collections.namedtuple("Network", "family package call dims")  # dims: of one input; of rank 1: token ids

IMAGE = (3, 224, 224)
NETWORKS = {
    "vgg16_bn": Network("plain", "torchvision.models", "vgg16_bn", IMAGE),
    "squeezenet": Network("plain", "torchvision.models", "squeezenet1_1", IMAGE),
    "repvgg": Network("plain", "timm", "repvgg_a2", IMAGE),
    "resnet50": Network("residual", "torchvision.models", "resnet50", IMAGE),
    "se_resnet50": Network("residual", "timm", "seresnet50", IMAGE),
    "res2net": Network("residual", "timm", "res2net50_26w_4s", IMAGE),
    "resnext50": Network("grouped", "torchvision.models", "resnext50_32x4d", IMAGE),
    "regnet_y": Network("grouped", "torchvision.models", "regnet_y_800mf", IMAGE),
    "shufflenet_v2": Network("grouped", "torchvision.models", "shufflenet_v2_x1_0", IMAGE),
    "mobilenet_v2": Network("depthwise", "torchvision.models", "mobilenet_v2", IMAGE),
    "mobilenet_v3": Network("depthwise", "torchvision.models", "mobilenet_v3_large", IMAGE),
    "mnasnet": Network("depthwise", "torchvision.models", "mnasnet1_0", IMAGE),
    "efficientnet_b0": Network("depthwise", "torchvision.models", "efficientnet_b0", IMAGE),
    "efficientnet_v2_s": Network("depthwise", "torchvision.models", "efficientnet_v2_s", (3, 384, 384)),
    "mobileone": Network("depthwise", "timm", "mobileone_s1", IMAGE),
    "ghostnet": Network("depthwise", "timm", "ghostnet_100", IMAGE),
    "mixnet": Network("depthwise", "timm", "mixnet_s", IMAGE),
    "densenet121": Network("dense", "torchvision.models", "densenet121", IMAGE),
    "googlenet": Network("inception", "torchvision.models", "googlenet", IMAGE),
    "inception_v3": Network("inception", "torchvision.models", "inception_v3", (3, 299, 299)),
    "hrnet": Network("inception", "timm", "hrnet_w18_small", IMAGE),
    "dpn68": Network("dual path", "timm", "dpn68", IMAGE),
    "nfnet": Network("norm-free", "timm", "nfnet_l0", IMAGE),
    "convnext": Network("metaformer", "torchvision.models", "convnext_tiny", IMAGE),
    "poolformer": Network("metaformer", "timm", "poolformer_s12", IMAGE),
    "convmixer": Network("metaformer", "timm", "convmixer_768_32", IMAGE),
    "mixer": Network("metaformer", "timm", "mixer_b16_224", IMAGE),
    "resmlp": Network("metaformer", "timm", "resmlp_12_224", IMAGE),
    "vit_b_16": Network("vision transformer", "torchvision.models", "vit_b_16", IMAGE),
    "deit": Network("vision transformer", "timm", "deit_small_patch16_224", IMAGE),
    "swin": Network("windowed", "torchvision.models", "swin_t", IMAGE),
    "mobilevit": Network("hybrid", "timm", "mobilevit_s", (3, 256, 256)),
    "visformer": Network("hybrid", "timm", "visformer_small", IMAGE),
    "levit": Network("hybrid", "timm", "levit_128s", IMAGE),
    "edgenext": Network("hybrid", "timm", "edgenext_small", (3, 256, 256)),
    "lraspp": Network("segmentation", "torchvision.models.segmentation", "lraspp_mobilenet_v3_large", IMAGE),
    "segformer": Network("segmentation", "transformers", "SegformerForSemanticSegmentation", (3, 256, 256)),
    "unet": Network("U-Net", "own_networks", "UNet", (3, 128, 128)),
    "bert_small": Network("encoder", "transformers", "BertModel", (128,)),
    "bart_small": Network("encoder and decoder", "transformers", "BartModel", (64,)),
    "whisper_encoder": Network("speech", "transformers", "WhisperEncoder", (80, 3000)),
    "wav2vec2": Network("speech", "transformers", "Wav2Vec2Model", (1, 16000)),
    "repghost": Network("depthwise", "timm", "repghostnet_100", IMAGE),
    "mobilenet_v4": Network("depthwise", "timm", "mobilenetv4_conv_small", IMAGE),
    "vovnet": Network("dense", "timm", "ese_vovnet19b_dw", IMAGE),
    "cspresnet50": Network("dense", "timm", "cspresnet50", IMAGE),
    "dla34": Network("dense", "timm", "dla34", IMAGE),
    "skresnet18": Network("inception", "timm", "skresnet18", IMAGE),
    "inception_next": Network("metaformer", "timm", "inception_next_tiny", IMAGE),
    "gmlp": Network("metaformer", "timm", "gmlp_s16_224", IMAGE),
    "focalnet": Network("metaformer", "timm", "focalnet_tiny_srf", IMAGE),
    "pvt_v2": Network("vision transformer", "timm", "pvt_v2_b0", IMAGE),
    "xcit": Network("vision transformer", "timm", "xcit_nano_12_p16_224", IMAGE),
    "fastvit": Network("hybrid", "timm", "fastvit_t8", (3, 256, 256)),
    "coatnet": Network("hybrid", "timm", "coatnet_nano_rw_224", IMAGE),
    "efficientvit": Network("hybrid", "timm", "efficientvit_b0", IMAGE),
    "deeplab": Network("segmentation", "torchvision.models.segmentation", "deeplabv3_mobilenet_v3_large", IMAGE),
    "pyramid": Network("detection", "own_networks", "PyramidNet", (3, 256, 256)),
    "swin2sr": Network("super resolution", "transformers", "Swin2SRForImageSuperResolution", (3, 64, 64)),
    "deberta": Network("encoder", "transformers", "DebertaV2Model", (128,)),
    "llama_small": Network("decoder", "transformers", "LlamaModel", (128,)),
    "mamba": Network("state space", "transformers", "MambaModel", (64,)),
    "yolos": Network("detection", "transformers", "YolosModel", (3, 192, 256)),
    "ast": Network("speech", "transformers", "ASTModel", (1024, 128)),
    "tcn": Network("1D", "own_networks", "TemporalNet", (40, 512)),
    "r3d": Network("3D", "torchvision.models.video", "r3d_18", (3, 8, 112, 112)),
    "crnn": Network("text in images", "own_networks", "TextRecogniser", (1, 32, 160)),
    "svtr": Network("text in images", "own_networks", "SceneTextNet", (3, 32, 160)),
    "yolo": Network("detection", "own_networks", "OneStageDetector", (3, 320, 320)),
    "lcnet": Network("depthwise", "timm", "lcnet_100", IMAGE),
    "edsr": Network("super resolution", "own_networks", "SuperResolution", (3, 64, 64)),
    "volume_unet": Network("3D", "own_networks", "VolumeNet", (1, 32, 64, 64)),
    "vocoder": Network("1D", "own_networks", "Vocoder", (80, 64)),
    "sound_tagger": Network("recurrent", "own_networks", "SoundTagger", (1, 256, 64)),
    "denoiser": Network("U-Net", "own_networks", "Denoiser", (3, 64, 64)),
    "replk": Network("large windows", "own_networks", "WideWindows", IMAGE),
    "rexnet": Network("depthwise", "timm", "rexnet_100", IMAGE),
    "hardcorenas": Network("depthwise", "timm", "hardcorenas_a", IMAGE),
    "mambaout": Network("metaformer", "timm", "mambaout_femto", IMAGE),
    "caformer": Network("metaformer", "timm", "caformer_s18", IMAGE),
    "starnet": Network("metaformer", "timm", "starnet_s1", IMAGE),
    "convnext_v2": Network("metaformer", "timm", "convnextv2_atto", IMAGE),
    "repvit": Network("hybrid", "timm", "repvit_m1", IMAGE),
    "efficientformer": Network("hybrid", "timm", "efficientformer_l1", IMAGE),
    "mobilevit_v2": Network("hybrid", "timm", "mobilevitv2_100", (3, 256, 256)),
    "maxvit": Network("windowed", "timm", "maxvit_nano_rw_256", (3, 256, 256)),
    "twins": Network("windowed", "timm", "twins_svt_small", IMAGE),
    "tiny_vit": Network("windowed", "timm", "tiny_vit_5m_224", IMAGE),
    "cait": Network("vision transformer", "timm", "cait_xxs24_224", IMAGE),
    "davit": Network("vision transformer", "timm", "davit_tiny", IMAGE),
    "hgnet": Network("dense", "timm", "hgnetv2_b0", IMAGE),
    "darknet": Network("plain", "timm", "darknet53", IMAGE),
    "selecsls": Network("dense", "timm", "selecsls42b", IMAGE),
    "xception": Network("inception", "timm", "xception41", (3, 299, 299)),
    "inception_v4": Network("inception", "timm", "inception_v4", (3, 299, 299)),
    "resnest": Network("grouped", "timm", "resnest14d", IMAGE),
    "fcn": Network("segmentation", "torchvision.models.segmentation", "fcn_resnet50", IMAGE),
    "albert": Network("encoder", "transformers", "AlbertModel", (128,)),
    "squeezebert": Network("encoder", "transformers", "SqueezeBertModel", (100,)),
    "convbert": Network("encoder", "transformers", "ConvBertModel", (128,)),
    "fnet": Network("encoder", "transformers", "FNetModel", (128,)),
    "mobilebert": Network("encoder", "transformers", "MobileBertModel", (128,)),
    "encodec": Network("recurrent", "transformers", "EncodecModel", (1, 6400)),
    "conformer": Network("speech", "transformers", "Wav2Vec2ConformerModel", (1, 16000)),
    "s3d": Network("3D", "torchvision.models.video", "s3d", (3, 16, 112, 112)),
    "mvit": Network("vision transformer", "timm", "mvitv2_tiny", IMAGE),
    "alexnet": Network("plain", "torchvision.models", "alexnet", IMAGE),
    "regnetx_032": Network("grouped", "timm", "regnetx_032", IMAGE),
    "regnetx_160": Network("grouped", "timm", "regnetx_160", IMAGE),
    "r2plus1d": Network("3D", "torchvision.models.video", "r2plus1d_18", (3, 8, 112, 112)),
    "swin3d": Network("3D", "torchvision.models.video", "swin3d_t", (3, 8, 112, 112)),
    "nest": Network("windowed", "timm", "nest_tiny_jx", IMAGE),
    "volo": Network("vision transformer", "timm", "volo_d1_224", IMAGE),
    "crossvit": Network("vision transformer", "timm", "crossvit_tiny_240", (3, 240, 240)),
    "eva02": Network("vision transformer", "timm", "eva02_tiny_patch14_224", IMAGE),
    "pit": Network("hybrid", "timm", "pit_xs_224", IMAGE),
    "gpt_neox": Network("decoder", "transformers", "GPTNeoXModel", (128,)),
    "gemma2": Network("decoder", "transformers", "Gemma2Model", (128,)),
    "qwen2": Network("decoder", "transformers", "Qwen2Model", (128,)),
    "swin_v2": Network("windowed", "torchvision.models", "swin_v2_t", (3, 256, 256)),
    "swin_v2_padded": Network("windowed", "transformers", "Swinv2Model", (3, 256, 256)),
    "sam": Network("windowed", "transformers", "SamVisionModel", (3, 256, 256)),
    "vitdet": Network("windowed", "transformers", "VitDetModel", IMAGE),
    "cvt": Network("hybrid", "transformers", "CvtModel", IMAGE),
    "mobilevit_hf": Network("hybrid", "transformers", "MobileViTModel", (3, 256, 256)),
    "data2vec_text": Network("encoder", "transformers", "Data2VecTextModel", (128,)),
    "ibert": Network("encoder", "transformers", "IBertModel", (128,)),
    "mpnet": Network("encoder", "transformers", "MPNetModel", (128,)),
    "roformer": Network("encoder", "transformers", "RoFormerModel", (128,)),
    "xlm": Network("encoder", "transformers", "XLMModel", (128,)),
    "xlnet": Network("encoder", "transformers", "XLNetModel", (128,)),
    "bloom": Network("decoder", "transformers", "BloomModel", (128,)),
    "falcon": Network("decoder", "transformers", "FalconModel", (128,)),
    "gpt_bigcode": Network("decoder", "transformers", "GPTBigCodeModel", (128,)),
    "gptj": Network("decoder", "transformers", "GPTJModel", (128,)),
    "olmo": Network("decoder", "transformers", "OlmoModel", (128,)),
    "phi": Network("decoder", "transformers", "PhiModel", (128,)),
    "data2vec_audio": Network("speech", "transformers", "Data2VecAudioModel", (1, 16000)),
    "hubert": Network("speech", "transformers", "HubertModel", (1, 16000)),
    "wavlm": Network("speech", "transformers", "WavLMModel", (1, 16000)),
    "clip_vision": Network("vision transformer", "transformers", "CLIPVisionModel", IMAGE),
    "siglip": Network("vision transformer", "transformers", "SiglipVisionModel", IMAGE),
    "dinov2": Network("vision transformer", "transformers", "Dinov2Model", IMAGE),
    "focalnet_hf": Network("metaformer", "transformers", "FocalNetModel", IMAGE),
    "glpn": Network("segmentation", "transformers", "GLPNModel", IMAGE),
    "electra": Network("encoder", "transformers", "ElectraModel", (128,)),
    "marian": Network("encoder and decoder", "transformers", "MarianModel", (64,)),
    "gpt_neo": Network("decoder", "transformers", "GPTNeoModel", (128,)),
    "mpt": Network("decoder", "transformers", "MptModel", (128,)),
    "stablelm": Network("decoder", "transformers", "StableLmModel", (128,)),
    "t5_encoder": Network("encoder", "transformers", "T5EncoderModel", (128,)),
    "beit": Network("vision transformer", "transformers", "BeitModel", IMAGE),
    "mamba2": Network("state space", "transformers", "Mamba2Model", (64,)),
    "sequencer": Network("recurrent", "timm", "sequencer2d_s", IMAGE),
    "convit": Network("vision transformer", "timm", "convit_tiny", IMAGE),
    "coat": Network("hybrid", "timm", "coat_tiny", IMAGE),
    "halonet": Network("windowed", "timm", "halonet26t", (3, 256, 256)),
    "lambda_resnet": Network("hybrid", "timm", "lambda_resnet26t", (3, 256, 256)),
    "inception_resnet": Network("inception", "timm", "inception_resnet_v2", (3, 299, 299)),
    "efficientformer_v2": Network("hybrid", "timm", "efficientformerv2_s0", IMAGE),
    "tresnet": Network("residual", "timm", "tresnet_m", IMAGE),
    "messages": Network("graph", "further_networks", "MessageNet", (512, 32)),
    "radiance": Network("perceptron", "further_networks", "Radiance", (256, 64, 3)),
    "table": Network("table", "further_networks", "TableNet", (26,)),
    "latents": Network("latent", "further_networks", "LatentReader", IMAGE),
    "codebook": Network("coder", "further_networks", "Codebook", (3, 128, 128)),
    "style": Network("generator", "further_networks", "StyleGenerator", (1, 256)),
    "stereo": Network("stereo", "further_networks", "StereoNet", (6, 128, 256)),
    "latent_denoiser": Network("U-Net", "pattern_networks", "CrossDenoiser", (4, 32, 32)),
    "dit": Network("vision transformer", "pattern_networks", "DiffusionTransformer", (4, 32, 32)),
    "wavenet": Network("1D", "pattern_networks", "Waves", (1, 4096)),
    "folding": Network("pairs", "pattern_networks", "PairNet", (16, 64, 32)),
    "raft": Network("flow", "pattern_networks", "OpticalFlow", (6, 128, 128)),
    "restorer": Network("restoration", "pattern_networks", "Restorer", (3, 128, 128)),
    "dgcnn": Network("points", "pattern_networks", "PointGraph", (512, 3)),
    "demucs": Network("recurrent", "pattern_networks", "Separator", (2, 16384)),
    "x3d": Network("3D", "pattern_networks", "MovingImages", (3, 8, 112, 112)),
    "ranker": Network("table", "pattern_networks", "Ranker", (26,)),
    "matcher": Network("points", "pattern_networks", "Matcher", (512, 64)),
    "planes": Network("perceptron", "pattern_networks", "Planes", (4096, 3)),
    "botnet": Network("hybrid", "timm", "botnet26t_256", (3, 256, 256)),
    "cspdarknet": Network("dense", "timm", "cspdarknet53", IMAGE),
    "cs3darknet": Network("dense", "timm", "cs3darknet_focus_s", IMAGE),
    "fasternet": Network("plain", "timm", "fasternet_t0", IMAGE),
    "nextvit": Network("hybrid", "timm", "nextvit_small", IMAGE),
    "regnet_z": Network("grouped", "timm", "regnetz_005", IMAGE),
    "resnet_blur": Network("residual", "timm", "resnetblur18", IMAGE),
    "shvit": Network("hybrid", "timm", "shvit_s1", IMAGE),
    "swiftformer": Network("hybrid", "timm", "swiftformer_xs", IMAGE),
    "vitamin": Network("hybrid", "timm", "vitamin_small_224", IMAGE),
    "tnt": Network("vision transformer", "timm", "tnt_s_patch16_224", IMAGE),
    "poolformer_v2": Network("metaformer", "timm", "poolformerv2_s12", IMAGE),
    "convformer": Network("metaformer", "timm", "convformer_s18", IMAGE),
    "ghostnet_v2": Network("depthwise", "timm", "ghostnetv2_100", IMAGE),
    "nf_resnet": Network("norm-free", "timm", "nf_regnet_b0", (3, 192, 192)),
    "gc_resnet": Network("residual", "timm", "gcresnet33ts", (3, 256, 256)),
    "maxxvit": Network("windowed", "timm", "maxxvit_rmlp_nano_rw_256", (3, 256, 256)),
    "coatnext": Network("hybrid", "timm", "coatnext_nano_rw_224", IMAGE),
    "fbnet_v3": Network("depthwise", "timm", "fbnetv3_b", IMAGE),
    "gernet": Network("plain", "timm", "gernet_s", IMAGE),
    "twins_pcpvt": Network("vision transformer", "timm", "twins_pcpvt_small", IMAGE),
    "funnel": Network("encoder", "transformers", "FunnelModel", (128,)),
    "nystromformer": Network("encoder", "transformers", "NystromformerModel", (128,)),
    "canine": Network("encoder", "transformers", "CanineModel", (256,)),
    "opt": Network("decoder", "transformers", "OPTModel", (128,)),
    "gemma3": Network("decoder", "transformers", "Gemma3TextModel", (128,)),
    "patchtst": Network("series", "transformers", "PatchTSTModel", (512, 7)),
    "patchtsmixer": Network("series", "transformers", "PatchTSMixerModel", (512, 7)),
    "dpt": Network("depth", "transformers", "DPTForDepthEstimation", IMAGE),
    "upernet": Network("segmentation", "transformers", "UperNetForSemanticSegmentation", IMAGE),
    "sew": Network("speech", "transformers", "SEWModel", (1, 16000)),
    "unispeech": Network("speech", "transformers", "UniSpeechSatModel", (1, 16000)),
    "vivit": Network("3D", "transformers", "VivitModel", (8, 3, 112, 112)),
    "timesformer": Network("3D", "transformers", "TimesformerModel", (8, 3, 112, 112)),
    "modernbert": Network("encoder", "transformers", "ModernBertModel", (128,)),
    "rtdetr": Network("detection", "transformers", "RTDetrModel", (3, 320, 320)),
    "roberta": Network("encoder", "transformers", "RobertaModel", (128,)),
    "gpt2": Network("decoder", "transformers", "GPT2Model", (128,)),
    "pointnet": Network("points", "mechanism_networks", "PointNet", (1024, 3)),
    "moving_gates": Network("recurrent", "mechanism_networks", "MovingGates", (8, 3, 64, 64)),
    "coupling": Network("flow", "mechanism_networks", "Coupling", (3, 64, 64)),
    "warper": Network("warps", "mechanism_networks", "Warper", (3, 128, 128)),
    "capsules": Network("capsules", "mechanism_networks", "Capsules", (3, 32, 32)),
    "experts": Network("experts", "mechanism_networks", "Experts", (128,)),
    "edge_attention": Network("graph", "mechanism_networks", "EdgeAttention", (1024, 32)),
    "hashed_grid": Network("perceptron", "mechanism_networks", "HashedGrid", (4096, 3)),
    "splines": Network("perceptron", "mechanism_networks", "SplineNet", (256, 64)),
    "slots": Network("slots", "mechanism_networks", "Slots", (3, 64, 64)),
    "recall": Network("memory", "mechanism_networks", "Recall", (128,)),
    "learned_offsets": Network("detection", "mechanism_networks", "LearnedOffsets", (3, 256, 256)),
    "eca_nfnet": Network("norm-free", "timm", "eca_nfnet_l0", IMAGE),
    "pnasnet": Network("inception", "timm", "pnasnet5large", IMAGE),
    "senet": Network("grouped", "timm", "legacy_seresnext26_32x4d", IMAGE),
    "regnet_v": Network("grouped", "timm", "regnetv_040", IMAGE),
    "resnet_rs": Network("residual", "timm", "resnetrs50", IMAGE),
    "vit_of_resnet": Network("hybrid", "timm", "vit_small_r26_s32_224", IMAGE),
    "sehalonet": Network("windowed", "timm", "sehalonet33ts", (3, 256, 256)),
    "dla_res2next": Network("dense", "timm", "dla60_res2next", IMAGE),
    "efficientnet_es": Network("depthwise", "timm", "efficientnet_es", IMAGE),
    "fbnet": Network("depthwise", "timm", "fbnetc_100", IMAGE),
    "edge_tpu": Network("depthwise", "timm", "mobilenet_edgetpu_v2_m", IMAGE),
    "vit_rope": Network("vision transformer", "timm", "vit_small_patch16_rope_224", IMAGE),
    "naflex": Network("vision transformer", "timm", "naflexvit_base_patch16_gap", IMAGE),
    "convnext_zepto": Network("metaformer", "timm", "convnext_zepto_rms", IMAGE),
    "wide_resnet": Network("residual", "torchvision.models", "wide_resnet50_2", IMAGE),
    "mvit_video": Network("3D", "torchvision.models.video", "mvit_v1_b", (3, 16, 224, 224)),
    "deberta_v1": Network("encoder", "transformers", "DebertaModel", (128,)),
    "layoutlm": Network("encoder", "transformers", "LayoutLMModel", (128,)),
    "mbart": Network("encoder and decoder", "transformers", "MBartModel", (64,)),
    "gpt": Network("decoder", "transformers", "OpenAIGPTModel", (128,)),
    "xglm": Network("decoder", "transformers", "XGLMModel", (128,)),
    "smollm3": Network("decoder", "transformers", "SmolLM3Model", (128,)),
    "lfm2": Network("state space", "transformers", "Lfm2Model", (128,)),
    "megatron_bert": Network("encoder", "transformers", "MegatronBertModel", (128,)),
    "tapas": Network("encoder", "transformers", "TapasModel", (128,)),
    "depth_anything": Network("depth", "transformers", "DepthAnythingForDepthEstimation", (3, 224, 224)),
    "hifigan": Network("1D", "transformers", "SpeechT5HifiGan", (64, 80)),
    "donut": Network("windowed", "transformers", "DonutSwinModel", IMAGE),
    "segment_anything_2": Network("hybrid", "transformers", "Sam2VisionModel", (3, 256, 256)),
    "retention": Network("decoder", "scientific_networks", "Retention", (256,)),
    "gated_pixels": Network("generator", "scientific_networks", "GatedPixels", (3, 32, 32)),
    "tracker": Network("tracking", "scientific_networks", "Tracker", (3, 128, 128)),
    "runge_kutta": Network("equation", "scientific_networks", "Steps", (3, 64, 64)),
    "point_sets": Network("points", "scientific_networks", "PointSets", (1024, 3)),
    "spectra": Network("operator", "scientific_networks", "Spectra", (1, 64, 64)),
    "diff_llama": Network("decoder", "transformers", "DiffLlamaModel", (128,)),
    "clip_text": Network("encoder", "transformers", "CLIPTextModel", (77,)),
    "styler": Network("generator", "field_networks", "Styler", (3, 128, 128)),
    "latent_decoder": Network("generator", "field_networks", "LatentDecoder", (4, 32, 32)),
    "mixed_filters": Network("mixed filters", "field_networks", "MixedFilters", (3, 128, 128)),
    "pixel_filters": Network("mixed filters", "field_networks", "PixelFilters", (3, 112, 112)),
    "dense_restorer": Network("restoration", "field_networks", "DenseRestorer", (3, 48, 48)),
    "mapped_norms": Network("generator", "field_networks", "MappedNorms", (20, 128, 128)),
    "pooled_pyramid": Network("segmentation", "field_networks", "PooledPyramid", (3, 192, 192)),
    "peaks": Network("detection", "field_networks", "Peaks", (3, 256, 256)),
    "two_rates": Network("3D", "field_networks", "TwoRates", (3, 16, 112, 112)),
    "board": Network("board", "field_networks", "Board", (17, 19, 19)),
    "globe": Network("U-Net", "field_networks", "Globe", (20, 64, 128)),
    "clusters": Network("clusters", "field_networks", "Clusters", (3, 128, 128)),
    "speakers": Network("1D", "signal_networks", "Speakers", (1, 8000)),
    "voices": Network("speech", "signal_networks", "Voices", (80, 200)),
    "skeletons": Network("graph", "signal_networks", "Skeletons", (3, 64, 25)),
    "electrodes": Network("1D", "signal_networks", "Electrodes", (1, 22, 1024)),
    "genome": Network("1D", "signal_networks", "Genome", (4, 4096)),
    "dispatch": Network("experts", "signal_networks", "Dispatch", (128,)),
    "transducer": Network("speech", "signal_networks", "Transducer", (80, 280)),
    "atoms": Network("graph", "signal_networks", "Atoms", (32, 5)),
    "mesh": Network("graph", "signal_networks", "Mesh", (1024, 12)),
    "recurrence": Network("state space", "signal_networks", "Recurrence", (256,)),
    "mesh_slices": Network("operator", "signal_networks", "MeshSlices", (1024, 3)),
    "letters": Network("1D", "signal_networks", "Letters", (256,)),
    "bought": Network("table", "signal_networks", "Bought", (120,)),
    "linear_attention": Network("vision transformer", "signal_networks", "LinearAttention", IMAGE),
    "series": Network("series", "signal_networks", "Stacks", (7, 336)),
    "condconv": Network("mixed filters", "timm", "tf_efficientnet_cc_b0_4e", IMAGE),
    "lambda_halo": Network("hybrid", "timm", "lamhalobotnet50ts_256", (3, 256, 256)),
    "mobilenet_v4_hybrid": Network("hybrid", "timm", "mobilenetv4_hybrid_medium", IMAGE),
    "resnet_v2": Network("residual", "timm", "resnetv2_50", IMAGE),
    "rdnet": Network("dense", "timm", "rdnet_tiny", IMAGE),
    "qwen3": Network("decoder", "transformers", "Qwen3Model", (128,)),
    "cohere": Network("decoder", "transformers", "CohereModel", (128,)),
    "codegen": Network("decoder", "transformers", "CodeGenModel", (128,)),
    "ernie": Network("encoder", "transformers", "ErnieModel", (128,)),
    "pvt": Network("vision transformer", "transformers", "PvtModel", IMAGE),
    "textnet": Network("text in images", "transformers", "TextNetModel", (3, 320, 320)),
    "dinov3": Network("vision transformer", "timm", "vit_small_patch16_dinov3", (3, 256, 256)),
    "swin_v2_cr": Network("windowed", "timm", "swinv2_cr_tiny_ns_224", IMAGE),
    "bit": Network("residual", "timm", "resnetv2_50x1_bit", IMAGE),
    "evolved_norms": Network("residual", "timm", "resnetv2_50d_evos", IMAGE),
    "response_norms": Network("residual", "timm", "resnetv2_50d_frn", IMAGE),
    "mobilenet_v5": Network("hybrid", "timm", "mobilenetv5_base", (3, 256, 256)),
    "efficientvit_l": Network("hybrid", "timm", "efficientvit_l1", IMAGE),
    "csatv2": Network("hybrid", "timm", "csatv2", (3, 512, 512)),
    "xcit_p8": Network("vision transformer", "timm", "xcit_tiny_12_p8_224", IMAGE),
}

TWO_LAYERS = {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
              "intermediate_size": 2048}
NARROW_LAYERS = {"hidden_size": 384, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 1536}
TWO_LAYERS_OF_GPT = {"vocab_size": 1000, "n_embd": 512, "n_layer": 2, "n_head": 8, "use_cache": False}

OPTIONS = {
    "googlenet": {"init_weights": False, "aux_logits": False},
    "inception_v3": {"init_weights": False, "aux_logits": False},
    "lraspp_mobilenet_v3_large": {"weights_backbone": None},
    "BertModel": {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048},
    "BartModel": {"vocab_size": 1000, "d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 128,
                  "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 1024,
                  "decoder_ffn_dim": 1024},
    "WhisperEncoder": {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536},
    "DebertaV2Model": {"vocab_size": 1000, "hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6,
                       "intermediate_size": 1536, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "LlamaModel": {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "intermediate_size": 1408, "use_cache": False},
    "GPTNeoXModel": {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
                     "intermediate_size": 2048, "use_cache": False},
    "Gemma2Model": {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
                    "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 1408, "use_cache": False},
    "Qwen2Model": {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
                   "num_key_value_heads": 4, "intermediate_size": 1408, "use_cache": False},
    "MambaModel": {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 2, "use_cache": False},
    "YolosModel": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 768,
                   "image_size": [192, 256], "num_detection_tokens": 20},
    "ASTModel": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 768},
    "Swin2SRForImageSuperResolution": {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]},
    "deeplabv3_mobilenet_v3_large": {"weights_backbone": None},
    "fcn_resnet50": {"weights_backbone": None},
    "AlbertModel": {"vocab_size": 1000, "embedding_size": 64, "hidden_size": 384, "num_hidden_layers": 4,
                    "num_attention_heads": 6, "intermediate_size": 1536},
    "SqueezeBertModel": {"vocab_size": 1000, "hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6,
                         "intermediate_size": 1536, "embedding_size": 384},
    "ConvBertModel": {"vocab_size": 1000, "embedding_size": 128, "hidden_size": 384, "num_hidden_layers": 4,
                      "num_attention_heads": 6, "intermediate_size": 1536},
    "FNetModel": {"vocab_size": 1000, "hidden_size": 384, "num_hidden_layers": 4, "intermediate_size": 1536},
    "MobileBertModel": {"vocab_size": 1000, "num_hidden_layers": 6},
    "Wav2Vec2ConformerModel": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
                               "intermediate_size": 1024, "position_embeddings_type": None},
    "SamVisionModel": {**NARROW_LAYERS, "image_size": 256, "window_size": 8, "global_attn_indexes": [1]},
    "VitDetModel": {**NARROW_LAYERS, "image_size": 224, "window_size": 7, "window_block_indices": [0]},
    **{name: TWO_LAYERS for name in ("Data2VecTextModel", "IBertModel", "MPNetModel", "RoFormerModel")},
    **{name: {**TWO_LAYERS, "use_cache": False} for name in ("OlmoModel", "PhiModel")},
    **{name: NARROW_LAYERS for name in ("Data2VecAudioModel", "HubertModel", "WavLMModel")},
    **{name: TWO_LAYERS_OF_GPT for name in ("GPTBigCodeModel", "GPTJModel", "CodeGenModel")},
    **{name: NARROW_LAYERS for name in ("CLIPVisionModel", "SiglipVisionModel", "Dinov2Model")},
    "ElectraModel": {**TWO_LAYERS, "embedding_size": 128},
    "StableLmModel": {**TWO_LAYERS, "num_key_value_heads": 8, "use_cache": False},
    "T5EncoderModel": {"vocab_size": 1000, "d_model": 512, "num_layers": 3, "num_heads": 8, "d_kv": 64, "d_ff": 2048},
    "BeitModel": {**NARROW_LAYERS, "use_relative_position_bias": True},
    "Mamba2Model": {"vocab_size": 1000, "hidden_size": 256, "num_heads": 8, "head_dim": 64, "num_hidden_layers": 2,
                    "n_groups": 1, "chunk_size": 32, "use_cache": False},
    "MarianModel": {"vocab_size": 1000, "d_model": 256, "encoder_layers": 2, "decoder_layers": 2,
                    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 1024,
                    "decoder_ffn_dim": 1024, "pad_token_id": 0, "decoder_start_token_id": 0},
    "GPTNeoModel": {"vocab_size": 1000, "hidden_size": 512, "num_layers": 2, "num_heads": 8,
                    "attention_types": [[["global", "local"], 1]], "window_size": 64, "use_cache": False},
    "MptModel": {"vocab_size": 1000, "d_model": 512, "n_layers": 2, "n_heads": 8, "use_cache": False},
    "XLMModel": {"vocab_size": 1000, "emb_dim": 512, "n_layers": 2, "n_heads": 8},
    "XLNetModel": {"vocab_size": 1000, "d_model": 512, "n_layer": 2, "n_head": 8, "d_inner": 2048},
    "BloomModel": {"vocab_size": 1000, "hidden_size": 512, "n_layer": 2, "n_head": 8, "use_cache": False},
    "FalconModel": {"vocab_size": 1000, "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8,
                    "use_cache": False},
    "FunnelModel": {"vocab_size": 1000, "d_model": 512, "block_sizes": [2, 2], "n_head": 8, "d_inner": 2048},
    "CanineModel": {"hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 2048},
    "OPTModel": {**TWO_LAYERS, "ffn_dim": 2048, "word_embed_proj_dim": 512, "use_cache": False},
    **{name: {**TWO_LAYERS, "num_key_value_heads": 4, "head_dim": 64, "use_cache": False} for name in ("Gemma3TextModel", "Qwen3Model")},
    "NystromformerModel": TWO_LAYERS,
    "ModernBertModel": {**TWO_LAYERS, "intermediate_size": 1024, "pad_token_id": 0},
    **{name: {"num_input_channels": 7, "context_length": 512, "patch_length": 16, "patch_stride": 16}
       for name in ("PatchTSTModel", "PatchTSMixerModel")},
    **{name: {**NARROW_LAYERS, "image_size": 112, "num_frames": 8} for name in ("VivitModel", "TimesformerModel")},
    **{name: NARROW_LAYERS for name in ("SEWModel", "UniSpeechSatModel")},
    "GPT2Model": {"use_cache": False},
    "DebertaModel": {**TWO_LAYERS, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    **{name: TWO_LAYERS for name in ("LayoutLMModel", "MegatronBertModel", "TapasModel", "ErnieModel")},
    "MBartModel": {"vocab_size": 1000, "d_model": 512, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 8,
                   "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048},
    "OpenAIGPTModel": {"vocab_size": 1000, "n_embd": 512, "n_layer": 2, "n_head": 8},
    "XGLMModel": {"vocab_size": 1000, "d_model": 512, "num_layers": 2, "attention_heads": 8, "ffn_dim": 2048, "use_cache": False},
    **{name: {**TWO_LAYERS, "num_key_value_heads": 4, "use_cache": False, "pad_token_id": 0} for name in ("SmolLM3Model", "CohereModel")},
    "Lfm2Model": {**TWO_LAYERS, "num_hidden_layers": 4, "num_key_value_heads": 4, "use_cache": False,
                  "layer_types": ["conv", "full_attention"] * 2},
    "DiffLlamaModel": {**TWO_LAYERS, "num_key_value_heads": 8, "use_cache": False},
    "CLIPTextModel": TWO_LAYERS,
    "DonutSwinModel": {"embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "window_size": 7},
    "Wav2Vec2Model": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 1536},
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
