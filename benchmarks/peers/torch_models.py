"""The workloads in PyTorch: models and batches, for its own peer and for the networks that others read."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from workloads import (
    GPT_DEVIATION,
    IMAGE_CLASSES,
    TRANSIT_CHANNELS,
    TRANSIT_DROPOUT,
    TRANSIT_GLOBAL,
    TRANSIT_GLOBAL_KERNELS,
    TRANSIT_HIDDEN,
    TRANSIT_LOCAL,
    TRANSIT_LOCAL_KERNELS,
)


class BasicBlock(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if channels_in != channels:
            shortcut = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for stage in range(3):
        for block in range(3):
            layers.append(BasicBlock(channels, 16 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 16 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, IMAGE_CLASSES))


def transit_branch(kernels, channels_last):
    layers, channels = [], 1
    for out, kernel in zip(TRANSIT_CHANNELS, kernels):
        if channels_last:  # which PyTorch has for images only: a view is an image of one row
            layers += [nn.Conv2d(channels, out, (1, kernel), padding=(0, kernel // 2)), nn.BatchNorm2d(out)]
            layers += [nn.ReLU(), nn.MaxPool2d((1, 2))]
        else:
            layers += [nn.Conv1d(channels, out, kernel, padding=kernel // 2), nn.BatchNorm1d(out)]
            layers += [nn.ReLU(), nn.MaxPool1d(2)]
        channels = out
    layers.append(nn.AdaptiveAvgPool2d(1) if channels_last else nn.AdaptiveAvgPool1d(1))
    return nn.Sequential(*layers, nn.Flatten())


class Transit(nn.Module):
    def __init__(self, channels_last):
        super().__init__()
        features = 2 * TRANSIT_CHANNELS[-1]
        self.glob = transit_branch(TRANSIT_GLOBAL_KERNELS, channels_last)
        self.local = transit_branch(TRANSIT_LOCAL_KERNELS, channels_last)
        self.head = nn.Sequential(
            nn.LayerNorm(features),
            nn.Linear(features, TRANSIT_HIDDEN),
            nn.ReLU(),
            nn.Dropout(TRANSIT_DROPOUT),
            nn.Linear(TRANSIT_HIDDEN, 1),
        )

    def forward(self, glob, local):
        return self.head(torch.cat([self.glob(glob), self.local(local)], 1)).view(-1)


class Block(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.heads, self.dropout = form.heads, form.dropout
        self.norm1, self.norm2 = nn.LayerNorm(form.width), nn.LayerNorm(form.width)
        self.project, self.result = nn.Linear(form.width, 3 * form.width), nn.Linear(form.width, form.width)
        self.up, self.down = nn.Linear(form.width, 4 * form.width), nn.Linear(4 * form.width, form.width)

    def drop(self, x):
        return F.dropout(x, self.dropout) if self.training and self.dropout > 0 else x

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.project(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        x = x + self.drop(self.result(y))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Gpt(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.dropout = form.dropout
        self.tokens, self.positions = nn.Embedding(form.vocabulary, form.width), nn.Embedding(form.context, form.width)
        self.blocks = nn.ModuleList([Block(form) for _ in range(form.layers)])
        self.norm = nn.LayerNorm(form.width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=GPT_DEVIATION)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        if self.training and self.dropout > 0:
            x = F.dropout(x, self.dropout)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, IMAGE_CLASSES)
    )


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(7 * 7 * 64, 128), nn.ReLU(), nn.Linear(128, IMAGE_CLASSES)),
    )


def make_model(workload, channels_last=False):
    """In training mode, with the same weights each time."""
    torch.manual_seed(1)
    if workload.gpt:
        return Gpt(workload.gpt)
    makers = {"mlp": mlp, "cnn": cnn, "resnet20": resnet20, "transit": lambda: Transit(channels_last)}
    model = makers[workload.name]()
    return model.to(memory_format=torch.channels_last) if channels_last else model


def make_batch(workload, channels_last=False):
    """The inputs of the model, and the target: the same numbers each time."""
    torch.manual_seed(2)
    n = workload.batch
    if workload.gpt:
        form = workload.gpt
        return (torch.randint(form.vocabulary, (n, form.context)),), torch.randint(form.vocabulary, (n, form.context))
    if workload.name == "transit":
        views = [torch.randn(n, 1, points) for points in (TRANSIT_GLOBAL, TRANSIT_LOCAL)]
        if channels_last:
            views = [view.unsqueeze(2).to(memory_format=torch.channels_last) for view in views]
        return tuple(views), torch.randint(2, (n,)).float()
    height, width, channels = workload.image
    images = 2 * torch.rand(n, channels, height, width) - 1
    if channels_last:
        images = images.to(memory_format=torch.channels_last)
    return (images,), torch.randint(IMAGE_CLASSES, (n,))


def loss_of(workload, output, target):
    if workload.name == "transit":
        return F.binary_cross_entropy_with_logits(output, target)
    return F.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))
