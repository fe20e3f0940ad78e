class AutoDraftModelConfig:
    @classmethod
    def from_file(cls, path):
        raise NotImplementedError


class AutoDraftModel:
    @classmethod
    def from_config(cls, config):
        raise NotImplementedError
