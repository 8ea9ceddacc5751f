#!/usr/bin/env python3
"""Language models beside PEFT, llama.cpp and transformers: tokens a second and memory, on two threads, taking turns.

Random weights in the shapes of Qwen2.5-0.5B, made once in --work: a folder in bf16, and GGUF files of Q8_0 and of Q4_K
(whose rows of 896 values, no whole blocks of 256, are Q4_0, as llama.cpp writes them; the embedding is Q8_0 in both).

    benchmarks/language_peers.py --make                      the models
    benchmarks/language_peers.py lora|qlora|estimate|generate|sentences [--rounds 3]

lora: rank 16 on queries and values, a row of 512 tokens, AdamW, with frozen weights in bf16 and activations in f32 or
bf16; PEFT all in f32 and all in bf16, the faster one counts.
qlora: the same beside Q4_K (Q4_0) blocks. estimate: `samebytes estimate --lora 16 --quantise q4 --measure`.
generate: prompts of 256 tokens and 32 behind them, one stream and eight (of 16 and 48), against llama.cpp, by
llama-cpp-python where it is installed, else by xllamacpp. sentences: 1 000 sentences with --sentences FOLDER (MiniLM).

Needs torch, transformers, peft, gguf and one of the two llama.cpp packages in this interpreter; SAMEBYTES_LLAMA names
another interpreter for llama.cpp. build/measure_language and build/samebytes must be built.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("SAMEBYTES_BUILD", TOP / "build"))
THREADS = 2
CONTEXT, RANK, STEPS = 512, 16, 3
WIDTH, HIDDEN, LAYERS, HEADS, KEYS, WORDS = 896, 4864, 24, 14, 2, 151936


# --- the models

def make_folder(path):
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
                         num_attention_heads=HEADS, num_key_value_heads=KEYS, max_position_embeddings=32768,
                         rope_theta=1e6, rms_norm_eps=1e-6, tie_word_embeddings=True)
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(path)


def byte_characters():
    """GPT-2's characters for the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    names = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    return [names[byte] for byte in range(256)]


def make_gguf(path, kind):
    import gguf
    import numpy as np
    from gguf import GGMLQuantizationType as Type
    rng = np.random.default_rng(0)
    # Values and bytes of a block, where its scales lie and what they are.
    blocks = {Type.Q8_0: (32, 34, [(0, 0.02 / 73)]), Type.Q4_0: (32, 18, [(0, 0.02 / 5)]),
              Type.Q4_K: (256, 144, [(0, 0.02 / 160), (2, 0.03 / 32)])}
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_block_count(LAYERS)
    writer.add_context_length(32768)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)

    def matrix(name, rows, columns, always=None):
        own = Type.Q8_0 if kind == "q8" else Type.Q4_K if columns % 256 == 0 else Type.Q4_0
        values, size, scales = blocks[always or own]
        data = rng.integers(0, 256, (rows, columns // values, size), dtype=np.uint8)
        for place, scale in scales:
            data[:, :, place:place + 2] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)
        writer.add_tensor(name + ".weight", data.reshape(rows, -1), raw_dtype=always or own)

    def vector(name, size, middle):
        writer.add_tensor(name, (middle + 0.02 * rng.standard_normal(size)).astype(np.float32))

    matrix("token_embd", WORDS, WIDTH, Type.Q8_0)
    vector("output_norm.weight", WIDTH, 1)
    depth = WIDTH // HEADS
    for i in range(LAYERS):
        at = f"blk.{i}."
        vector(at + "attn_norm.weight", WIDTH, 1)
        vector(at + "ffn_norm.weight", WIDTH, 1)
        for name, heads in (("attn_q", HEADS), ("attn_k", KEYS), ("attn_v", KEYS)):
            matrix(at + name, heads * depth, WIDTH)
            vector(f"{at}{name}.bias", heads * depth, 0)
        matrix(at + "attn_output", WIDTH, WIDTH)
        matrix(at + "ffn_gate", HIDDEN, WIDTH)
        matrix(at + "ffn_up", HIDDEN, WIDTH)
        matrix(at + "ffn_down", WIDTH, HIDDEN)
    tokens = [*byte_characters(), "he", *(f"[T{i}]" for i in range(WORDS - 257))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [5] * (WORDS - 257))
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(WORDS - 1)
    writer.add_add_bos_token(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# --- one measurement of a peer, in a process of its own

def resident():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def peer_lora(folder, dtype):
    import time
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    idle = resident()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=["q_proj", "v_proj"]))
    model.train()
    adam = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    for step in range(STEPS + 1):
        ids = torch.randint(0, WORDS, (1, CONTEXT))
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        adam.step()
        adam.zero_grad()
        if step == 0:
            start = time.perf_counter()
    seconds = time.perf_counter() - start
    return {"tokens_per_second": CONTEXT * STEPS / seconds, "peak_bytes": resident() - idle}


