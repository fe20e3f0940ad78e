"""Records the model's forward pass, to replay it for each decoding step."""

import torch


class CudaGraphRunner:
    def __init__(self, model_runner):
        self.model_runner = model_runner
        self.capture()

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = self.model_runner.model.forward(*self.buffers)
