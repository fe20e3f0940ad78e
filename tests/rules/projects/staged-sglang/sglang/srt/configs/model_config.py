"""What the engine knows of a model: the config that was published with it."""

from transformers import AutoConfig


class ModelConfig:
    def __init__(self, model_path):
        self.hf_config = AutoConfig.from_pretrained(model_path)

    @staticmethod
    def from_server_args(server_args):
        return ModelConfig(server_args.speculative_draft_model_path)
