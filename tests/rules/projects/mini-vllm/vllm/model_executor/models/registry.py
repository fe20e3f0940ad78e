_TEXT_GENERATION_MODELS = {
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    "RenamedForCausalLM": ("llama", "LlamaForCausalLM"),
}
_MULTIMODAL_MODELS = {"VisionForConditionalGeneration": ("vision", "VisionForConditionalGeneration")}
