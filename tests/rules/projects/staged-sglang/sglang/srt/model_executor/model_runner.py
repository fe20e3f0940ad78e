"""The runner: it looks for ids below eagle_config, hands them to the model, and records its graphs after that."""

from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner


class ModelRunner:
    def __init__(self, server_args, spec_algorithm, is_draft_worker, model):
        self.model = model
        self.spec_algorithm = spec_algorithm
        self.is_draft_worker = is_draft_worker
        self.eagle_use_aux_hidden_state = False
        self.eagle_aux_hidden_state_layer_ids = None
        if self.spec_algorithm.is_eagle3() and not self.is_draft_worker:
            draft_model_config = ModelConfig.from_server_args(server_args)
            self.eagle_use_aux_hidden_state = True
            eagle_config = getattr(draft_model_config.hf_config, "eagle_config", None)
            if eagle_config is not None:
                self.eagle_aux_hidden_state_layer_ids = eagle_config.get("eagle_aux_hidden_state_layer_ids")
        self.initialize()

    def initialize(self):
        if self.eagle_use_aux_hidden_state:
            self.model.set_eagle3_layers_to_capture(self.eagle_aux_hidden_state_layer_ids)
        self.init_device_graphs()

    def init_device_graphs(self):
        self.graph_runner = CudaGraphRunner(self)
