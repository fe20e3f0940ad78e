"""How a stage numbers its layers, takes over from the stage before it, and hands over to the next."""


class PPProxyTensors:
    def __init__(self, tensors):
        self.tensors = tensors

    def __getitem__(self, key):
        return self.tensors[key]


def numbered(layers, start_layer):
    return enumerate(layers, start=start_layer)


def take_over(proxy):
    return proxy["hidden_states"], proxy["residual"], proxy["aux_hidden_states"]


def hand_over(hidden_states, residual, aux_hidden_states):
    return PPProxyTensors(
        {"hidden_states": hidden_states, "residual": residual, "aux_hidden_states": aux_hidden_states}
    )
