"""The runner of the small engine: it looks for ids below eagle_config, and nowhere else."""

from sglang.srt.configs.model_config import ModelConfig


class ModelRunner:
    def __init__(self, server_args, spec_algorithm, is_draft_worker):
        self.spec_algorithm = spec_algorithm
        self.is_draft_worker = is_draft_worker
        self.eagle_use_aux_hidden_state = False
        if self.spec_algorithm.is_eagle3() and not self.is_draft_worker:
            draft_model_config = ModelConfig.from_server_args(server_args)
            self.eagle_use_aux_hidden_state = True
            try:
                eagle_config = getattr(draft_model_config.hf_config, "eagle_config", None)
                self.eagle_use_aux_hidden_state = eagle_config.get("use_aux_hidden_state", True)
                self.eagle_aux_hidden_state_layer_ids = eagle_config["eagle_aux_hidden_state_layer_ids"]
            except Exception:
                self.eagle_aux_hidden_state_layer_ids = None
