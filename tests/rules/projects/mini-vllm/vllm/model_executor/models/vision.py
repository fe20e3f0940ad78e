from torch import nn
from vllm.model_executor.models.interfaces import SupportsEagle3
from vllm.model_executor.models.llama import LlamaForCausalLM


class VisionForConditionalGeneration(nn.Module, SupportsEagle3):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.language_model = LlamaForCausalLM(vllm_config=vllm_config)

    def get_language_model(self):
        return self.language_model

    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None):
        return self.language_model.model(input_ids, positions, intermediate_tensors, inputs_embeds)
