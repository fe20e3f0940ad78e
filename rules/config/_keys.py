"""Keys of draft configs that say how the draft is wired, by who reads or writes them."""

from __future__ import annotations

__all__ = ["KNOWN_KEYS", "MODEL_KEYS", "WIRING_STEMS"]

# Read by vLLM 0.33.0 (models/*eagle*, *dflash*, *dspark*, v1/spec_decode, configs/speculators), SGLang 0.5.9 and 0.5.23
# (models/*eagle*, dflash.py, dspark.py, srt/speculative); written by SpecForge 0.2.0, speculators 0.9.0, ModelOpt
# 0.47.0, TorchSpec, AngelSlim, z-lab DFlash, TensorRT-LLM options and GGUF metadata.
KNOWN_KEYS = frozenset({
    "add_swa_attention_sink_bias", "attention_mode", "attention_sink_bias", "attention_value_scale",
    "aux_hidden_state_layer_ids", "aux_hidden_state_layers", "aux_hidden_states_layer_ids", "block_size",
    "capture_layer_ids", "causal", "confidence_head_alpha", "confidence_head_with_markov", "conv_group_size",
    "conv_kernel_size", "dflash_config", "draft_vocab_size", "dspark_block_size", "dspark_bonus_anchor",
    "dspark_draft_topk", "dspark_markov_rank", "dspark_n_routed_experts", "dspark_noise_token_id",
    "dspark_num_experts_per_tok", "dspark_target_layer_ids", "eagle3_layers_to_capture", "eagle3_model_arch",
    "eagle_aux_hidden_state_layer_ids", "eagle_config", "eagle_fc_bias", "emb_dim", "embed_requires_grad",
    "enable_confidence_head", "fc_bias", "fc_norm", "final_logit_softcapping", "gru_hidden_dim", "has_embed_tokens",
    "has_lm_head", "has_own_lm_head", "hot_vocab_size", "is_causal", "layer_ids", "layers_to_capture", "layer_types",
    "lilicorr_enabled", "markov_head_type", "markov_rank", "mask_token", "mask_token_id", "next_layer_regular",
    "norm_before_fc", "norm_before_residual", "norm_output", "num_anchors", "num_aux_hidden_states", "num_aux_layers",
    "num_nextn_predict_layers", "num_target_layers", "output_multiplier", "pard_token", "projector_type",
    "ptd_token_id", "pure_draft_prefix_len", "sample_from_anchor", "selector_rank", "selector_top_k", "shift_label",
    "sliding_window", "sliding_window_non_causal", "speculators_config", "speculators_model_type",
    "speculators_version", "swa_window_size", "target_hidden_size", "target_layer_count", "target_layer_ids",
    "target_layers", "target_model_type", "transformer_layer_config", "truncated_vocab_size", "use_aux_hidden_state",
    "use_aux_norm", "use_input_layernorm_in_first_layer", "use_last_layernorm", "use_mtp_layernorm", "use_swa",
    "vocab_size", "window_size", "has_no_defaults_at_init", "parallel_draft_step", "eagle_decoder_type",
    "use_gemma_norm", "num_mtp_modules", "mtp_num_hidden_layers", "xpress_topc",
})  # fmt: skip

WIRING_STEMS = (
    "aux_hidden", "aux_layer", "capture", "draft_vocab", "eagle", "extract_layer", "feature_layer",
    "hidden_state_layer", "hidden_states_layer", "layer_id", "layers_id", "mask_token",
    "norm_after", "norm_before", "norm_output",
    "target_hidden", "target_layer", "tap_layer",
)  # fmt: skip
"""Parts of names that speak of the draft's wiring; other unknown keys are some library's own business."""

# Keys of transformers' own configs (4.28 to 5.5) that are spelled almost like one of the above.
MODEL_KEYS = frozenset({
    "attention_bias", "attention_dropout", "auto_map", "bos_token_id", "decoder_start_token_id", "eos_token_id",
    "head_dim", "hidden_act", "hidden_size", "initializer_range", "intermediate_size", "max_position_embeddings",
    "max_window_layers", "mlp_bias", "model_type", "moe_intermediate_size", "num_attention_heads", "num_experts",
    "num_experts_per_tok", "num_hidden_layers", "num_key_value_heads", "num_layers", "pad_token_id", "pretraining_tp",
    "qk_norm", "quantization_config", "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta", "sep_token_id",
    "text_config", "tie_word_embeddings", "torch_dtype", "transformers_version", "use_cache", "use_qk_norm",
    "use_sliding_window", "output_hidden_states", "layer_norm_eps", "sliding_window_size", "sliding_window_pattern",
    "num_local_experts", "num_shared_experts", "vision_config", "audio_config", "image_token_id", "video_token_id",
    "first_k_dense_replace", "norm_topk_prob", "norm_eps", "target_modules",
})  # fmt: skip
