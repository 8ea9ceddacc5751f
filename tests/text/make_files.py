#!/usr/bin/env python3
"""Writes tests/text/files.json: small files that the Python package `tokenizers` made, and the ids it gives with them.

    make_files.py > tests/text/files.json
"""
import json

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

TRAINING = ["the lower the newest widest low lower newest the cat's there we'll 123 45", "Où est le café? naïve über",
            "привет мир привет", "日本 日本語", "it's 2024 😀"] * 3
TEXTS = ["the lower cat's there", "  We'll  see\n\n the newest\t123456 ", "café naïve cafe\u0301 Où", "привет, мир!", "日本語の 😀👍🏽 x",
         "", " ", "a<|end|>b  <|end|> the", "\u00a0it'S\u3000'ſ\r\n", "ﬁ ² ½ İ"]
PAIR = ("the lower", "cat's the newest")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def trained(tokenizer, kind, **options):
    tokenizer.train_from_iterator(TRAINING, kind(show_progress=False, **options))
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, trainers.BpeTrainer, vocab_size=300, special_tokens=["<|end|>"],
                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trained(tokenizer, trainers.BpeTrainer, vocab_size=290, special_tokens=["<|end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        single="<|end|> $A", pair="<|end|> $A <|end|>:1 $B:1", special_tokens=[("<|end|>", 0)])])
    return tokenizer


def llama():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trained(tokenizer, trainers.BpeTrainer, vocab_size=330, special_tokens=[
        "<unk>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256))], limit_alphabet=30)
    file = json.loads(tokenizer.to_str())
    file["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trained(tokenizer, trainers.WordPieceTrainer, vocab_size=110,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<|end|>"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(12)
    tokenizer.enable_padding(pad_id=0, pad_to_multiple_of=4)
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(),
                                                 normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    trained(tokenizer, trainers.UnigramTrainer, vocab_size=90, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"])
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    return tokenizer


def steps():
    """Other steps that cut and change, added tokens with each of their flags, prefixes and suffixes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.Digits(False),
         pre_tokenizers.Split(Regex("(?=st)|e"), "merged_with_previous"), pre_tokenizers.CharDelimiterSplit("w")])
    trained(tokenizer, trainers.BpeTrainer, vocab_size=90, special_tokens=["<unk>"], continuing_subword_prefix="##",
            end_of_word_suffix="</w>")
    tokenizer.decoder = decoders.BPEDecoder()
    tokenizer.add_tokens([AddedToken("the", single_word=True), AddedToken("We", normalized=False),
                          AddedToken("see", lstrip=True), AddedToken("😀", rstrip=True)])
    tokenizer.add_special_tokens([AddedToken("<|end|>", lstrip=True, rstrip=True)])
    return tokenizer


def main():
    files = []
    for make in (gpt2, llama3, llama, bert, unigram, steps):
        tokenizer = Tokenizer.from_str(make().to_str())
        texts = []
        for text in [*TEXTS, PAIR]:
            encoding = tokenizer.encode(*text) if isinstance(text, tuple) else tokenizer.encode(text)
            first, second = text if isinstance(text, tuple) else (text, None)
            texts.append({"text": first, "second": second, "ids": encoding.ids, "types": encoding.type_ids,
                          "mask": encoding.attention_mask, "decoded": tokenizer.decode(encoding.ids)})
        files.append({"name": make.__name__, "file": json.loads(tokenizer.to_str()), "texts": texts})
    print("[\n" + ",\n".join(json.dumps(file, ensure_ascii=False) for file in files) + "\n]")


if __name__ == "__main__":
    main()
