"""The rows of build/bench_sweep_ops in PyTorch: the calls that a user of PyTorch would write.

A row has the tensors in the shapes and layouts of ours, those that take a gradient first. `prepare` turns them into
PyTorch's own (not timed) and may give several ways, such as layouts, of which the fastest counts.

Over 400 lines because it is one table, a row for each public op.
"""

import torch
import torch.nn.functional as F

ROWS = {}


def row(name, forward=None, prepare=None):
    """Registers forward(*tensors); prepare(*tensors) gives a list of argument lists."""
    if forward is None:
        return lambda f: row(name, f, prepare)
    ROWS[name] = (forward, prepare or (lambda *x: [list(x)]))
    return forward


def long(t):
    return t.long() if t.dtype in (torch.int32, torch.uint8) else t


def plain(*x):
    """Labels and indices as PyTorch wants them."""
    return [[long(t) for t in x]]


def images(x, *rest):
    """[N, H, W, C] as channels last and as [N, C, H, W]."""
    nchw = x.permute(0, 3, 1, 2)
    return [[nchw.detach(), *rest], [nchw.contiguous(), *rest]]


def sequences(x, *rest):
    ncl = x.permute(0, 2, 1)
    return [[ncl.contiguous(), *rest]]


# ---- pointwise

row("operator+", torch.add)
row("operator-", torch.sub)
row("operator*", torch.mul)
row("operator/", torch.div)
row("operator-/negative", torch.neg)
row("operator+/scalar", lambda x: x + 1.5)
row("operator-/from_scalar", lambda x: 1.5 - x)
row("operator*/scalar", lambda x: x * 1.5)
row("operator//scalar", lambda x: x / 1.5)
row("operator//into_scalar", lambda x: 1.5 / x)
row("operator+/row", torch.add)
row("operator*/column", torch.mul)
row("maximum", torch.maximum)
row("minimum", torch.minimum)
row("pow", lambda x: torch.pow(x, 1.7))
row("pow/array", lambda a, b: torch.pow(torch.abs(a), b))
row("pow/cube", lambda x: torch.pow(x, 3.0))
for name in ("exp", "expm1", "log", "sqrt", "rsqrt", "square", "abs", "sin", "cos", "sign", "floor",
             "round", "erf", "tanh", "sigmoid"):
    row(name, getattr(torch, name))
for name in ("remainder", "fmod", "atan2", "exp2", "log1p", "log2", "log10", "reciprocal", "tan", "asin", "acos",
             "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "ceil", "trunc", "isnan", "isinf", "isfinite",
             "logical_not", "logical_and", "logical_or", "logical_xor"):
    row(name, getattr(torch, name))
row("operator!", lambda x: ~(x > 0))
row("operator&", lambda a, b: (a > 0) & (b > 0))
row("operator|", lambda a, b: (a > 0) | (b > 0))
row("operator^", lambda a, b: (a > 0) ^ (b > 0))
row("operator<", torch.lt)
row("operator>", torch.gt)
row("relu", torch.relu)
row("silu", F.silu)
row("gelu", F.gelu)
row("gelu/tanh", lambda x: F.gelu(x, approximate="tanh"))
row("leaky_relu", F.leaky_relu)
row("prelu", F.prelu)
row("elu", F.elu)
row("selu", F.selu)
row("softplus", F.softplus)
row("mish", F.mish)
row("relu6", F.relu6)
row("hard_sigmoid", F.hardsigmoid)
row("hard_swish", F.hardswish)
row("log_sigmoid", F.logsigmoid)
row("glu", F.glu)
row("clip", lambda x: torch.clamp(x, -1, 1))
row("clip/below", lambda x: torch.clamp(x, min=-1))
row("equal", torch.eq)
row("not_equal", torch.ne)
row("less", torch.lt)
row("less_equal", torch.le)
row("greater", torch.gt)
row("greater_equal", torch.ge)
row("where", lambda a, b, c: torch.where(c, a, b))
row("masked_fill", lambda x, mask: x.masked_fill(mask, 2.0))
row("astype/bf16", lambda x: x.to(torch.bfloat16))
row("astype/f16", lambda x: x.to(torch.float16))
row("astype/i32", lambda x: x.to(torch.int32))
row("astype/f64", lambda x: x.to(torch.float64))

