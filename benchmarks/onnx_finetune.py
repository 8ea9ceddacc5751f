#!/usr/bin/env python3
"""Fine-tuning a file of PyTorch's by one command, beside the same in PyTorch: accuracy and seconds.

    onnx_finetune.py [--data ../shared/data/cifar10_small] [--epochs 2] [--seeds 3] [--page docs/onnx.md]

A ResNet-18 with PyTorch's names is trained for an epoch to tell five pairs of CIFAR-10's classes apart, and exported. Both
sides then replace its last layer by one for the ten classes and train with AdamW, batches of 64, a rate of 0.001 that
rises for a twentieth of the steps and falls along a cosine: all layers, or the last block and layer with the others frozen.
The mean accuracy over the seeds is compared; orders, new layers and pretrained weights are others with each seed, and the
weights are the same for both. Needs torch and onnx in the Python that runs it, and a build ($SAMEBYTES_BUILD, else build).
Exit status 1 where the means are more than a point apart.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import torch
from torch import nn

from onnx_page import TOP, write_between

MARKERS = ("<!-- finetune -->", "<!-- end of finetune -->")
BATCH, RATE, DECAY, WARMUP = 64, 1e-3, 1e-2, 0.05
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# What is frozen: in a regular expression of Samebytes, and as the beginnings of names.
ROWS = {"all layers": ("", ()), "`--freeze 'conv1.*,bn1.*,layer[123].*'`": ("conv1.*,bn1.*,layer[123].*",
                                                                           ("conv1", "bn1", "layer1", "layer2", "layer3"))}


class Block(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """He et al. 2016, with the names of torchvision's resnet18."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for i, (before, width, stride) in enumerate([(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)], 1):
            setattr(self, f"layer{i}", nn.Sequential(Block(before, width, stride), Block(width, width, 1)))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def read(path):
    records = numpy.frombuffer(path.read_bytes(), numpy.uint8).reshape(-1, 3073)
    pixels = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 255)
    pixels = (pixels - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(DEVIATION).view(3, 1, 1)
    return pixels, torch.from_numpy(records[:, 0].astype(numpy.int64))


def train(net, pixels, labels, epochs, seed):
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY)
    steps = epochs * math.ceil(len(pixels) / BATCH)
    warm = round(WARMUP * steps)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warm if step < warm else
                                                 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm))))
    generator = torch.Generator().manual_seed(seed)
    net.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(pixels), generator=generator).split(BATCH):
            loss = nn.functional.cross_entropy(net(pixels[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def accuracy(net, pixels, labels):
    net.eval()
    with torch.no_grad():
        right = sum(int((net(x).argmax(1) == y).sum()) for x, y in zip(pixels.split(250), labels.split(250)))
    return right / len(labels)


def tuned_there(state, data, frozen, epochs, seed):
    torch.manual_seed(seed)
    net = ResNet18(5)
    net.load_state_dict(state)
    net.fc = nn.Linear(512, 10)
    for name, parameter in net.named_parameters():
        parameter.requires_grad = not name.startswith(frozen) if frozen else True
    start = time.perf_counter()
    train(net, *data["train"], epochs, seed)
    return accuracy(net, *data["test"]), time.perf_counter() - start


def tuned_here(command, path, folder, pattern, epochs, seed):
    words = [command, "train", str(path), "--data", str(folder), "--epochs", str(epochs), "--batch", str(BATCH), "--rate",
             str(RATE), "--weight-decay", str(DECAY), "--seed", str(seed), "--json", "--quiet"]
    words += ["--freeze", pattern] if pattern else []
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["test_accuracy"], time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=TOP.parent / "shared/data/cifar10_small",
                        help="a folder with unpack.py, or with train.bin and test.bin")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", type=pathlib.Path, help="the page that gets the table")
    given = parser.parse_args()
    torch.set_num_threads(os.cpu_count())
    command = os.path.join(os.environ.get("SAMEBYTES_BUILD", TOP / "build"), "samebytes")
    lines = ["| what is trained | Samebytes | PyTorch | difference | seconds | PyTorch's |", "|---|---|---|---|---|---|"]
    made = {row: [] for row in ROWS}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if (given.data / "unpack.py").exists():
            subprocess.run([sys.executable, str(given.data / "unpack.py"), name], check=True, stdout=subprocess.DEVNULL)
        else:
            folder = given.data
        data = {part: read(folder / f"{part}.bin") for part in ("train", "test")}
        for seed in range(1, given.seeds + 1):
            torch.manual_seed(seed)
            net = ResNet18(5)
            train(net, data["train"][0], data["train"][1] // 2, 1, seed)
            state = {key: value.clone() for key, value in net.state_dict().items()}
            path = pathlib.Path(name) / "resnet18.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(net, (data["test"][0][:2],), str(path), dynamo=False, do_constant_folding=False,
                                  opset_version=17, training=torch.onnx.TrainingMode.PRESERVE)
            for row, (pattern, frozen) in ROWS.items():
                made[row].append((*tuned_here(command, path, folder, pattern, given.epochs, seed),
                                  *tuned_there(state, data, frozen, given.epochs, seed)))
                print(row, seed, made[row][-1], file=sys.stderr, flush=True)
    is_good = True
    for row, results in made.items():
        here, seconds, there, theirs = (statistics.mean(column) for column in zip(*results))
        is_good = is_good and abs(here - there) <= 0.01
        lines.append(f"| {row} | {100 * here:.1f} % | {100 * there:.1f} % | {100 * (here - there):+.1f} points | {seconds:.0f} | "
                     f"{theirs:.0f} |")
    print("\n".join(lines))
    if given.page:
        write_between(given.page, MARKERS, "\n".join(lines))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
