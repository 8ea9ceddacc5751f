#!/usr/bin/env python3
"""A small language model from its first step to its answers, by this library alone.

1. build/check_pretrain trains a Llama of 17 million parameters, whose tokens are bytes, on the texts of data/text.
2. `samebytes finetune` trains LoRA adapters beside it on questions and answers about names of names.txt, once as it is
   (f32) and once quantised to Q4_K; the losses of the two are compared.
3. The adapters of the second are merged, and `samebytes chat` answers questions about names that were not trained.

Prints what came of each part and fails where the losses of the last fifth differ by more than 2 %.

    benchmarks/small_language_model.py [--steps 220] [--tuning 150] [--keep DIR]
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("SAMEBYTES_BUILD", TOP / "build"))
TEXTS = TOP / "data" / "text"
PAIRS = 3000
ASKED = 60
ACCEPTED = 0.02  # of the loss in f32


def questions(names):
    """A question and its answer for each name, of three kinds in turn."""
    for i, name in enumerate(names):
        if i % 3 == 0:
            yield f"Which letter does {name} begin with?", name[0]
        elif i % 3 == 1:
            yield f"Which letter does {name} end with?", name[-1]
        else:
            yield f"Spell {name}.", "-".join(name)


def run(*words, **options):
    print("$", " ".join(map(str, words)), file=sys.stderr, flush=True)
    return subprocess.run(list(map(str, words)), check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def losses(path):
    """The loss of each step in a log."""
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [line["loss"] for line in lines if line.get("event") == "step"]


def tuned(folder, name, options, *more):
    log = folder / f"{name}.jsonl"
    words = [BUILD / "samebytes", "finetune", folder / "base", "--data", folder / "chat.jsonl", "--lora", "16",
             "--lora-targets", "all-linear", "--context", "256", "--batch", "4", "--steps", str(options.tuning),
             "--rate", "1e-3", "--validation", "0.04", "--log", log, "--save", folder / name, "--json", *more]
    summary = json.loads(run(*words).splitlines()[0])
    return {"test": summary["test_loss"], "steps": losses(log), "seconds": summary["seconds"]}


def mean(values):
    return sum(values) / len(values)


def work(folder, options):
    """All of it; the facts of the table."""
    begin = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    names = TEXTS.joinpath("names.txt").read_text().split()
    random.Random(1).shuffle(names)
    trained, asked = names[:PAIRS], names[-ASKED:]
    with open(folder / "chat.jsonl", "w", encoding="utf-8") as file:
        for question, answer in questions(trained):
            messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
            file.write(json.dumps({"messages": messages}) + "\n")
    facts = {"base": json.loads(run(BUILD / "check_pretrain", folder / "base", options.steps,
                                    TEXTS / "tinyshakespeare.txt", TEXTS / "names.txt"))}
    facts["f32"] = tuned(folder, "f32", options)
    facts["q4"] = tuned(folder, "q4", options, "--quantise", "q4", "--memory-limit", "2GB", "--merge",
                        folder / "merged")
    pairs = list(questions(asked))
    lines = "".join(f"{question}\n/clear\n" for question, _ in pairs)
    answers = [json.loads(line)["answer"] for line in
               run(BUILD / "samebytes", "chat", folder / "merged", "--temperature", "0", "--tokens", "40", "--json",
                   input=lines).splitlines()]
    facts["right"] = sum(answer == want for answer, (_, want) in zip(answers, pairs, strict=True))
    facts["example"] = (pairs[2][0], answers[2])
    facts["seconds"] = time.monotonic() - begin
    return facts


def table(facts):
    base, plain, small = facts["base"], facts["f32"], facts["q4"]
    last = max(1, len(plain["steps"]) // 5)
    rows = [("pre-training", f"{base['parameters'] / 1e6:.1f} million parameters, {base['steps']} steps of 2048 bytes, "
             f"{base['tokens_per_second']:.0f} bytes/s, loss {base['loss']:.3f}"),
            ("LoRA beside f32", f"loss {mean(plain['steps'][:5]):.3f} to {mean(plain['steps'][-last:]):.4f}, "
             f"test {plain['test']:.4f}"),
            ("LoRA beside Q4_K", f"loss {mean(small['steps'][:5]):.3f} to {mean(small['steps'][-last:]):.4f}, "
             f"test {small['test']:.4f}"),
            ("Q4_K against f32",
             f"{100 * facts['last']:+.1f} % in the last fifth, {100 * facts['test']:+.1f} % in the test"),
            ("merged, asked about other names", f"{facts['right']} of {ASKED} answers right; "
             f"\"{facts['example'][0]}\" \"{facts['example'][1]}\""),
            ("all of it", f"{facts['seconds'] / 60:.1f} minutes")]
    return "\n".join(["| what | result |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=220, help="of the pre-training")
    parser.add_argument("--tuning", type=int, default=150, help="steps of each fine-tuning")
    parser.add_argument("--keep", help="keeps all files here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        facts = work(pathlib.Path(options.keep or scratch), options)
    last = max(1, len(facts["f32"]["steps"]) // 5)
    facts["last"] = mean(facts["q4"]["steps"][-last:]) / mean(facts["f32"]["steps"][-last:]) - 1
    facts["test"] = facts["q4"]["test"] / facts["f32"]["test"] - 1
    print(table(facts))
    return int(abs(facts["last"]) > ACCEPTED)


if __name__ == "__main__":
    sys.exit(main())
