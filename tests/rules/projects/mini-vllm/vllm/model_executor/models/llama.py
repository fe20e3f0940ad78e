from itertools import islice

from torch import nn
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.models.interfaces import EagleModelMixin, SupportsEagle3


class LlamaDecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn = nn.Linear(1, 1)
        self.mlp = nn.Linear(1, 1)
        self.input_layernorm = RMSNorm(config.hidden_size)
        self.post_attention_layernorm = RMSNorm(config.hidden_size)

    def forward(self, positions, hidden_states, residual):
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self.self_attn(hidden_states)
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        return self.mlp(hidden_states), residual


class LlamaModel(nn.Module, EagleModelMixin):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        config = vllm_config.model_config.hf_config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.start_layer, self.end_layer, self.layers = self.make_layers(
            config.num_hidden_layers, lambda prefix: LlamaDecoderLayer(config)
        )
        self.norm = RMSNorm(config.hidden_size)

    @staticmethod
    def make_layers(count, build):
        return 0, count, nn.ModuleList([build(prefix=f"layers.{i}") for i in range(count)])

    def forward(self, input_ids, positions, intermediate_tensors, inputs_embeds=None):
        hidden_states = self.embed_tokens(input_ids)
        residual = None
        aux_hidden_states = self._maybe_add_hidden_state([], self.start_layer, hidden_states, residual)
        for idx, layer in enumerate(islice(self.layers, self.start_layer, self.end_layer), start=self.start_layer):
            hidden_states, residual = layer(positions, hidden_states, residual)
            self._maybe_add_hidden_state(aux_hidden_states, idx + 1, hidden_states, residual)
        hidden_states, _ = self.norm(hidden_states, residual)
        if len(aux_hidden_states) > 0:
            return hidden_states, aux_hidden_states
        return hidden_states


class LlamaForCausalLM(nn.Module, SupportsEagle3):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = LlamaModel(vllm_config=vllm_config, prefix=prefix)

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
        return self.model(input_ids, positions, intermediate_tensors, inputs_embeds)
