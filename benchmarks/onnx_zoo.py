"""Networks of benchmarks/onnx_networks.py: PyTorch modules with random weights, small enough to be exported, run and
differentiated in seconds. Each entry of NETWORKS gives a module in evaluation mode and a function from a seed to its inputs.
"""

import torch
import torch.nn.functional as F
from torch import nn


def with_models_alone():
    """torchvision, also where its compiled operators do not load, as those of its build for CUDA beside PyTorch's for the
    CPU: no network here uses them."""
    register = torch.library.register_fake
    torch.library.register_fake = lambda op, *rest, **named: (
        (lambda f: f) if str(op).startswith("torchvision::") else register(op, *rest, **named))
    try:
        import torchvision
    finally:
        torch.library.register_fake = register
    return torchvision


torchvision = with_models_alone()
NETWORKS = {}


def network(function):
    NETWORKS[function.__name__] = function
    return function


def pixels(*shape):
    return lambda seed: (torch.randn(shape, generator=torch.Generator().manual_seed(seed)),)


def tokens(vocabulary, *shape):
    return lambda seed: (torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed)),)


def settled(module, inputs):
    """The module with running statistics of what it sees, in evaluation mode."""
    module.train()
    with torch.no_grad():
        for seed in range(3):
            module(*inputs(100 + seed))
    return module.eval(), inputs


class Named(nn.Module):
    """The named fields of what a module returns."""

    def __init__(self, net, *fields, **fixed):
        super().__init__()
        self.net, self.fields, self.fixed = net, fields, fixed
        self.names = None  # of the inputs, where they are not the first ones

    def forward(self, *inputs):
        named = dict(zip(self.names, inputs)) if self.names else {}
        result = self.net(*(() if named else inputs), **named, **self.fixed)
        made = tuple(result[field] for field in self.fields)
        return made[0] if len(made) == 1 else made


def of_torchvision(name, size=64, batch=2, **options):
    def make():
        return settled(getattr(torchvision.models, name)(num_classes=10, **options), pixels(batch, 3, size, size))

    NETWORKS[name] = make


of_torchvision("resnet18")
of_torchvision("mobilenet_v2")
of_torchvision("mobilenet_v3_small")
of_torchvision("efficientnet_b0")
of_torchvision("squeezenet1_1")
of_torchvision("shufflenet_v2_x0_5")
of_torchvision("regnet_y_400mf")
of_torchvision("mnasnet0_5")


@network
def densenet():
    net = torchvision.models.DenseNet(growth_rate=8, block_config=(3, 4, 4, 3), num_init_features=16, num_classes=10)
    return settled(net, pixels(2, 3, 64, 64))


@network
def googlenet():
    net = torchvision.models.GoogLeNet(num_classes=10, aux_logits=False, init_weights=False)
    return settled(net, pixels(2, 3, 64, 64))


@network
def inception_v3():
    net = torchvision.models.Inception3(num_classes=10, aux_logits=False, init_weights=False)
    return settled(net, pixels(2, 3, 96, 96))


@network
def vgg():
    layers, channels = [], 3
    for width in (16, "M", 32, "M", 64, 64, "M", 64, 64, "M"):
        if width == "M":
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Dropout(),
                        nn.Linear(64, 10))
    return settled(net, pixels(2, 3, 32, 32))


@network
def alexnet():
    net = torchvision.models.AlexNet(num_classes=10)
    net.classifier = nn.Sequential(nn.Dropout(), nn.Linear(9216, 64), nn.ReLU(inplace=True), nn.Linear(64, 10))
    return settled(net, pixels(2, 3, 224, 224))


@network
def convnext():
    CNBlockConfig, ConvNeXt = torchvision.models.convnext.CNBlockConfig, torchvision.models.ConvNeXt
    blocks = [CNBlockConfig(16, 32, 1), CNBlockConfig(32, 64, 1), CNBlockConfig(64, None, 2)]
    return settled(ConvNeXt(blocks, layer_scale=0.5, num_classes=10), pixels(2, 3, 64, 64))


@network
def swin():
    net = torchvision.models.SwinTransformer(patch_size=[4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4],
                                             window_size=[4, 4], num_classes=10)
    return settled(net, pixels(2, 3, 64, 64))


@network
def vision_transformer():
    net = torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=3, num_heads=4, hidden_dim=48,
                                               mlp_dim=96, num_classes=10)
    nn.init.normal_(net.heads.head.weight)
    return settled(net, pixels(2, 3, 32, 32))


