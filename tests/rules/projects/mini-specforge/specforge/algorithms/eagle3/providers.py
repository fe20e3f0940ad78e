from specforge.algorithms.common.providers import AlgorithmProviders, OfflineCaptureLayout, OfflineDataProvider
from specforge.algorithms.eagle3.data import build_offline_normalizer
from specforge.algorithms.model_providers import resolve_eagle_capture_layers


def resolve_capture_layers(config, draft_config, target_config):
    return resolve_eagle_capture_layers(config, draft_config, target_config)


def algorithm_providers():
    return AlgorithmProviders(
        offline=(
            OfflineDataProvider(
                capture_layout=OfflineCaptureLayout("eagle3", "aux_hidden_state", "hidden_state"),
                build_normalizer=build_offline_normalizer,
            ),
        ),
    )
