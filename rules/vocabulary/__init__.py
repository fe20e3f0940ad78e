"""Vocabulary: sizes, the maps between draft and target tokens, special tokens, tokenizers."""
