#!/usr/bin/env python3
"""Hugging Face folders of every family that models::from_pretrained builds, against transformers.

For each family: a tiny random model is saved by transformers, build/check_pretrained runs it, and the two are compared:
outputs, gradients of all parameters, greedy text, and whether transformers loads what save_pretrained wrote. Prints the
table of docs/language_models.md; --write puts it there. Needs torch, transformers and safetensors.

    SAMEBYTES_PEERS=DIR benchmarks/pretrained_families.py [--only llama] [--keep DIR] [--write]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "language_models.md"
ZERO_GRADIENT = 1e-7  # of the network's largest one: what f32 rounds off


def use_peers():
    """Starts again under the Python of SAMEBYTES_PEERS, if it is set."""
    peers = os.environ.get("SAMEBYTES_PEERS")
    if peers and pathlib.Path(sys.prefix).resolve() != pathlib.Path(peers).resolve():
        os.execv(f"{peers}/bin/python", [f"{peers}/bin/python", *sys.argv])


DECODER = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
               num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=None,
               pad_token_id=None)
ENCODER = dict(vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
               max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
IMAGE = dict(image_size=24, patch_size=8, hidden_size=48, intermediate_size=80, num_hidden_layers=2,
             num_attention_heads=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=5)


def rope(kind, **more):
    return {"rope_type": kind, "rope_theta": 500.0, **more}


def families():
    """name -> (class, config class, options); names with a slash are variants of one family."""
    import transformers as t
    short = [1.0 + 0.05 * i for i in range(6)]
    long = [1.5 + 0.4 * i for i in range(6)]
    return {
        "llama": (t.LlamaForCausalLM, t.LlamaConfig, DECODER),
        "llama/tied, biases": (t.LlamaForCausalLM, t.LlamaConfig,
                               {**DECODER, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
        "llama/linear": (t.LlamaForCausalLM, t.LlamaConfig,
                         {**DECODER, "rope_parameters": rope("linear", factor=2.5)}),
        "llama/dynamic": (t.LlamaForCausalLM, t.LlamaConfig,
                          {**DECODER, "max_position_embeddings": 16, "rope_parameters": rope("dynamic", factor=3.0)}),
        "llama/llama3": (t.LlamaForCausalLM, t.LlamaConfig,
                         {**DECODER, "rope_parameters": rope("llama3", factor=8.0, low_freq_factor=1.0,
                                                             high_freq_factor=4.0,
                                                             original_max_position_embeddings=32)}),
        "llama/yarn": (t.LlamaForCausalLM, t.LlamaConfig,
                       {**DECODER, "rope_parameters": rope("yarn", factor=4.0, original_max_position_embeddings=16)}),
        "llama/classifier": (t.LlamaForSequenceClassification, t.LlamaConfig,
                             {**DECODER, "pad_token_id": 0, "num_labels": 3}),
        "mistral": (t.MistralForCausalLM, t.MistralConfig, {**DECODER, "sliding_window": 7}),
        "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config, DECODER),
        "qwen2/window": (t.Qwen2ForCausalLM, t.Qwen2Config,
                         {**DECODER, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
        "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config, {**DECODER, "head_dim": 16}),
        "smollm3": (t.SmolLM3ForCausalLM, t.SmolLM3Config, {**DECODER, "no_rope_layer_interval": 2}),
        "phi3": (t.Phi3ForCausalLM, t.Phi3Config, DECODER),
        "phi3/longrope, partial": (t.Phi3ForCausalLM, t.Phi3Config,
                                   {**DECODER, "hidden_size": 64, "sliding_window": 9,
                                    "original_max_position_embeddings": 16,
                                    "rope_parameters": rope("longrope", short_factor=short, long_factor=long,
                                                            partial_rotary_factor=0.75,
                                                            original_max_position_embeddings=16)}),
        "gemma2": (t.Gemma2ForCausalLM, t.Gemma2Config,
                   {**DECODER, "head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 24}),
        "gemma3": (t.Gemma3ForCausalLM, t.Gemma3TextConfig,
                   {**DECODER, "head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 24,
                    "num_hidden_layers": 4, "sliding_window_pattern": 2}),
        "gpt2": (t.GPT2LMHeadModel, t.GPT2Config,
                 dict(vocab_size=97, n_positions=64, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                      attn_pdrop=0.0, bos_token_id=None, eos_token_id=None)),
        "bert": (t.BertModel, t.BertConfig, ENCODER),
        "bert/masked language": (t.BertForMaskedLM, t.BertConfig, ENCODER),
        "bert/classifier": (t.BertForSequenceClassification, t.BertConfig, {**ENCODER, "num_labels": 3}),
        "bert/tokens": (t.BertForTokenClassification, t.BertConfig, {**ENCODER, "num_labels": 4}),
        "roberta": (t.RobertaModel, t.RobertaConfig, {**ENCODER, "pad_token_id": 1, "type_vocab_size": 1}),
        "roberta/masked language": (t.RobertaForMaskedLM, t.RobertaConfig,
                                    {**ENCODER, "pad_token_id": 1, "type_vocab_size": 1}),
        "roberta/classifier": (t.RobertaForSequenceClassification, t.RobertaConfig,
                               {**ENCODER, "pad_token_id": 1, "type_vocab_size": 1, "num_labels": 3}),
        "distilbert": (t.DistilBertModel, t.DistilBertConfig,
                       dict(vocab_size=97, dim=48, hidden_dim=80, n_layers=2, n_heads=4, max_position_embeddings=64,
                            dropout=0.0, attention_dropout=0.0)),
        "distilbert/classifier": (t.DistilBertForSequenceClassification, t.DistilBertConfig,
                                  dict(vocab_size=97, dim=48, hidden_dim=80, n_layers=2, n_heads=4,
                                       max_position_embeddings=64, dropout=0.0, attention_dropout=0.0,
                                       seq_classif_dropout=0.0, num_labels=3)),
        "vit": (t.ViTModel, t.ViTConfig, IMAGE),
        "vit/classifier": (t.ViTForImageClassification, t.ViTConfig, IMAGE),
        "deit/classifier": (t.DeiTForImageClassification, t.DeiTConfig, IMAGE),
        "resnet/basic": (t.ResNetForImageClassification, t.ResNetConfig,
                         dict(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type="basic",
                              num_labels=5)),
        "resnet/bottleneck": (t.ResNetForImageClassification, t.ResNetConfig,
                              dict(embedding_size=8, hidden_sizes=[16, 32], depths=[2, 1], layer_type="bottleneck",
                                   num_labels=5)),
    }


def make(name, folder):
    """The model, saved into the folder; weights are made large enough for every term to count."""
    import torch
    cls, config_class, options = families()[name]
    torch.manual_seed(7)
    config = config_class(**options)
    config._attn_implementation = "eager"
    model = cls(config).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() < 2:
                parameter.add_(torch.randn_like(parameter) * 0.2)
            elif parameter.dim() == 2:
                parameter.copy_(torch.randn_like(parameter) * 0.15)
        for key, value in model.named_buffers():
            if key.endswith("running_mean"):
                value.copy_(torch.randn_like(value) * 0.3)
            if key.endswith("running_var"):
                value.copy_(torch.rand_like(value) + 0.5)
    model.save_pretrained(folder)
    return model


def inputs_of(name, model):
    """Arrays for check_pretrained, and the same as arguments of transformers' model."""
    import torch
    torch.manual_seed(11)
    if hasattr(model.config, "num_channels"):
        size = getattr(model.config, "image_size", 40)
        pixels = torch.randn(2, 3, size, size)
        return {"x": pixels.permute(0, 2, 3, 1).contiguous()}, {"pixel_values": pixels}
    ids = torch.randint(3, 97, (2, 24))
    if model.config.model_type in ("bert", "roberta", "distilbert"):
        lengths = torch.tensor([24, 17])
        mask = (torch.arange(24)[None, :] < lengths[:, None]).long()
        ids = torch.where(mask == 1, ids, torch.tensor(model.config.pad_token_id))
        given = {"input_ids": ids, "attention_mask": mask}
        arrays = {"x": ids.int(), "lengths": lengths.int()}
        if model.config.model_type == "bert":
            types = (torch.arange(24)[None, :] > 9).long().expand(2, 24).contiguous()
            given["token_type_ids"] = types
            arrays["types"] = types.int()
        return arrays, given
    return {"x": ids.int()}, {"input_ids": ids}


