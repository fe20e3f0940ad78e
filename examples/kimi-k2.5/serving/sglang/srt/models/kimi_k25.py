"""The multimodal wrapper of the example: it hands the ids, and the forward pass, to the text model inside."""

from sglang.srt.models.deepseek_v2 import DeepseekV3ForCausalLM
from torch import nn


class KimiK25ForConditionalGeneration(nn.Module):
    def __init__(self, config, quant_config=None, prefix=""):
        super().__init__()
        self.config = config
        self.language_model = DeepseekV3ForCausalLM(config.text_config, quant_config)

    def forward(self, input_ids, positions, forward_batch):
        return self.language_model(input_ids, positions, forward_batch)

    def set_eagle3_layers_to_capture(self, layer_ids=None):
        self.language_model.set_eagle3_layers_to_capture(layer_ids)


EntryClass = KimiK25ForConditionalGeneration