def peer_generate(path, prompt, tokens, streams):
    """With llama.cpp: one warm call, then the timed one."""
    try:
        return llama_cpp_python(path, prompt, tokens, streams)
    except ImportError:
        return by_xllamacpp(path, prompt, tokens, streams)


def by_xllamacpp(path, prompt, tokens, streams):
    import concurrent.futures
    import time
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.n_parallel = streams
    params.n_ctx = (prompt + tokens + 16) * streams
    params.n_batch = params.n_ubatch = 512
    params.warmup = False
    params.cache_prompt = False
    params.verbosity = -1
    server = xllamacpp.Server(params)

    def ask(number, count):
        rng = random.Random(number)
        ids = [rng.randrange(WORDS - 1) for _ in range(prompt)]
        return server.handle_completions({"prompt": ids, "n_predict": count, "max_tokens": count, "temperature": 0,
                                          "ignore_eos": True, "cache_prompt": False})

    ask(100, 2)
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        answers = list(pool.map(lambda i: ask(i, tokens), range(streams)))
    wall = time.perf_counter() - start
    timings = [answer["timings"] for answer in answers]
    made = sum(one["predicted_n"] for one in timings)
    longest = max(one["predicted_ms"] for one in timings) / 1000
    return {"prompt": statistics.mean(one["prompt_per_second"] for one in timings) if streams == 1 else
            prompt * streams / (wall - longest), "token": made / longest, "peer": "xllamacpp"}


def llama_cpp_python(path, prompt, tokens, streams):
    import time
    import llama_cpp
    if streams > 1:
        raise ImportError("llama_cpp.Llama has one stream")
    model = llama_cpp.Llama(path, n_ctx=prompt + tokens + 16, n_batch=512, n_threads=THREADS, n_threads_batch=THREADS,
                            verbose=False)
    for count in (2, tokens):
        rng = random.Random(count)
        ids = [rng.randrange(WORDS - 1) for _ in range(prompt)]
        model.reset()
        start = time.perf_counter()
        model.eval(ids)
        middle = time.perf_counter()
        for _ in range(count):
            model.eval([int(model.scores[model.n_tokens - 1].argmax())])
        end = time.perf_counter()
    return {"prompt": prompt / (middle - start), "token": tokens / (end - middle), "peer": "llama-cpp-python"}


def peer_sentences(folder, texts, dtype, threads):
    import time
    import torch
    from transformers import AutoModel, AutoTokenizer
    torch.set_num_threads(threads)
    lines = pathlib.Path(texts).read_text().splitlines()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).to(getattr(torch, dtype))

    def vectors():
        order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
        for begin in range(0, len(order), 32):
            batch = tokenizer([lines[i] for i in order[begin:begin + 32]], padding=True, truncation=True,
                              return_tensors="pt")
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)

    with torch.inference_mode():
        vectors()
        start = time.perf_counter()
        vectors()
    return {"texts_per_second": len(lines) / (time.perf_counter() - start)}


# --- alternating

def ours(*words):
    out = subprocess.run([str(BUILD / "measure_language"), *map(str, words)], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out.splitlines()[-1])


def peer(*words, python=sys.executable):
    out = subprocess.run([python, __file__, "--peer", *map(str, words)], check=True, text=True, stdout=subprocess.PIPE,
                         env={**os.environ, "OMP_NUM_THREADS": str(THREADS)}).stdout
    return json.loads(out.splitlines()[-1])


def median(results, key):
    return statistics.median(one[key] for one in results)