def output_of(result):
    return result.logits if "logits" in result else result.last_hidden_state


def far(ours, theirs):
    """The largest difference, relative to the largest value."""
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-30))


def gradients_in_double(model, given, weight):
    """The same gradients in double, which say which of them are 0 but for rounding, as those of a key's bias are."""
    import copy
    exact = copy.deepcopy(model).double()
    exact.zero_grad()
    doubled = {key: value.double() if value.is_floating_point() else value for key, value in given.items()}
    result = output_of(exact(**doubled))
    if result.dim() == 4:
        result = result.permute(0, 2, 3, 1)
    (result * weight.double()).sum().backward()
    return {key: value.grad for key, value in exact.named_parameters(remove_duplicate=True)}


def compare(name, folder, program):
    """A row of the table; raises where something cannot be compared."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
    model = make(name, folder)
    arrays, given = inputs_of(name, model)
    result = model(**given)
    theirs = output_of(result)
    # Places that are padding are compared with nothing.
    weight = torch.randn_like(theirs)
    counts = given.get("attention_mask")
    if counts is not None and theirs.dim() == 3:
        weight = weight * counts[:, :, None]
    if theirs.dim() == 4:
        theirs, weight = theirs.permute(0, 2, 3, 1), weight.permute(0, 2, 3, 1).contiguous()
    (theirs * weight).sum().backward()
    arrays["weight"] = weight.contiguous()
    is_decoder = name.split("/")[0] in DECODERS and "classifier" not in name
    if is_decoder:
        arrays["prompt"] = given["input_ids"][0, :9].int().contiguous()
    inputs, out, saved = f"{folder}/inputs.st", f"{folder}/out.st", f"{folder}/saved"
    save_file(arrays, inputs)
    run = subprocess.run([program, folder, inputs, out, saved], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    ours = load_file(out)
    with safe_open(out, "pt") as file:
        notes = file.metadata()
    difference = far(ours["output"] * (weight != 0), theirs.detach() * (weight != 0))
    if "pooled" in ours and getattr(result, "pooler_output", None) is not None:
        difference = max(difference, far(ours["pooled"], result.pooler_output.detach().reshape(ours["pooled"].shape)))
    known = {key: value for key, value in model.named_parameters(remove_duplicate=True)}
    names = renamed(folder, model)
    largest = max(float(value.grad.abs().max()) for value in known.values() if value.grad is not None)
    exact = gradients_in_double(model, given, weight)
    gradient, count = 0.0, 0
    for key, value in ours.items():
        if not key.startswith("grad/"):
            continue
        stored = key[5:]
        theirs_grad = known[names[stored]].grad
        if theirs_grad is None:
            theirs_grad = torch.zeros_like(known[names[stored]])
        if f"layout/{stored}" in notes:
            value = value.permute(3, 2, 0, 1) if value.dim() == 4 else value.T
        # A gradient that is 0 but for rounding is compared with the network's largest one.
        true = exact[names[stored]]
        size = 0.0 if true is None else float(true.abs().max())
        scale = size if size > ZERO_GRADIENT * largest else largest
        gradient = max(gradient, float((value - theirs_grad).abs().max()) / scale)
        count += 1
    text = "-"
    if is_decoder:
        with torch.no_grad():
            expected = model.generate(arrays["prompt"].long()[None], max_new_tokens=24, do_sample=False,
                                      pad_token_id=0)[0]
        text = "equal" if expected.tolist() == ours["text"].long().tolist() else "differs"
    again = type(model).from_pretrained(saved, attn_implementation="eager").eval()
    with torch.no_grad():
        loads = torch.equal(output_of(again(**given)), output_of(result).detach())
    assert not any(key.startswith("unused/") for key in notes), notes
    return {"outputs": difference, "gradients": gradient, "count": count, "text": text,
            "saved": "same bytes" if loads else "differs", "mapped": int(notes["mapped"]),
            "converted": int(notes["converted"])}


DECODERS = ("llama", "mistral", "qwen2", "qwen3", "smollm3", "phi3", "gemma2", "gemma3", "gpt2")


def renamed(folder, model):
    """Names in the file -> names of the model's parameters, which newer versions of transformers have changed."""
    from safetensors.torch import load_file
    values = load_file(f"{folder}/model.safetensors")
    known = dict(model.named_parameters(remove_duplicate=True))
    names = {}
    for stored, value in values.items():
        if stored in known:
            names[stored] = stored
            continue
        same = [key for key, one in known.items() if one.shape == value.shape and bool((one == value).all())]
        if len(same) == 1:
            names[stored] = same[0]
    return names


