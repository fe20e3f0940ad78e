class OfflineSGLangCaptureBackend:
    def __init__(self, model_runner):
        self.model_runner = model_runner

    def set_capture_layers(self, layer_ids=None, *, capture_method):
        setters = {"eagle3": "set_eagle3_layers_to_capture"}
        getattr(self.model_runner.model, setters[capture_method])(layer_ids)
