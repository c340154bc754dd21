"""Models of images, of videos, and of images with text: torchvision, timm and transformers."""

import copy

import torch

from torch_census_kinds import FEW, MODELS, images, timm_model, torchvision_model

for name, size in {
    "alexnet": 224, "vgg11": 64, "resnet18": 224, "resnet50": 64, "resnext50_32x4d": 64, "squeezenet1_1": 128,
    "densenet121": 64, "googlenet": 128, "inception_v3": 160, "mobilenet_v2": 64, "mobilenet_v3_large": 64,
    "shufflenet_v2_x1_0": 64, "mnasnet1_0": 64, "efficientnet_b0": 64, "regnet_y_400mf": 64, "convnext_tiny": 64,
    "deeplabv3_mobilenet_v3_large": 128, "lraspp_mobilenet_v3_large": 128,
    "efficientnet_v2_s": 64, "wide_resnet50_2": 64, "vgg11_bn": 64, "fcn_resnet50": 64, "mobilenet_v3_small": 64, "regnet_x_400mf": 64,
    "squeezenet1_0": 128, "swin_t": 64, "swin_v2_t": 64,
}.items():  # fmt: skip
    torchvision_model(name, size)


def built(name, build):
    MODELS[name] = build


def vision_transformer():
    from torchvision.models.vision_transformer import VisionTransformer
    return VisionTransformer(64, 16, 2, 3, 48, 96), images(64)


def maxvit():
    from torchvision.models.maxvit import MaxVit
    return MaxVit(input_size=(64, 64), stem_channels=32, partition_size=4, block_channels=[32, 64], block_layers=[1, 1], head_dim=16,
                  stochastic_depth_prob=0.0), images(64)


def video(name, frames=8, size=64, **options):
    def build():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **options), lambda v: (torch.randn(FEW[v], 3, frames, size, size),)

    MODELS[f"torchvision/{name}"] = build


def mvit():
    from torchvision.models.video.mvit import MSBlockConfig, MViT
    blocks = [MSBlockConfig(1, 16, 32, (3, 3, 3), (3, 3, 3), (1, 1, 1), (1, 4, 4)),
              MSBlockConfig(2, 32, 32, (3, 3, 3), (3, 3, 3), (1, 2, 2), (1, 2, 2))]
    return (MViT((64, 64), 4, blocks, residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True),
            lambda v: (torch.randn(FEW[v], 3, 4, 64, 64),))


def swin3d():
    from torchvision.models.video.swin_transformer import SwinTransformer3d
    return (SwinTransformer3d([2, 4, 4], 24, [2, 2], [2, 4], [2, 4, 4], stochastic_depth_prob=0.0),
            lambda v: (torch.randn(FEW[v], 3, 4, 32, 32),))


def raft():
    import torchvision
    return (torchvision.models.optical_flow.raft_small(weights=None), lambda v: {
        "image1": torch.randn(FEW[v], 3, 128, 128),
        "image2": torch.randn(FEW[v], 3, 128, 128),
        "num_flow_updates": 2
    })


def detection(name, **options):
    """Training has boxes, too."""
    def build():
        import torchvision
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, **options)

        def make(variant):
            return ([torch.rand(3, (96, 128, 160)[variant], 96)],)

        def train(variant):
            boxes = torch.tensor([[10.0, 10.0, 60.0, 60.0], [20.0, 30.0, 90.0, 80.0]])
            told = {"boxes": boxes, "labels": torch.tensor([1, 2])}
            if "mask" in name:
                told["masks"] = torch.ones(2, 96, 96, dtype=torch.uint8)
            if "keypoint" in name:
                told.update(labels=torch.tensor([1, 1]), keypoints=torch.full((2, 17, 3), 50.0))
            return ([torch.rand(3, 96, 96) for _ in range(2)], [copy.deepcopy(told) for _ in range(2)])

        make.train = train
        return model, make

    MODELS[f"torchvision/{name}"] = build