def table(rows):
    lines = ["| folder | outputs | gradients | greedy text | save_pretrained |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        lines.append(f"| {name} | {row['outputs']:.0e} | {row['gradients']:.0e} ({row['count']}) | {row['text']} | "
                     f"{row['saved']} |")
    return "\n".join(lines)


def run(description, marker, check, table, is_good, left_out=()):
    """What each family's script does: a row a family by check(name, folder), the table, and its place in the page."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--keep", help="keeps the folders here")
    parser.add_argument("--write", action="store_true", help="writes the table into docs/language_models.md")
    options = parser.parse_args()
    rows, failed = {}, False
    with tempfile.TemporaryDirectory() as scratch:
        for name in families():
            if options.only not in name or name.startswith(tuple(left_out)):
                continue
            folder = pathlib.Path(options.keep or scratch) / re.sub("[^a-z0-9]+", "_", name)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                rows[name] = check(name, str(folder))
                good = is_good(rows[name])
                failed |= not good
                print(name, rows[name], "" if good else "<-- off", file=sys.stderr, flush=True)
            except Exception as error:  # a family that fails is reported, the others still run
                failed = True
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    print(table(rows))
    if options.write and not options.only:
        begin, end = f"<!-- {marker} -->\n", f"<!-- end of {marker} -->"
        head, rest = PAGE.read_text().split(begin)
        PAGE.write_text(head + begin + "\n" + table(rows) + "\n\n" + end + rest.split(end)[1])
    return int(failed)


def program(name):
    return str(pathlib.Path(os.environ.get("SAMEBYTES_BUILD", TOP / "build")) / name)


def is_good(row):
    return (row["outputs"] < 1e-4 and row["gradients"] < 1e-4 and row["text"] != "differs"
            and row["saved"] == "same bytes")


if __name__ == "__main__":
    use_peers()
    sys.exit(run(__doc__, "families", lambda name, folder: compare(name, folder, program("check_pretrained")), table,
                 is_good))