def alternate(rounds, **sides):
    results = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            results[name].append(call())
            print(name, json.dumps(results[name][-1]), file=sys.stderr, flush=True)
    return results


def lora(options, quantise):
    folder = options.work / "qwen05"
    sides = {f"samebytes {dtype}": lambda dtype=dtype: ours("lora", folder, CONTEXT, RANK, quantise, STEPS, dtype)
             for dtype in ("f32", "bf16")}
    for dtype in options.dtypes:
        sides[f"PEFT {dtype}"] = lambda dtype=dtype: peer("lora", folder, dtype)
    results = alternate(options.rounds, **sides)
    print("| who | tokens/s | peak over idle, MB |\n|---|---|---|")
    for name, runs in results.items():
        print(f"| {name} | {median(runs, 'tokens_per_second'):.1f} | {median(runs, 'peak_bytes') / 1e6:.0f} |")


def estimate(options):
    out = subprocess.run([str(BUILD / "samebytes"), "estimate", str(options.work / "qwen05"), "--lora", str(RANK),
                          "--quantise", "q4", "--context", str(CONTEXT), "--batch", "1", "--measure"], check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    print(out)


def generate(options):
    python = os.environ.get("SAMEBYTES_LLAMA", sys.executable)
    print("| file | streams | prompt, tokens/s | llama.cpp | ratio | tokens/s | llama.cpp | ratio |\n" + "|---" * 8 + "|")
    for kind in options.kinds:
        file = options.work / f"qwen05-{kind}.gguf"
        for streams, prompt, tokens in ((1, 256, 32), (8, 16, 48)):
            if streams not in options.streams:
                continue
            runs = alternate(options.rounds, samebytes=lambda: ours("generate", file, prompt, tokens, streams),
                             llama=lambda: peer("generate", file, prompt, tokens, streams, python=python))
            cells = []
            for key in ("prompt", "token"):
                a, b = median(runs["samebytes"], key), median(runs["llama"], key)
                cells += [f"{a:.1f}", f"{b:.1f}", f"{a / b:.2f}"]
            print(f"| {kind} | {streams} | " + " | ".join(cells) + " |", flush=True)


def sentences(options):
    rng = random.Random(3)
    words = (TOP / "data" / "text" / "tinyshakespeare.txt").read_text().split()
    texts = options.work / "sentences.txt"
    texts.write_text("".join(" ".join(words[at:at + rng.randrange(5, 40)]) + "\n"
                             for at in (rng.randrange(len(words) - 50) for _ in range(1000))))
    sides = {}
    for dtype in options.dtypes:
        short = {"float32": "f32", "bfloat16": "bf16"}[dtype]
        sides[f"samebytes {short}"] = lambda short=short: ours("embed", options.sentences, texts, short)
        for threads in (1, THREADS):
            sides[f"transformers {dtype}, {threads} threads"] = \
                lambda dtype=dtype, threads=threads: peer("sentences", options.sentences, texts, dtype, threads)
    print("| who | sentences/s |\n|---|---|")
    for name, runs in alternate(options.rounds, **sides).items():
        print(f"| {name} | {median(runs, 'texts_per_second'):.1f} |")


def main():
    if sys.argv[1:2] == ["--peer"]:
        kind, *words = sys.argv[2:]
        if kind == "lora":
            result = peer_lora(*words)
        elif kind == "generate":
            result = peer_generate(words[0], *map(int, words[1:]))
        else:
            result = peer_sentences(*words[:3], int(words[3]))
        print(json.dumps(result))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["lora", "qlora", "estimate", "generate", "sentences", []])
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=BUILD / "language_peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"])
    parser.add_argument("--kinds", nargs="*", default=["q8", "q4"])
    parser.add_argument("--streams", nargs="*", type=int, default=[1, 8])
    parser.add_argument("--sentences", type=pathlib.Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.make:
        make_folder(options.work / "qwen05")
        for kind in options.kinds:
            make_gguf(options.work / f"qwen05-{kind}.gguf", kind)
    for what in options.what:
        {"lora": lambda: lora(options, "none"), "qlora": lambda: lora(options, "q4"), "estimate": lambda: estimate(options),
         "generate": lambda: generate(options), "sentences": lambda: sentences(options)}[what]()


if __name__ == "__main__":
    main()
