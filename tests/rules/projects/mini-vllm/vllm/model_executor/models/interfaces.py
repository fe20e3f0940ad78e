from typing import ClassVar, Literal, Protocol


class EagleModelMixin:
    aux_hidden_state_layers: tuple[int, ...] = ()

    def _set_aux_hidden_state_layers(self, layers):
        self.aux_hidden_state_layers = tuple(sorted(set(layers)))

    def _maybe_add_hidden_state(self, aux_hidden_states, layer_idx, hidden_states, residual):
        if layer_idx in self.aux_hidden_state_layers:
            value = hidden_states + residual if residual is not None else hidden_states
            aux_hidden_states.append(value)
        return aux_hidden_states


class SupportsEagle3(Protocol):
    supports_eagle3: ClassVar[Literal[True]] = True

    def set_aux_hidden_state_layers(self, layers):
        parent = self.get_language_model() if hasattr(self, "get_language_model") else self
        holder = getattr(parent, "model", parent)
        assert isinstance(holder, EagleModelMixin)
        holder._set_aux_hidden_state_layers(layers)

    def get_eagle3_default_aux_hidden_state_layers(self):
        parent = self.get_language_model() if hasattr(self, "get_language_model") else self
        num_layers = len(getattr(parent, "model", parent).layers)
        return (2, num_layers // 2, num_layers - 3)