built("torchvision/vit", vision_transformer)
built("torchvision/maxvit", maxvit)
video("r3d_18")
video("mc3_18")
video("r2plus1d_18")
video("s3d", 16, 224)
built("torchvision/mvit", mvit)
built("torchvision/swin3d", swin3d)
built("torchvision/raft_small", raft)
SMALL = {"min_size": 96, "max_size": 96}
detection("fasterrcnn_mobilenet_v3_large_320_fpn", **SMALL)
detection("retinanet_resnet50_fpn", **SMALL)
detection("ssdlite320_mobilenet_v3_large")
detection("fcos_resnet50_fpn", **SMALL)
detection("maskrcnn_resnet50_fpn", **SMALL)
detection("keypointrcnn_resnet50_fpn", **SMALL)

TWO = {"depth": 2}
for name, size, options in [
    ("vit_tiny_patch16_224", 224, TWO),
    ("deit_tiny_distilled_patch16_224", 224, TWO),
    ("beit_base_patch16_224", 224, TWO),
    ("eva02_tiny_patch14_224", 224, TWO),
    ("vit_small_patch14_dinov2", 112, {
        "depth": 2,
        "img_size": 112
    }),
    ("cait_xxs24_224", 224, TWO),
    ("xcit_nano_12_p16_224", 224, TWO),
    ("mixer_s16_224", 224, {
        "first_blocks": 2
    }),
    ("gmlp_ti16_224", 224, {
        "first_blocks": 2
    }),
    ("convnextv2_atto", 64, {}),
    ("convmixer_768_32", 64, TWO),
    ("swin_tiny_patch4_window7_224", 224, {
        "depths": (2, 2),
        "num_heads": (3, 6)
    }),
    ("pvt_v2_b0", 64, {}),
    ("twins_pcpvt_small", 224, {
        "depths": (1, 1, 1, 1)
    }),
    ("levit_128s", 224, {}),
    ("mobilevit_xxs", 128, {}),
    ("efficientformer_l1", 224, {}),
    ("edgenext_xx_small", 128, {}),
    ("maxvit_rmlp_pico_rw_256", 256, {
        "embed_dim": (32, 64),
        "depths": (1, 1)
    }),
    ("pit_ti_224", 224, {}),
    ("volo_d1_224", 224, {}),
    ("poolformer_s12", 64, {}),
    ("ghostnet_100", 64, {}),
    ("tf_efficientnet_b0", 64, {}),
    ("mobilenetv4_conv_small", 64, {}),
    ("dm_nfnet_f0", 64, {}),
    ("repvgg_a0", 64, {}),
    ("res2net50_14w_8s", 64, {}),
    ("resnest14d", 64, {}),
    ("botnet26t_256", 256, {}),
    ("halonet26t", 256, {}),
    ("fastvit_t8", 64, {}),
    ("focalnet_tiny_srf", 64, {}),
    ("vit_base_patch16_siglip_256", 256, {
        **TWO, "embed_dim": 96,
        "num_heads": 3
    }),
    ("resmlp_12_224", 64, {
        "img_size": 64,
        "first_blocks": 2
    }),
    ("swinv2_tiny_window8_256", 64, {
        "img_size": 64,
        "window_size": 4,
        "depths": (2, 2),
        "num_heads": (3, 6),
        "embed_dim": 24
    }),
    ("mobilevitv2_050", 64, {}),
    ("coat_tiny", 64, {
        "img_size": 64,
        "serial_depths": (1, 1, 1, 1)
    }),
    ("visformer_tiny", 224, {}),
    ("crossvit_tiny_240", 240, {}),
    ("hrnet_w18_small", 64, {}),
    ("cspdarknet53", 64, {}),
    ("dla34", 64, {}),
    ("lambda_resnet26t", 64, {}),
    ("nest_tiny", 64, {
        "img_size": 64
    }),
    ("coatnet_rmlp_nano_rw_224", 64, {
        "img_size": 64,
        "embed_dim": (32, 64, 64, 64),
        "depths": (1, 1, 1, 1)
    }),
    ("convit_tiny", 224, TWO),
    ("efficientvit_b0", 64, {}),
    ("inception_next_atto", 64, {}),
    ("mixnet_s", 64, {}),
    ("repvit_m0_9", 64, {}),
    ("rexnet_100", 64, {}),
    ("sequencer2d_s", 224, {
        "layers": (1, 1, 1, 1)
    }),
    ("starnet_s1", 64, {}),
    ("tnt_s_patch16_224", 224, TWO),
    ("xception41", 64, {}),
    ("nf_resnet26", 64, {}),
    ("skresnet18", 64, {}),
]:  # fmt: skip
    timm_model(name, size, options)