# ---- layout, elements by their numbers, leaves

row("reshape", lambda x: x.reshape(-1))
row("transpose", lambda x: x.transpose(0, 1))
row("slice", lambda x: x[3:-5])
row("slice/step", lambda x: x[:, ::2].contiguous())
row("flip", lambda x: torch.flip(x, (0, 1)))
row("split", lambda x: torch.split(x, x.shape[1] // 4, 1))
row("squeeze", lambda x: x.unsqueeze(1).squeeze(1))
row("unsqueeze", lambda x: x.unsqueeze(1))
row("flatten", lambda x: x.flatten(1))
row("copy", torch.clone)
row("contiguous/transpose", lambda x: x.t().contiguous())
row("contiguous/channels_first", lambda x: x.permute(0, 3, 1, 2).contiguous())
row("contiguous/heads", lambda x: x.view(x.shape[0], x.shape[1], 4, -1).permute(0, 2, 1, 3).contiguous())
row("concat/rows", lambda *x: torch.cat(x, 0))
row("concat/columns", lambda *x: torch.cat(x, 1))
row("stack", lambda *x: torch.stack(x, 1))
row("tile", lambda x: torch.tile(x, (2, 2)))
row("repeat_interleave", lambda x: torch.repeat_interleave(x, 3, 1))
row("roll", lambda x: torch.roll(x, 5, 1))
PAD = (2, 1, 1, 2)
for mode in ("constant", "reflect", "replicate", "circular"):
    row(f"pad/{mode}", lambda x, mode=mode: F.pad(x, PAD, mode=mode), images)
row("embedding", lambda table, ids: F.embedding(ids, table), plain)
row("take/rows", lambda x, i: torch.index_select(x, 0, i), plain)
row("take/columns", lambda x, i: torch.index_select(x, 1, i), plain)
row("gather/rows", lambda x, i: torch.gather(x, 0, i), plain)
row("gather/columns", lambda x, i: torch.gather(x, 1, i), plain)
row("scatter_add/rows", lambda x, src, i: torch.scatter_add(x, 0, i, src), plain)
row("scatter_add/columns", lambda x, src, i: torch.scatter_add(x, 1, i, src), plain)


# `shape` is the number of elements of the result, in a tuple.
row("broadcast_to", lambda x, shape: x.expand(shape[0] // x.shape[0], -1).contiguous())
row("one_hot", lambda ids, shape: F.one_hot(ids, shape[0] // len(ids)).float(), plain)
row("full", lambda shape: torch.full(shape, 1.5))
row("arange", lambda shape: torch.arange(0.0, shape[0]))
row("uniform", lambda shape: torch.rand(shape))
row("normal", lambda shape: torch.randn(shape))
WITH_SHAPE = {"broadcast_to", "one_hot", "full", "arange", "uniform", "normal"}

# ---- reductions, norms, order

row("sum", torch.sum)
row("mean", torch.mean)
row("max", torch.amax)
row("all", torch.all)
row("any", torch.any)
for axis, along in enumerate(("rows", "columns")):
    row(f"sum/{along}", lambda x, axis=axis: torch.sum(x, axis))
    row(f"mean/{along}", lambda x, axis=axis: torch.mean(x, axis))
    row(f"max/{along}", lambda x, axis=axis: torch.amax(x, axis))
    row(f"min/{along}", lambda x, axis=axis: torch.amin(x, axis))
    row(f"argmax/{along}", lambda x, axis=axis: torch.argmax(x, axis))
    row(f"cumsum/{along}", lambda x, axis=axis: torch.cumsum(x, axis))
    row(f"cumprod/{along}", lambda x, axis=axis: torch.cumprod(x, axis))
    row(f"sort/{along}", lambda x, axis=axis: torch.sort(x, dim=axis, stable=True))
    row(f"top_k/{along}", lambda x, axis=axis: torch.topk(x, 8, axis))
    row(f"var/{along}", lambda x, axis=axis: torch.var(x, axis))
    row(f"std/{along}", lambda x, axis=axis: torch.std(x, axis))
    row(f"norm/{along}", lambda x, axis=axis: torch.linalg.vector_norm(x, dim=axis))
    row(f"logsumexp/{along}", lambda x, axis=axis: torch.logsumexp(x, axis))
    row(f"prod/{along}", lambda x, axis=axis: torch.prod(x, axis))
    row(f"argmin/{along}", lambda x, axis=axis: torch.argmin(x, axis))
    row(f"quantile/{along}", lambda x, axis=axis: torch.quantile(x, 0.3, axis))
    row(f"median/{along}", lambda x, axis=axis: torch.quantile(x, 0.5, axis))
row("bincount", lambda x: torch.bincount((x.abs() * 50).int().view(-1), minlength=256)[:256])
row("histogram", lambda x: torch.histc(x, 100, -1, 1))
row("tril", torch.tril)
row("triu", torch.triu)
row("einsum", lambda x: torch.einsum("ij,kj->ik", x, x))
row("sum/space", lambda x: torch.sum(x, (1, 2)))
row("sum_of_squares", lambda x: x.square().sum())
row("sum_to", lambda x: x.sum_to_size(x.shape[1]))
row("all_finite", lambda x: torch.isfinite(x).all())
row("cumsum/flat", lambda x: torch.cumsum(x.view(-1), 0))
row("sort/flat", lambda x: torch.sort(x, stable=True))
row("top_k/flat", lambda x: torch.topk(x, 50))
row("argsort", lambda x: torch.argsort(x, stable=True))
row("softmax", lambda x: F.softmax(x, -1))
row("log_softmax", lambda x: F.log_softmax(x, -1))
row("layer_norm", lambda x, w, b: F.layer_norm(x, w.shape, w, b))
row("rms_norm", lambda x, w: F.rms_norm(x, w.shape, w))
row("group_norm", lambda x, w, b: F.group_norm(x, 4, w, b), images)
row("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), images)


def statistics(x, w, b):
    return [[*way, torch.zeros_like(w), torch.ones_like(w)] for way in images(x, w, b)]


row("batch_norm_train", lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, training=True), statistics)
row("batch_norm_eval", lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b), statistics)

# ---- networks

row("matmul", torch.matmul)
row("matmul/batch", torch.matmul)
row("matmul/batch_of_8", torch.matmul)
row("matmul/row", torch.matmul)
row("matmul/vector", torch.matmul)
row("linear", F.linear)


def eight_bits(x):
    """A weight of [N, K] as whole numbers with a scale for each 32 of them, as Q8_0 has it."""
    n, k = x.shape[1], x.shape[1]
    return [[x, torch.randint(-127, 128, (n, k // 32, 32), dtype=torch.int8), torch.rand(n, k // 32, 1)]]


@row("quantised_linear", prepare=eight_bits)
def quantised_linear(x, q, scale):
    return F.linear(x, (q * scale).view(len(q), -1))


row("int8_linear", lambda x, w, b: F.linear(x, w, b))


def blocks_of_eight_bits(b):
    return [[b.view(-1, 34)[:, 2:].contiguous().view(torch.int8), torch.rand(b.numel() // 34, 1)]]


@row("dequantise", prepare=blocks_of_eight_bits)
def dequantise(q, scale):
    return q * scale


def filters(x, w, b):
    kernel = w.permute(3, 2, 0, 1)
    first, second = images(x)
    return [[*first, kernel.contiguous(memory_format=torch.channels_last), b], [*second, kernel.contiguous(), b]]


row("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), filters)
row("int8_conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), filters)
row("conv2d/1x1", lambda x, w, b: F.conv2d(x, w, b), filters)
row("conv2d/5x5", lambda x, w, b: F.conv2d(x, w, b, padding=2), filters)
row("conv2d/stride", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), filters)
row("conv2d/dilation", lambda x, w, b: F.conv2d(x, w, b, padding=2, dilation=2), filters)
row("conv2d/groups", lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=4), filters)
row("conv2d/depthwise", lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=x.shape[1]), filters)
row("conv_transpose2d", lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1), filters)


def filters1d(x, w, b):
    return [[*sequences(x)[0], w.permute(2, 1, 0).contiguous(), b]]


row("conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=2), filters1d)
row("int8_conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=2), filters1d)
row("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1), filters1d)


@row("conv3d", prepare=lambda x, w, b: [
    [x.permute(0, 4, 1, 2, 3).detach(), w.permute(4, 3, 0, 1, 2).contiguous(memory_format=torch.channels_last_3d), b],
    [x.permute(0, 4, 1, 2, 3).contiguous(), w.permute(4, 3, 0, 1, 2).contiguous(), b],
])
def conv3d(x, w, b):
    return F.conv3d(x, w, b, padding=1)


row("max_pool1d", lambda x: F.max_pool1d(x, 2), sequences)
row("avg_pool1d", lambda x: F.avg_pool1d(x, 2), sequences)
row("global_avg_pool1d", lambda x: x.mean(2), sequences)
row("max_pool2d", lambda x: F.max_pool2d(x, 2), images)
row("max_pool2d/overlap", lambda x: F.max_pool2d(x, 3, 2, 1), images)
row("avg_pool2d", lambda x: F.avg_pool2d(x, 2), images)
row("avg_pool2d/overlap", lambda x: F.avg_pool2d(x, 3, 2, 1), images)
row("global_avg_pool2d", lambda x: x.mean((2, 3)), images)
row("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 7), sequences)
row("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 7), sequences)
row("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 3), images)
row("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 3), images)
row("resize/nearest", lambda x: F.interpolate(x, scale_factor=2), images)
row("resize/bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), images)
row("resize/smaller", lambda x: F.interpolate(x, scale_factor=0.4, mode="bilinear"), images)


def volumes(x, *rest):
    return [[x.permute(0, 4, 1, 2, 3).contiguous(), *rest]]


def channels_first(t):
    return t.permute(0, t.dim() - 1, *range(1, t.dim() - 1)).contiguous()


def places(x, index):
    """Values of a pooling and their places, both channels first."""
    return [[channels_first(x), channels_first(index).long()]]


row("max_pool2d/dilation", lambda x: F.max_pool2d(x, 2, dilation=2), images)
row("max_pool3d", lambda x: F.max_pool3d(x, 2), volumes)
row("avg_pool3d", lambda x: F.avg_pool3d(x, 2), volumes)
row("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, 3), volumes)
row("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, 3), volumes)
row("max_pool1d_with_indices", lambda x: F.max_pool1d(x, 2, return_indices=True)[0], sequences)
row("max_pool2d_with_indices", lambda x: F.max_pool2d(x, 2, return_indices=True)[0], images)
row("max_pool3d_with_indices", lambda x: F.max_pool3d(x, 2, return_indices=True)[0], volumes)
row("lp_pool1d", lambda x: F.lp_pool1d(x, 2, 2), sequences)
row("lp_pool2d", lambda x: F.lp_pool2d(x, 2, 2), images)
row("lp_pool3d", lambda x: F.lp_pool3d(x, 2, 2), volumes)
row("max_unpool1d", lambda x, i: F.max_unpool1d(x, i, 2), places)
row("max_unpool2d", lambda x, i: F.max_unpool2d(x, i, 2), places)
row("max_unpool3d", lambda x, i: F.max_unpool3d(x, i, 2), places)
row("interpolate/cubic", lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), images)
row("interpolate/antialias", lambda x: F.interpolate(x, scale_factor=0.4, mode="bilinear", antialias=True), images)
row("resample_axis", lambda x: x[::2].contiguous())
row("unfold", lambda x: F.unfold(x, 3, padding=1), lambda x: [[channels_first(x)]])


@row("fold", prepare=lambda x: [[x.permute(0, 3, 2, 1).flatten(1, 2).contiguous()]])
def fold(x):
    side = round(x.shape[2] ** 0.5)
    return F.fold(x, (side, side), 3, padding=1)


row("grid_sample", lambda x, grid: F.grid_sample(x, grid, align_corners=False), images)


@row("affine_grid")
def affine_grid(theta):
    side = {1: 8, 4: 28, 16: 64}[theta.shape[0]]
    return F.affine_grid(theta, (theta.shape[0], 1, side, side), align_corners=False)


@row("roi_align", prepare=images)
def roi_align(x):
    try:
        from torchvision.ops import roi_align as align
    except RuntimeError as other_build:  # of another build of PyTorch
        raise ImportError(f"torchvision: {other_build}") from other_build
    boxes = torch.tensor([[0, 0.3 * r, 0.5, 0.3 * r + 4, 5.5] for r in range(8)], device=x.device)
    return align(x, boxes, 7, 1.0, 2)


row("conv_transpose3d", lambda x, w, b: F.conv_transpose3d(x, w, b, stride=2, padding=1),
    lambda x, w, b: [[channels_first(x), w.permute(4, 3, 0, 1, 2).contiguous(), b]])
row("scatter/rows", lambda x, src, i: torch.scatter(x, 0, i, src), plain)
row("scatter_reduce/amax", lambda x, src, i: torch.scatter_reduce(x, 0, i, src, "amax"), plain)


def attend(q, k, v, causal=False):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)


row("scaled_dot_product_attention", attend)
row("scaled_dot_product_attention/causal", lambda q, k, v: attend(q, k, v, True))
row("packed_attention", lambda qkv: attend(*qkv.split(qkv.shape[2] // 3, 2), True))


def angles(x):
    half = x.shape[-1] // 2
    turn = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    return turn.cos(), turn.sin()


def halves(x):
    cos, sin = angles(x)
    return [[x, torch.cat((cos, cos), -1)[:, None], torch.cat((sin, sin), -1)[:, None]]]


@row("rotary", prepare=halves)
def rotary(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


@row("rotary/interleaved", prepare=lambda x: [[x, torch.complex(*angles(x))[:, None]]])
def interleaved(x, turn):
    pairs = torch.view_as_complex(x.view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).flatten(3)


class Recurrent(torch.nn.Module):
    """PyTorch's layer, whose weights are those of the row."""

    def __init__(self, layer, x, *weights):
        super().__init__()
        self.layer = layer(x.shape[2], weights[1].shape[1], batch_first=True)
        self.weights = [getattr(self.layer, name) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]
        with torch.no_grad():
            for own, given in zip(self.weights, weights):
                own.copy_(given)


def recurrent(layer):
    def prepare(x, *weights):
        module = Recurrent(layer, x, *weights)
        return [[x, *module.weights, module]]

    return prepare


row("lstm", lambda x, *rest: rest[-1].layer(x)[0], recurrent(torch.nn.LSTM))
row("gru", lambda x, *rest: rest[-1].layer(x)[0], recurrent(torch.nn.GRU))

# ---- losses

row("cross_entropy", F.cross_entropy, plain)
row("cross_entropy/smooth", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), plain)
row("cross_entropy/few_classes", F.cross_entropy, plain)
row("cross_entropy/probabilities", F.cross_entropy)
row("nll_loss", F.nll_loss, plain)
row("multi_margin_loss", F.multi_margin_loss, plain)
row("linear_cross_entropy", lambda x, w, t: F.cross_entropy(F.linear(x, w), t), plain)


@row("focal_loss", prepare=plain)
def focal_loss(x, t):
    loss = F.cross_entropy(x, t, reduction="none")
    return ((1 - torch.exp(-loss)) ** 2.0 * loss).mean()


@row("sigmoid_focal_loss")
def sigmoid_focal_loss(x, t):  # torchvision's
    p = torch.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    p_t = p * t + (1 - p) * (1 - t)
    return ((0.25 * t + 0.75 * (1 - t)) * loss * (1 - p_t) ** 2.0).mean()


row("bce_with_logits", F.binary_cross_entropy_with_logits)
row("bce_loss", F.binary_cross_entropy)
row("kl_div", F.kl_div)
row("mse_loss", F.mse_loss)
row("l1_loss", F.l1_loss)
row("smooth_l1_loss", F.smooth_l1_loss)
row("huber_loss", F.huber_loss)
row("hinge_loss", lambda x, t: torch.clamp(1 - t * x, min=0).mean())
row("hinge_embedding_loss", lambda x, t: F.hinge_embedding_loss(x, torch.sign(t)))
row("gaussian_nll_loss", lambda mean, var, t: F.gaussian_nll_loss(mean, t, var))
row("margin_ranking_loss", F.margin_ranking_loss)
row("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, -1))
row("cosine_embedding_loss", F.cosine_embedding_loss)
row("triplet_margin_loss", F.triplet_margin_loss)


@row("nt_xent_loss")
def nt_xent_loss(z):
    n = len(z) // 2
    z = F.normalize(z, dim=1)
    scores = (z @ z.t() / 0.5).fill_diagonal_(float("-inf"))
    return F.cross_entropy(scores, torch.arange(2 * n).roll(n))


# ---- draws and updates

row("dropout", lambda x: F.dropout(x, 0.5))
row("categorical", lambda x: torch.multinomial(F.softmax(x, -1), 1))
row("multinomial", lambda x: torch.multinomial(x, 8))
row("multinomial/replacement", lambda x: torch.multinomial(x, 8, replacement=True))


@row("round_stochastic")
def round_stochastic(x, salt):
    del salt
    bits = x.view(torch.int32) + torch.randint_like(x, 1 << 16, dtype=torch.int32)
    return (bits & -65536).view(torch.float32).to(torch.bfloat16)


@row("update_slice", prepare=lambda value: [[value, torch.zeros(4 * value.shape[0], value.shape[1])]])
def update_slice(value, cell):
    cell.narrow(0, 2 * value.shape[0], value.shape[0]).copy_(value)
    return cell


@row("update_parts", prepare=lambda a, b: [[a, b, torch.zeros(4 * len(a))]])
def update_parts(a, b, cell):
    torch._foreach_copy_([cell[: len(a)], cell[2 * len(a) : 3 * len(a)]], [a, b])
    return cell


PLANES = {1024: (32, 32), 102400: (256, 400), 2048 * 2048: (2048, 2048)}


def adafactor(gradient):
    p = torch.nn.Parameter(torch.rand(PLANES[len(gradient)]))
    p.grad = gradient.view_as(p)
    return [[gradient, p, torch.optim.Adafactor([p], lr=1e-3)]]


@row("adafactor_update", prepare=adafactor)
def adafactor_update(gradient, p, optimizer):
    del gradient
    optimizer.step()
    return p


@row("lars_update", prepare=lambda g: [[g, torch.rand_like(g), torch.zeros_like(g)]])
def lars_update(g, p, momentum):
    p_norm, g_norm = p.norm(), g.norm()
    ratio = torch.where(p_norm * g_norm > 0, 1e-3 * p_norm / (g_norm + 1e-4 * p_norm), 1.0)
    momentum.mul_(0.9).add_((g + 1e-4 * p) * ratio)
    p.add_(momentum, alpha=-1e-4)
    return ratio


@row("lamb_update", prepare=lambda g: [[g, torch.rand_like(g), torch.zeros_like(g), torch.zeros_like(g)]])
def lamb_update(g, p, moment1, moment2):
    moment1.lerp_(g, 0.1)
    moment2.mul_(0.999).addcmul_(g, g, value=0.001)
    r = moment1 / (moment2.sqrt() + 1e-6) + 0.01 * p
    p_norm, r_norm = p.norm(), r.norm()
    p.sub_(1e-4 * torch.where(p_norm * r_norm > 0, p_norm / r_norm, 1.0) * r)
    return p
