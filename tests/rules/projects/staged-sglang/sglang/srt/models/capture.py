"""How the engine captures: its setter adds one to explicit ids, and a state is the stream before a layer."""


class CapturesStates:
    def set_eagle3_layers_to_capture(self, layer_ids=None):
        if layer_ids is None:
            num_layers = self.config.num_hidden_layers
            self.model.layers_to_capture = [2, num_layers // 2, num_layers - 3]
        else:
            self.model.layers_to_capture = [layer_id + 1 for layer_id in layer_ids]


def stream(hidden_states, residual):
    return hidden_states if residual is None else hidden_states + residual
