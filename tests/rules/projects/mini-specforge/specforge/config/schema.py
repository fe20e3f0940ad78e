from pydantic import BaseModel


class ModelConfig(BaseModel):
    target_model_path: str = ""
    aux_hidden_state_layer_ids: list[int] | None = None


class TrainingConfig(BaseModel):
    strategy: str = "eagle3"


class DataConfig(BaseModel):
    hidden_states_path: str = ""


class Config(BaseModel):
    model: ModelConfig
    training: TrainingConfig
    data: DataConfig
