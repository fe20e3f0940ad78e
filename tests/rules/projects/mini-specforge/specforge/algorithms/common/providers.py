from dataclasses import dataclass


@dataclass(frozen=True)
class OfflineCaptureLayout:
    capture_method: str
    aux_feature: str
    last_hidden_feature: str

    def materialize(self, sources):
        return {
            self.aux_feature: sources["aux_hidden_states"],
            self.last_hidden_feature: sources["last_hidden_states"],
            "input_ids": sources["input_ids"],
            "loss_mask": sources["loss_mask"],
        }


@dataclass(frozen=True)
class OfflineDataProvider:
    capture_layout: object
    build_normalizer: object


@dataclass(frozen=True)
class AlgorithmProviders:
    offline: tuple = ()
    server_streaming: tuple = ()