@network
def deeplab():
    DeepLabHead = torchvision.models.segmentation.deeplabv3.DeepLabHead
    body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 2, 2),
                         nn.BatchNorm2d(32), nn.ReLU())

    class DeepLab(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = body, DeepLabHead(32, 5, (2, 4, 6))

        def forward(self, x):
            y = self.head(self.body(x))
            return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)

    return settled(DeepLab(), pixels(2, 3, 64, 64))


class Pair(nn.Sequential):
    def __init__(self, ins, outs):
        super().__init__(nn.Conv2d(ins, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU(),
                         nn.Conv2d(outs, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU())


@network
def unet():
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([Pair(3, 8), Pair(8, 16), Pair(16, 32)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
            self.after = nn.ModuleList([Pair(32, 16), Pair(16, 8)])
            self.last = nn.Conv2d(8, 4, 1)

        def forward(self, x):
            kept = []
            for i, block in enumerate(self.down):
                x = block(x if i == 0 else F.max_pool2d(x, 2))
                kept.append(x)
            for i, (up, after) in enumerate(zip(self.up, self.after)):
                x = after(torch.cat([up(x), kept[-2 - i]], 1))
            return self.last(x)

    return settled(UNet(), pixels(2, 3, 32, 32))


class Silu(nn.Sequential):
    def __init__(self, ins, outs, kernel=1, stride=1):
        super().__init__(nn.Conv2d(ins, outs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outs), nn.SiLU())


class CrossStage(nn.Module):
    """Half of the channels go through bottlenecks, as in YOLOv5 and its successors."""

    def __init__(self, ins, outs, count):
        super().__init__()
        half = outs // 2
        self.first, self.side, self.last = Silu(ins, half), Silu(ins, half), Silu((2 + count) * half, outs)
        self.blocks = nn.ModuleList(nn.Sequential(Silu(half, half, 3), Silu(half, half, 3)) for _ in range(count))

    def forward(self, x):
        parts = [self.side(x), self.first(x)]
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


@network
def yolo():
    class Yolo(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(Silu(3, 8, 3, 2), Silu(8, 16, 3, 2), CrossStage(16, 16, 1))
            self.middle = nn.Sequential(Silu(16, 32, 3, 2), CrossStage(32, 32, 2))
            self.deep = nn.Sequential(Silu(32, 64, 3, 2), CrossStage(64, 64, 1))
            self.squeeze, self.after_pools = Silu(64, 32), Silu(128, 64)
            self.top, self.down = CrossStage(96, 32, 1), Silu(32, 32, 3, 2)
            self.bottom = CrossStage(96, 64, 1)
            self.heads = nn.ModuleList([nn.Conv2d(32, 3 * 9, 1), nn.Conv2d(64, 3 * 9, 1)])

        def forward(self, x):
            middle = self.middle(self.stem(x))
            y = self.squeeze(self.deep(middle))
            pools = [y]
            for _ in range(3):
                pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
            deep = self.after_pools(torch.cat(pools, 1))
            top = self.top(torch.cat([F.interpolate(deep, scale_factor=2.0, mode="nearest"), middle], 1))
            bottom = self.bottom(torch.cat([self.down(top), deep], 1))
            found = []
            for head, feature in zip(self.heads, (top, bottom)):
                y = head(feature)
                n, _, h, w = y.shape
                y = y.view(n, 3, 9, h, w).permute(0, 1, 3, 4, 2).sigmoid()
                found.append(y.reshape(n, -1, 9))
            return torch.cat(found, 1)

    return settled(Yolo(), pixels(2, 3, 64, 64))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.recurrent = kind(16, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.last = nn.Linear(48, 7)

    def forward(self, ids):
        return self.last(self.recurrent(self.embedding(ids))[0])


@network
def lstm():
    return Recurrent(nn.LSTM).eval(), tokens(50, 2, 9)


@network
def gru():
    return Recurrent(nn.GRU).eval(), tokens(50, 2, 9)


@network
def wavenet():
    class WaveNet(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            self.first = nn.Conv1d(1, width, 1)
            self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**i) for i in range(5))
            self.mixes = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(5))
            self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 32, 1))

        def forward(self, x):
            x, total = self.first(x), 0
            for i, (gate, mix) in enumerate(zip(self.gates, self.mixes)):
                value, share = gate(F.pad(x, (2**i, 0))).chunk(2, 1)
                kept, skip = mix(torch.tanh(value) * torch.sigmoid(share)).chunk(2, 1)
                x, total = x + kept, total + skip
            return self.last(total)

    return WaveNet().eval(), pixels(2, 1, 64)


def of_transformers(name, config, model, inputs, fields=("last_hidden_state",), fixed=None, names=None, **sizes):
    def make():
        import transformers

        made = getattr(transformers, config)(**sizes)
        made._attn_implementation = "eager" if name.endswith("_eager") else "sdpa"
        net = getattr(transformers, model)(made).eval()
        options = {"return_dict": True, **(fixed or {})}
        made = Named(net, *fields, **options).eval()
        made.names = names
        return made, inputs

    NETWORKS[name] = make


def ids_and_mask(vocabulary, batch, length):
    def make(seed):
        (ids,) = tokens(vocabulary, batch, length)(seed)
        mask = torch.ones(batch, length, dtype=torch.int64)
        mask[-1, length - 1 - seed % 3 :] = 0
        return ids, mask

    return make


def ids_and_positions(vocabulary, batch, length):
    def make(seed):
        (ids,) = tokens(vocabulary, batch, length)(seed)
        return ids, torch.arange(length).expand(batch, length).contiguous()

    return make


ENCODER = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
           "intermediate_size": 48, "max_position_embeddings": 40}
DECODER = {**ENCODER, "num_key_value_heads": 2}
UNCACHED = {"use_cache": False}
of_transformers("bert", "BertConfig", "BertModel", ids_and_mask(60, 2, 8), ("last_hidden_state", "pooler_output"),
                **ENCODER)
of_transformers("roberta", "RobertaConfig", "RobertaModel", ids_and_mask(60, 2, 8), **ENCODER)
of_transformers("distilbert", "DistilBertConfig", "DistilBertModel", ids_and_mask(60, 2, 8), vocab_size=60, dim=32,
                n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40)
of_transformers("gpt2", "GPT2Config", "GPT2LMHeadModel", ids_and_positions(60, 2, 8), ("logits",), UNCACHED,
                ("input_ids", "position_ids"), vocab_size=60, n_positions=32, n_embd=32, n_layer=2, n_head=4)
of_transformers("llama", "LlamaConfig", "LlamaForCausalLM", tokens(60, 2, 8), ("logits",), UNCACHED, **DECODER)
of_transformers("qwen2", "Qwen2Config", "Qwen2ForCausalLM", tokens(60, 2, 8), ("logits",), UNCACHED, **DECODER)
of_transformers("mistral", "MistralConfig", "MistralForCausalLM", tokens(60, 2, 8), ("logits",), UNCACHED, **DECODER)
of_transformers("t5_encoder", "T5Config", "T5EncoderModel", ids_and_mask(60, 2, 8), vocab_size=60, d_model=32, d_kv=8,
                d_ff=48, num_layers=2, num_heads=4)
of_transformers("wav2vec2", "Wav2Vec2Config", "Wav2Vec2Model", pixels(2, 800), hidden_size=32, num_hidden_layers=2,
                num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16, 16), conv_stride=(5, 4, 2),
                conv_kernel=(10, 8, 4), num_feat_extract_layers=3, num_conv_pos_embeddings=16,
                num_conv_pos_embedding_groups=4, mask_time_prob=0.0)
of_transformers("vit", "ViTConfig", "ViTModel", pixels(2, 3, 32, 32), hidden_size=32, num_hidden_layers=2,
                num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8)


@network
def clip():
    import transformers

    text = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 16, "eos_token_id": 59, "bos_token_id": 0}
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
              "image_size": 32, "patch_size": 8}
    net = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24))

    def inputs(seed):
        (ids,) = tokens(58, 2, 8)(seed)
        ids[:, -1] = 59
        return ids, pixels(2, 3, 32, 32)(seed)[0]

    return Named(net.eval(), "text_embeds", "image_embeds", return_dict=True).eval(), inputs


@network
def whisper_encoder():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=60, d_model=32, encoder_layers=2, encoder_attention_heads=4, decoder_layers=1,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=32, num_mel_bins=20,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    net = transformers.WhisperModel(config).get_encoder().eval()
    return Named(net, "last_hidden_state", return_dict=True).eval(), pixels(2, 20, 64)
