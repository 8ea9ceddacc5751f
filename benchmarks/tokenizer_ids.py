#!/usr/bin/env python3
"""text::Tokenizer against the Python package `tokenizers`: the same ids, and the speed of one thread.

Makes 10 MB of mixed text (several scripts, emoji, code, blanks, broken UTF-8) from a seed, lets `tokenizers` train and
write a tokenizer.json of each kind on half of it, and compares all ids of build/check_tokenize with those of the package.
Prints the table of docs/language_models.md; --write puts it there. Needs tokenizers.
--gguf compares the same tokenizers as GGUF files have them (needs gguf), but for the kinds that those do not have.

    SAMEBYTES_PEERS=DIR benchmarks/tokenizer_ids.py [--only gpt2] [--keep DIR] [--megabytes 10] [--runs 2] [--write|--gguf]
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "language_models.md"
PROGRAM = TOP / "build" / "check_tokenize"
BYTES_OF_TEXT = 4000  # a text of the corpus, about

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def use_peers():
    """Starts again under the Python of SAMEBYTES_PEERS, if it is set."""
    peers = os.environ.get("SAMEBYTES_PEERS")
    if peers and pathlib.Path(sys.prefix).resolve() != pathlib.Path(peers).resolve():
        os.execv(f"{peers}/bin/python", [f"{peers}/bin/python", *sys.argv])


# Words of a script are made from its letters, so that they repeat as words do (Zipf's law).
SCRIPTS = {
    "latin": "etaoinshrdlcumwfgypbvk", "accents": "aàâäçéèêëîïôöùûüñßøåæœlnrst", "cyrillic": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",
    "greek": "αβγδεζηθικλμνξοπρστυφχψωάέήίόύώς", "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءةى",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשתםןףךץ", "devanagari": "कखगघचछजझटठडढतथदधनपफबभमयरलवशसहािीुूेैोौ्ंँ",
    "thai": "กขคงจฉชซญดตถทธนบปผพฟมยรลวสหอะาิีึืุูเแโใไ่้", "hangul": "가나다라마바사아자차카타파하각난달람맘밥삿앙짓한국어말글",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのアイウエオカキクケコ", "georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "tamil": "அஆஇகஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்",
}
CODE = ["def f(x):\n    return x + 1\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n", "SELECT * FROM t WHERE a='b';\n",
        "<div class=\"x\">it&#39;s</div>\r\n", "x = {'a': 1, \"b\": [2, 3.5e-7]}\n", "https://example.org/?q=1&r=%20#top "]
EMOJI = ["😀", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "✅", "🤷🏻‍♀️", "1️⃣", "🫠"]
BLANKS = ["  ", "\n\n", "\t", " \n \n", "\u00a0", "\u3000", "\u2003", "\r\n", "     ", "\u200b", "\ufeff", "\u200d"]
PUNCTUATION = list(".,;:!?-()[]{}\"'/\\@#$%^&*_+=<>|~`") + ["…", "—", "“", "”", "«", "»", "。", "、", "，", "؟", "।", "€", "№"]
CONTRACTIONS = ["it's", "we'll", "I'd", "they've", "I'm", "DON'T", "you're", "'Twas", "'s", "o'clock", "'S", "'ſ"]
FORMS = ["e\u0301", "n\u0303", "ﬁ", "①", "½", "²", "Å", "Ⅷ", "ｆｕｌｌ", "가".encode().decode(), "\u1112\u1161\u11ab", "İ", "ǅ", "ß", "ſ",
         "a\u0323\u0307", "a\u0307\u0323", "\ufdfa", "㎏", "q\u0307\u0323"]
BROKEN = [b"\xff", b"\xfe\xfe", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\x80\x80", b"\xf5\x80\x80\x80"]


def corpus(size):
    """Texts as bytes, some of them broken UTF-8."""
    draw = random.Random(23)
    words = {}
    for script, letters in SCRIPTS.items():
        words[script] = ["".join(draw.choice(letters) for _ in range(draw.randint(1, 9))) for _ in range(3000)]
    han = [chr(draw.randint(0x4e00, 0x9fa5)) for _ in range(2500)]
    english = (TOP / "data" / "text" / "tinyshakespeare.txt").read_text().split(" ")
    texts, made = [], 0
    while made < size:
        script = draw.choice(["english"] * 6 + list(SCRIPTS) + ["han"] * 2)
        parts, length = [], 0
        while length < BYTES_OF_TEXT:
            kind = draw.random()
            if kind < 0.86:
                if script == "english":
                    start = draw.randrange(len(english) - 12)
                    part = " ".join(english[start:start + draw.randint(1, 12)])
                elif script == "han":
                    part = "".join(han[min(int(draw.expovariate(1 / 300)), len(han) - 1)] for _ in range(draw.randint(1, 12)))
                else:
                    some = words[script]
                    part = some[min(int(draw.expovariate(1 / 400)), len(some) - 1)]
                    part = part.title() if draw.random() < 0.1 else part.upper() if draw.random() < 0.03 else part
            elif kind < 0.91:
                part = draw.choice(PUNCTUATION)
            elif kind < 0.94:
                part = str(draw.randrange(10 ** draw.randint(1, 8)))
            elif kind < 0.95:
                part = draw.choice(CODE)
            elif kind < 0.96:
                part = draw.choice(EMOJI)
            elif kind < 0.975:
                part = draw.choice(BLANKS)
            elif kind < 0.985:
                part = draw.choice(CONTRACTIONS)
            elif kind < 0.994:
                part = draw.choice(FORMS)
            else:
                part = draw.choice(BROKEN)
            part = part if isinstance(part, bytes) else part.encode()
            part += b" " if draw.random() < 0.8 else b""
            parts.append(part)
            length += len(part)
        texts.append(b"".join(parts))
        made += len(texts[-1])
    rare = list(range(1, 0x3000)) + [draw.randrange(0x3000, 0x2fa20) for _ in range(4000)]
    rare = [chr(c) for c in rare if not 0xd800 <= c < 0xe000]
    draw.shuffle(rare)
    texts.append("".join(c + (" " if draw.random() < 0.3 else "") for c in rare).encode())
    return texts


def make_tokenizers(texts):
    """name -> a function that trains and returns one."""
    from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                            trainers)
    size = 16000
    bytes_of_all = pre_tokenizers.ByteLevel.alphabet()

    def trained(tokenizer, trainer):
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer

    def bytes_of(pattern, normalizer=None, ignore_merges=False):
        tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
        tokenizer.decoder = decoders.ByteLevel()
        trained(tokenizer, trainers.BpeTrainer(vocab_size=size, initial_alphabet=bytes_of_all, show_progress=False,
                                               special_tokens=["<|begin_of_text|>", "<|end_of_text|>"]))
        tokenizer.post_processor = processors.Sequence(
            [processors.ByteLevel(trim_offsets=False),
             processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                           special_tokens=[("<|begin_of_text|>", 0)])])
        return tokenizer

    def gpt2():
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
        return trained(tokenizer, trainers.BpeTrainer(vocab_size=size, initial_alphabet=bytes_of_all, show_progress=False,
                                                      special_tokens=["<|endoftext|>"]))

    def llama():
        """Without a pre-tokenizer, as the files of Llama 2 are."""
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trained(tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=1500, special_tokens=[
            "<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([])
        file = json.loads(tokenizer.to_str())
        file["pre_tokenizer"] = None
        tokenizer = Tokenizer.from_str(json.dumps(file))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                                 special_tokens=[("<s>", 1)])
        return tokenizer

    def bert():
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trained(tokenizer, trainers.WordPieceTrainer(vocab_size=size, show_progress=False, special_tokens=[
            "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        return tokenizer

    def unigram():
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        return trained(tokenizer, trainers.UnigramTrainer(vocab_size=16000, show_progress=False, unk_token="<unk>",
                                                          special_tokens=["<unk>", "<s>", "</s>"]))

    def added():
        """Added tokens with each of their flags, over several steps that cut and change."""
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.Digits(False),
             pre_tokenizers.Split(Regex("(?=ing)|ab?"), "merged_with_previous")])
        trained(tokenizer, trainers.BpeTrainer(vocab_size=4000, show_progress=False, special_tokens=["<unk>"],
                                               continuing_subword_prefix="##", end_of_word_suffix="</w>"))
        tokenizer.add_tokens([AddedToken("the", single_word=True), AddedToken("And", normalized=False),
                              AddedToken("kin", lstrip=True), AddedToken("😀", rstrip=True)])
        tokenizer.add_special_tokens([AddedToken("it's", lstrip=True, rstrip=True)])
        return tokenizer

    return {
        "gpt2": gpt2, "llama": llama, "llama3": lambda: bytes_of(LLAMA3, ignore_merges=True),
        "qwen": lambda: bytes_of(QWEN2, normalizers.NFC()), "bert": bert, "unigram": unigram, "added": added}


GGUF_KINDS = {"gpt2": ("gpt2", "gpt-2"), "llama3": ("gpt2", "llama-bpe"), "qwen": ("gpt2", "qwen2"), "llama": ("llama", ""),
              "bert": ("bert", "")}


def pairs_of_pieces(file):
    """The merges of a tokenizer whose pieces have scores: all pairs that are a piece, as transformers finds them."""
    vocabulary = file["model"]["vocab"]
    scores = {piece: -i for i, piece in enumerate(vocabulary)}
    merges = []
    for piece, score in scores.items():
        if piece.startswith("<") and piece.endswith(">"):
            continue
        found = [(piece[:i], piece[i:], score) for i in range(1, len(piece))
                 if piece[:i] in vocabulary and piece[i:] in vocabulary]
        merges += sorted(found, key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
    merges.sort(key=lambda pair: (pair[2], len(pair[0]), len(pair[1])), reverse=True)
    return [[left, right] for left, right, _ in merges]


def write_gguf(name, path, out):
    """A GGUF file with the tokenizer of a tokenizer.json, and nothing else."""
    import gguf
    file = json.loads(path.read_text())
    kind, pre = GGUF_KINDS[name]
    tokens = sorted(file["model"]["vocab"], key=file["model"]["vocab"].get)
    special = {token["content"] for token in file["added_tokens"]}
    types = [3 if token in special else 6 if re.fullmatch("<0x[0-9A-F]{2}>", token) and kind == "llama" else 1 for token in tokens]
    writer = gguf.GGUFWriter(str(out), "llama")
    writer.add_tokenizer_model(kind)
    if kind == "gpt2":
        writer.add_tokenizer_pre(pre)
        writer.add_token_merges([" ".join(pair) for pair in file["model"]["merges"]])
        writer.add_bos_token_id(0)
        writer.add_add_bos_token(name != "gpt2")
    elif kind == "llama":
        types[0] = 2
        writer.add_token_scores([-float(i) for i in range(len(tokens))])
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
    else:
        tokens = [token if token in special else token[2:] if token.startswith("##") else "\u2581" + token for token in tokens]
        writer.add_unk_token_id(1)
        writer.add_bos_token_id(2)
        writer.add_sep_token_id(3)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


TITLES = {
    "gpt2": "GPT-2: bytes", "llama": "Llama 2: BPE with byte fallback", "llama3": "Llama 3: bytes, digits by three",
    "qwen": "Qwen: bytes, NFC", "bert": "BERT: WordPiece", "unigram": "Unigram, NFKC",
    "added": "added tokens, Sequence, Split"}


def main():
    use_peers()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="this kind alone")
    parser.add_argument("--keep", help="a folder for the files, which are used again if they are there")
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--runs", type=int, default=2, help="runs of which the fastest counts")
    parser.add_argument("--program", default=PROGRAM, help="check_tokenize")
    parser.add_argument("--gguf", action="store_true", help="as GGUF files have them")
    parser.add_argument("--write", action="store_true", help="put the table into docs/language_models.md")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import array
    import tokenizers
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    raw = [text.replace(b"\0", b"") for text in corpus(int(options.megabytes * 1e6))]
    (folder / "texts").write_bytes(b"".join(text + b"\0" for text in raw))
    texts = [text.decode(errors="replace") for text in raw]
    size = sum(map(len, raw)) / 1e6
    rows, is_good = [], True
    for name, make in make_tokenizers(texts[:-1:2]).items():
        if options.only not in (None, name):
            continue
        path = folder / f"{name}.json"
        if options.gguf and name not in GGUF_KINDS:
            continue
        if not path.exists():
            make().save(str(path))
        given = path
        if options.gguf:
            if name == "llama":  # whose pairs follow from its scores
                file = json.loads(path.read_text())
                file["model"]["merges"] = pairs_of_pieces(file)
                path = folder / "llama-scored.json"
                path.write_text(json.dumps(file))
            given = folder / f"{name}.gguf"
            write_gguf(name, path, given)
        theirs, best = [], 1e300
        for _ in range(options.runs):
            theirs = []
            peer = tokenizers.Tokenizer.from_file(str(path))
            start = time.perf_counter()
            theirs = peer.encode_batch(texts)
            best = min(best, time.perf_counter() - start)
        said = subprocess.run([options.program, given, folder / "texts", folder / "ids", str(options.runs)], check=True,
                              capture_output=True, text=True)
        report = json.loads(said.stdout)
        ours = array.array("i", (folder / "ids").read_bytes())
        place, wrong = 0, 0
        for i, encoding in enumerate(theirs):
            count = ours[place]
            mine = ours[place + 1:place + 1 + count].tolist()
            place += 1 + count
            if mine == encoding.ids:
                continue
            wrong += 1
            if wrong == 1:
                at = next((k for k, (a, b) in enumerate(zip(mine, encoding.ids)) if a != b), min(len(mine), len(encoding.ids)))
                print(f"{name}: text {i}, token {at}: {mine[at:at + 6]} instead of {encoding.ids[at:at + 6]}, "
                      f"{encoding.tokens[at:at + 6]}, {texts[i][max(encoding.offsets[min(at, len(encoding.offsets) - 1)][0] - 20, 0):][:60]!r}",
                      file=sys.stderr)
        is_good = is_good and wrong == 0
        tokens = sum(len(encoding.ids) for encoding in theirs)
        count = f"{tokens:,}".replace(",", " ")
        rows.append(f"| {TITLES[name]} | {count} | {'equal' if wrong == 0 else f'{wrong} of {len(theirs)} texts differ'} | "
                    f"{size / report['seconds']:.1f} | {size / best:.1f} | {best / report['seconds']:.1f} |")
        print(rows[-1], flush=True)
    table = "\n".join(["| file | tokens | ids | MB/s | `tokenizers`, MB/s | ratio |", "|---|---|---|---|---|---|", *rows])
    if options.write and is_good and not options.gguf:
        text = PAGE.read_text()
        text = re.sub(r"(<!-- tokenizers -->\n).*?(\n<!-- end of tokenizers -->)",
                      lambda found: f"{found[1]}\n{table}\n{found[2]}", text, flags=re.S)
        PAGE.write_text(text)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
