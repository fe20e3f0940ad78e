def requires_aux_hidden_states(spec_config):
    if spec_config.method == "eagle3":
        eagle_config = getattr(spec_config.draft_model_config.hf_config, "eagle_config", None) or {}
        return eagle_config.get("use_aux_hidden_state", True)
    return spec_config.method in ("dflash", "dspark")


def set_eagle3_aux_hidden_state_layers(model, spec_config, use_pp=False):
    layers = get_eagle3_aux_layers_from_config(spec_config)
    model.set_aux_hidden_state_layers(layers or model.get_eagle3_default_aux_hidden_state_layers())


def get_eagle3_aux_layers_from_config(spec_config):
    hf_config = spec_config.draft_model_config.hf_config
    layer_ids = getattr(hf_config, "eagle_aux_hidden_state_layer_ids", None)
    if not layer_ids:
        dflash_config = getattr(hf_config, "dflash_config", None)
        if dflash_config and isinstance(dflash_config, dict):
            layer_ids = [i + 1 for i in (dflash_config.get("target_layer_ids") or [])]
    if not layer_ids:
        for name in ("dflash_config", "eagle_config"):
            section = getattr(hf_config, name, None)
            if section and isinstance(section, dict):
                layer_ids = section.get("layer_ids")
                if layer_ids:
                    break
    if layer_ids and isinstance(layer_ids, (list, tuple)):
        return tuple(layer_ids)
    return None
