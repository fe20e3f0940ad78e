from functools import partial


def normalize(raw, max_len):
    return {
        "hidden_state": raw["aux_hidden_state"].squeeze(0)[:max_len],
        "target": raw["hidden_state"].squeeze(0)[:max_len],
        "input_ids": raw["input_ids"],
        "loss_mask": raw["loss_mask"],
    }


def build_offline_normalizer(max_len):
    return partial(normalize, max_len=max_len)
