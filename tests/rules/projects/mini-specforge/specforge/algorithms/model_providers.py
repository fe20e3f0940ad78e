def resolve_eagle_capture_layers(cfg, draft_config, target_config):
    layers = cfg.model.aux_hidden_state_layer_ids
    if layers is None:
        layers = draft_config.get("eagle_config", {}).get("eagle_aux_hidden_state_layer_ids")
    if layers is None:
        depth = target_config.num_hidden_layers
        layers = [1, depth // 2 - 1, depth - 4]
    return list(layers)
