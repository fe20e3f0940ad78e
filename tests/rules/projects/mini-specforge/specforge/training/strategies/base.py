def _prepare_eagle_target(*, target_head, target_repr, input_ids, target, loss_mask, device):
    input_ids, target, loss_mask = target_head.preprocess(input_ids, target, loss_mask)
    return input_ids, target_head(target), loss_mask
