#!/usr/bin/env python3
"""LoRA on Hugging Face folders of every family with linear layers in its attention, against PEFT.

ResNet has no attention; ViT and DeiT are left out because newer versions of transformers give their layers other names
than their files.
For each family: a tiny random model and PEFT's adapters beside it are saved; build/check_lora reads both and trains
them, as PEFT does here, and the two are compared: gradients of the adapters, the losses of 20 steps, and what PEFT and
transformers compute from the adapters and the merged model that were written. Prints the table of
docs/language_models.md; --write puts it there. Needs torch, transformers, peft and safetensors.

    SAMEBYTES_PEERS=DIR benchmarks/lora_families.py [--only llama] [--keep DIR] [--write]
"""
import subprocess
import sys

import pretrained_families as base

STEPS = 20
RATE = 1e-2  # as in checks/lora.cpp
OPTIONS = dict(r=4, lora_alpha=8)
# Layers that are no attention, or where PEFT has no default; the library's defaults for the others are PEFT's.
TARGETS = {"smollm3": ["q_proj", "v_proj"], "phi3": ["qkv_proj"], "phi3/longrope, partial": ["qkv_proj"],
           "distilbert": ["q_lin", "v_lin"], "distilbert/classifier": ["q_lin", "v_lin"],
           "qwen3": "all-linear",
           "llama/tied, biases": r".*\.1\.(self_attn\.k_proj|mlp\.\w+_proj)"}

LEFT_OUT = ("resnet", "vit", "deit", "roberta/classifier")  # docs/language_models.md says why


def adapted(name, model):
    """PEFT's model, whose adapters have an effect from the start."""
    import peft
    import torch
    torch.manual_seed(13)
    task = {"classifier": "SEQ_CLS", "tokens": "TOKEN_CLS"}.get(name.partition("/")[2])
    wrapped = peft.get_peft_model(model, peft.LoraConfig(**OPTIONS, target_modules=TARGETS.get(name), task_type=task))
    with torch.no_grad():
        for key, value in wrapped.named_parameters():
            if "lora_B" in key:
                value.copy_(torch.randn_like(value) * 0.05)
    return wrapped.eval()


def compare(name, folder, program):
    """A row of the table; raises where something cannot be compared."""
    import peft
    import torch
    from safetensors.torch import load_file, save_file
    plain = base.make(name, f"{folder}/base")
    arrays, given = base.inputs_of(name, plain)
    model = adapted(name, plain)
    model.save_pretrained(f"{folder}/adapters")
    y = base.output_of(model(**given)).detach()
    is_language = y.dim() == 3 and name.split("/")[0] in base.DECODERS
    if is_language:
        labels = arrays["x"].long().clone()
        labels[:, :7] = -100  # the prompt
        arrays["labels"] = labels.int()
    else:
        torch.manual_seed(17)
        arrays["target"], arrays["weight"] = torch.randn_like(y).contiguous(), torch.ones_like(y)
        mask = given.get("attention_mask")
        if mask is not None and y.dim() == 3:
            arrays["weight"] = (arrays["weight"] * mask[:, :, None]).contiguous()

    def loss_of(result):
        if is_language:
            return torch.nn.functional.cross_entropy(result[:, :-1].reshape(-1, result.shape[-1]),
                                                     labels[:, 1:].reshape(-1), ignore_index=-100)
        return ((result - arrays["target"]) ** 2 * arrays["weight"]).mean()

    inputs, out, saved = f"{folder}/inputs.st", f"{folder}/out.st", f"{folder}/saved"
    save_file(arrays, inputs)
    run = subprocess.run([program, f"{folder}/base", f"{folder}/adapters", inputs, out, saved], capture_output=True,
                         text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    ours = load_file(out)
    trained = {key: value for key, value in model.named_parameters() if value.requires_grad}
    loss_of(base.output_of(model(**given))).backward()
    gradient, count = 0.0, 0
    for key, value in trained.items():
        stored = key.removeprefix("base_model.model.").replace(".modules_to_save.default.", ".")
        stored = stored.replace(".default.", ".")
        gradient = max(gradient, base.far(ours["grad/" + stored], value.grad))
        count += 1
    assert count == sum(key.startswith("grad/") for key in ours), "other adapters"
    optimizer = torch.optim.AdamW(trained.values(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(base.output_of(model(**given)))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    losses = torch.tensor(losses)
    difference = float(((ours["losses"] - losses) / losses).abs().max())
    with torch.no_grad():
        fresh = type(plain).from_pretrained(f"{folder}/base", attn_implementation="eager").eval()
        loaded = peft.PeftModel.from_pretrained(fresh, f"{saved}/adapters").eval()
        counts = arrays.get("weight", torch.ones(())) != 0
        adapters = base.far(base.output_of(loaded(**given)) * counts, ours["output"] * counts)
        again = type(plain).from_pretrained(f"{saved}/merged", attn_implementation="eager").eval()
        merged = base.far(base.output_of(again(**given)) * counts, ours["output"] * counts)
    return {"gradients": gradient, "count": count, "losses": difference, "first": float(losses[0]),
            "last": float(losses[-1]), "adapters": adapters, "merged": merged}


def table(rows):
    lines = ["| folder | gradients | 20 steps | adapters in PEFT | merged in transformers |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        lines.append(f"| {name} | {row['gradients']:.0e} ({row['count']}) | {row['losses']:.0e}, loss "
                     f"{row['first']:.2f} to {row['last']:.2f} | {row['adapters']:.0e} | {row['merged']:.0e} |")
    return "\n".join(lines)


def is_good(row):
    return row["gradients"] < 1e-4 and row["losses"] < 1e-3 and row["adapters"] < 1e-4 and row["merged"] < 1e-4


if __name__ == "__main__":
    base.use_peers()
    sys.exit(base.run(__doc__, "lora families", lambda name, folder: compare(name, folder, base.program("check_lora")),
                      table, is_good, LEFT_OUT))
