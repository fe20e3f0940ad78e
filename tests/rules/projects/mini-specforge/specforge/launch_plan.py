def arguments(contract):
    return ["--spec-capture-aux-layer-ids", *map(str, contract.aux_layer_ids)]
