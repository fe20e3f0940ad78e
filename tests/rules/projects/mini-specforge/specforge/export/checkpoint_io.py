from specforge.modeling.auto import AutoDraftModel, AutoDraftModelConfig


def materialize_draft(state, draft_config_path):
    model = AutoDraftModel.from_config(AutoDraftModelConfig.from_file(draft_config_path))
    model.load_state_dict(state["draft_state_dict"])
    return model
