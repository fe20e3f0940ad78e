"""A target that runs in the stages of a pipeline; each takes over the captures of those before it."""

from sglang.distributed import get_pp_group
from sglang.srt.layers.logits_processor import LogitsProcessor
from sglang.srt.models.capture import CapturesStates, stream
from sglang.srt.models.stages import hand_over, numbered, take_over
from torch import nn


class RMSNorm(nn.Module):
    def forward(self, x, residual=None):
        if residual is None:
            return self.weight * x
        x = x + residual
        return self.weight * x, x


class LlamaDecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size)
        self.self_attn = nn.Linear(config.hidden_size, config.hidden_size)
        self.post_attention_layernorm = RMSNorm(config.hidden_size)
        self.mlp = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states, residual):
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self.self_attn(hidden_states)
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        return self.mlp(hidden_states), residual


class LlamaModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([LlamaDecoderLayer(config) for _ in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size)
        self.layers_to_capture = []
        self.pp_group = get_pp_group()
        share = config.num_hidden_layers // self.pp_group.world_size
        self.start_layer = self.pp_group.rank_in_group * share
        self.end_layer = self.start_layer + share

    def forward(self, input_ids, proxy=None):
        if self.pp_group.is_first_rank:
            hidden_states, residual, aux_hidden_states = self.embed_tokens(input_ids), None, []
        else:
            hidden_states, residual, aux_hidden_states = take_over(proxy)
        for i, layer in numbered(self.layers[self.start_layer : self.end_layer], self.start_layer):
            if i in self.layers_to_capture:
                aux_hidden_states.append(stream(hidden_states, residual))
            hidden_states, residual = layer(hidden_states, residual)
        if not self.pp_group.is_last_rank:
            return hand_over(hidden_states, residual, aux_hidden_states)
        if self.end_layer in self.layers_to_capture:
            aux_hidden_states.append(stream(hidden_states, residual))
        hidden_states, _ = self.norm(hidden_states, residual)
        return hidden_states, aux_hidden_states


class LlamaForCausalLM(CapturesStates, nn.Module):
    def __init__(self, config, quant_config=None, prefix=""):
        super().__init__()
        self.config = config
        self.model = LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.logits_processor = LogitsProcessor(config)

    def forward(self, input_ids, positions, forward_batch, pp_proxy_tensors=None):
        result = self.model(input_ids, pp_proxy_tensors)
        if not self.model.pp_group.is_last_rank:
            return result
        hidden_states, aux_hidden_states = result
        return self.logits_processor(input_ids, hidden_states, self.lm_head, forward_batch, aux_hidden_states)


EntryClass = LlamaForCausalLM
