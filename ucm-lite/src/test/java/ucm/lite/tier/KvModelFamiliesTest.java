package ucm.lite.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.lite.trace.TraceException;
import ucm.lite.trace.TraceFiles;

/** Configurations as publishers write them; the quotes are single ones, for the eye. */
class KvModelFamiliesTest {
  @TempDir Path directory;

  private KvModel read(String json) {
    String file = TraceFiles.write(directory, "config.json", json.replace('\'', '"'));
    return KvModels.read(Path.of(file), "");
  }

  private void assertRefused(String json, String message) {
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> read(json))
        .withMessageContaining(message);
  }

  /**
   * Bytes by hand: tensors (keys and values, or one latent) x layers x heads x values of a head x bytes
   * of a value.
   */
  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          # 2 x 32 x 8 x 128 x 2
          Llama 3 8B    | 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'intermediate_size': 14336, 'torch_dtype': 'bfloat16' | 131072
          # 2 x 28 x 4 x 128 x 2
          Qwen2 7B      | 'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'intermediate_size': 18944, 'sliding_window': 131072, 'use_sliding_window': false | 57344
          # 2 x 28 x 8 x 128 x 2: a head has 128 values, not 1024 / 16
          Qwen3 0.6B    | 'hidden_size': 1024, 'num_hidden_layers': 28, 'num_attention_heads': 16, 'num_key_value_heads': 8, 'head_dim': 128, 'intermediate_size': 3072 | 114688
          # 2 x 64 x 8 x 128 x 2
          QwQ 32B       | 'hidden_size': 5120, 'num_hidden_layers': 64, 'num_attention_heads': 40, 'num_key_value_heads': 8, 'intermediate_size': 27648 | 262144
          # 2 x 32 x 8 x 128 x 2
          Mistral 7B    | 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'head_dim': null, 'sliding_window': 4096 | 131072
          # 2 x 42 x 8 x 256 x 2
          Gemma 2 9B    | 'hidden_size': 3584, 'num_hidden_layers': 42, 'num_attention_heads': 16, 'num_key_value_heads': 8, 'head_dim': 256, 'sliding_window': 4096 | 344064
          # 2 x 62 x 16 x 128 x 2
          Gemma 3 27B   | 'vision_config': {'hidden_size': 1152}, 'text_config': {'model_type': 'gemma3_text', 'hidden_size': 5376, 'num_hidden_layers': 62, 'num_attention_heads': 32, 'num_key_value_heads': 16, 'head_dim': 128, 'sliding_window': 1024} | 507904
          # 2 x 34 x 4 x 256 x 2: heads are those of its type
          Gemma 3 4B    | 'text_config': {'model_type': 'gemma3_text', 'hidden_size': 2560, 'num_hidden_layers': 34, 'intermediate_size': 10240, 'sliding_window': 1024} | 139264
          # 2 x 32 x 32 x 96 x 2
          Phi-3 mini    | 'hidden_size': 3072, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 32, 'sliding_window': 2047 | 393216
          # 2 x 28 x 16 x 256 x 2
          GPT-J         | 'n_embd': 4096, 'n_layer': 28, 'n_head': 16, 'n_inner': null, 'rotary_dim': 64 | 458752
          # 2 x 44 x 64 x 96 x 2
          GPT-NeoX 20B  | 'model_type': 'gpt_neox', 'hidden_size': 6144, 'num_hidden_layers': 44, 'num_attention_heads': 64, 'intermediate_size': 24576, 'torch_dtype': 'float16' | 1081344
          # 2 x 60 x 8 x 64 x 2
          Falcon 40B    | 'hidden_size': 8192, 'num_hidden_layers': 60, 'num_attention_heads': 128, 'num_kv_heads': 8, 'multi_query': true, 'new_decoder_architecture': true | 122880
          # 2 x 60 x 8 x 64 x 2
          Falcon 40B, of old | 'hidden_size': 8192, 'n_layer': 60, 'n_head': 128, 'n_head_kv': 8, 'new_decoder_architecture': true | 122880
          # 2 x 24 x 32 x 64 x 2
          Falcon RW 1B  | 'hidden_size': 2048, 'num_hidden_layers': 24, 'num_attention_heads': 32, 'multi_query': false, 'new_decoder_architecture': false | 196608
          # 2 x 32 x 32 x 128 x 2
          MPT 7B        | 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, 'expansion_ratio': 4, 'attn_config': {'attn_type': 'multihead_attention'} | 524288
          # 2 x 32 x 8 x 128 x 2
          MPT, grouped  | 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, 'attn_config': {'attn_type': 'grouped_query_attention', 'kv_n_heads': 8} | 131072
          # 2 x 32 x 1 x 128 x 2
          MPT, one head | 'd_model': 4096, 'n_layers': 32, 'n_heads': 32, 'attn_config': {'attn_type': 'multiquery_attention'} | 16384
          # 2 x 28 x 32 x 128 x 2
          ChatGLM 6B    | 'hidden_size': 4096, 'num_layers': 28, 'num_attention_heads': 32, 'inner_hidden_size': 16384, 'torch_dtype': 'float16' | 458752
          # 2 x 40 x 2 x 128 x 2
          GLM-4 9B      | 'hidden_size': 4096, 'num_layers': 40, 'num_attention_heads': 32, 'kv_channels': 128, 'multi_query_attention': true, 'multi_query_group_num': 2, 'ffn_hidden_size': 13696 | 40960
          # 2 x 40 x 32 x 128 x 2: the number of groups counts only with the flag
          GLM, all heads | 'hidden_size': 4096, 'num_layers': 40, 'num_attention_heads': 32, 'kv_channels': 128, 'multi_query_attention': false, 'multi_query_group_num': 1 | 655360
          # 27 x (512 + 64) x 2
          DeepSeek V2 Lite | 'hidden_size': 2048, 'num_hidden_layers': 27, 'num_attention_heads': 16, 'num_key_value_heads': 16, 'kv_lora_rank': 512, 'q_lora_rank': null, 'qk_rope_head_dim': 64, 'qk_nope_head_dim': 128, 'v_head_dim': 128, 'n_routed_experts': 64, 'num_experts_per_tok': 6, 'moe_intermediate_size': 1408, 'intermediate_size': 10944 | 31104
          # 61 x (512 + 64) x 2: the weights have 8 bits, the latent has not
          Kimi K2       | 'hidden_size': 7168, 'num_hidden_layers': 61, 'num_attention_heads': 64, 'num_key_value_heads': 64, 'kv_lora_rank': 512, 'q_lora_rank': 1536, 'qk_rope_head_dim': 64, 'qk_nope_head_dim': 128, 'v_head_dim': 128, 'n_routed_experts': 384, 'num_experts_per_tok': 8, 'moe_intermediate_size': 2048, 'torch_dtype': 'bfloat16', 'quantization_config': {'quant_method': 'fp8', 'fmt': 'e4m3'} | 70272
          # 2 x 40 x 8 x 128 x 2
          DBRX          | 'd_model': 6144, 'n_layers': 40, 'n_heads': 48, 'attn_config': {'kv_n_heads': 8, 'clip_qkv': 8}, 'ffn_config': {'ffn_hidden_size': 10752, 'moe_num_experts': 16, 'moe_top_k': 4} | 163840
          # 2 x 64 x 8 x 128 x 2
          Command R+    | 'hidden_size': 12288, 'num_hidden_layers': 64, 'num_attention_heads': 96, 'num_key_value_heads': 8, 'intermediate_size': 33792, 'torch_dtype': 'float16' | 262144
          # 2 x 28 x 4 x 128 x 2
          Qwen2.5-VL 7B | 'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'vision_config': {'depth': 32, 'hidden_size': 1280} | 57344
          # the same, with a language part that says nothing of its own
          Qwen2.5-VL, flat | 'text_config': {'model_type': 'qwen2'}, 'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4 | 57344
          # 2 x 28 x 4 x 128 x 2
          Qwen2.5-Omni  | 'thinker_config': {'text_config': {'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4}} | 57344
          # 2 x 48 x 8 x 128 x 2
          Llama 4 Scout | 'text_config': {'hidden_size': 5120, 'num_hidden_layers': 48, 'num_attention_heads': 40, 'num_key_value_heads': 8, 'head_dim': 128, 'num_local_experts': 16, 'num_experts_per_tok': 1, 'intermediate_size': 8192} | 196608
          # 2 x 24 x 8 x 64 x 2
          gpt-oss 20B   | 'hidden_size': 2880, 'num_hidden_layers': 24, 'num_attention_heads': 64, 'num_key_value_heads': 8, 'head_dim': 64, 'num_local_experts': 32, 'experts_per_token': 4, 'intermediate_size': 2880, 'quantization_config': {'quant_method': 'mxfp4'} | 49152
          # 2 x 2 x 8 x 128 x 2
          MiniMax M2, shortened | 'hidden_size': 3072, 'num_hidden_layers': 2, 'num_attention_heads': 48, 'num_key_value_heads': 8, 'head_dim': 128, 'attn_type_list': [1, 1] | 8192
          # 2 x 40 x 40 x 128 x 2
          Baichuan 13B  | 'hidden_size': 5120, 'num_hidden_layers': 40, 'num_attention_heads': 40, 'intermediate_size': 13696 | 819200
          # 2 x 32 x 8 x 128 x 2
          InternLM2 7B  | 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'bias': false | 131072
          # 2 x 40 x 1 x 128 x 2
          StarCoder     | 'n_embd': 6144, 'n_layer': 40, 'n_head': 48, 'n_inner': 24576, 'multi_query': true, 'torch_dtype': 'float16' | 20480
          # 2 x 70 x 112 x 128 x 2
          Bloom         | 'hidden_size': 14336, 'n_layer': 70, 'n_head': 112, 'torch_dtype': 'bfloat16' | 4014080
          # 2 x 28 x 4 x 128 x 2: the name of the data type is a new one, and the weights have 4 bits
          AWQ           | 'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'dtype': 'float16', 'quantization_config': {'quant_method': 'awq', 'bits': 4} | 57344
          # as above: the weights have 8 bits
          fp8 weights   | 'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'torch_dtype': 'torch.float8_e4m3fn' | 57344
          # 2 x 28 x 4 x 128 x 1
          fp8 KV cache  | 'hidden_size': 3584, 'num_hidden_layers': 28, 'num_attention_heads': 28, 'num_key_value_heads': 4, 'quantization_config': {'kv_cache_scheme': {'num_bits': 8, 'type': 'float'}} | 28672
          """)
  void countsTheBytesOfAToken(String name, String fields, long bytes) {
    assertThat(read("{" + fields + "}").storedBytesPerToken(1)).as(name).isEqualTo(bytes);
  }

  /** Some layers keep nothing; bytes by hand as above. */
  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          # 2 x (48 / 4) x 2 x 256 x 2
          Qwen3-Next    | 'hidden_size': 2048, 'num_hidden_layers': 48, 'num_attention_heads': 16, 'num_key_value_heads': 2, 'head_dim': 256, 'full_attention_interval': 4, 'linear_num_value_heads': 32 | 24576
          # 2 x 4 x 8 x 128 x 2: layers 4, 12, 20 and 28
          Jamba         | 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'attn_layer_period': 8, 'attn_layer_offset': 4, 'mamba_d_state': 16 | 16384
          # 2 x 1 x 8 x 128 x 2
          MiniMax Text, shortened | 'hidden_size': 6144, 'num_hidden_layers': 8, 'num_attention_heads': 64, 'num_key_value_heads': 8, 'head_dim': 128, 'attn_type_list': [0, 0, 0, 0, 0, 0, 0, 1] | 4096
          # 2 x 2 x 8 x 128 x 2
          Nemotron H, shortened | 'hidden_size': 4096, 'num_hidden_layers': 6, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'head_dim': 128, 'hybrid_override_pattern': 'M-*M-*', 'ssm_state_size': 128 | 8192
          # 2 x 1 x 1 x 256 x 2: the pattern repeats, and ends within
          RecurrentGemma, shortened | 'hidden_size': 2560, 'num_hidden_layers': 5, 'num_attention_heads': 10, 'num_key_value_heads': 1, 'head_dim': 256, 'block_types': ['recurrent', 'recurrent', 'attention'], 'lru_width': 2560 | 1024
          # 2 x 3 x 8 x 128 x 2
          Bamba         | 'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'num_key_value_heads': 8, 'attn_layer_indices': [9, 18, 27], 'mamba_d_state': 128 | 12288
          # 1 x (512 + 64) x 2
          Kimi Linear, shortened | 'hidden_size': 2304, 'num_hidden_layers': 4, 'num_attention_heads': 32, 'kv_lora_rank': 512, 'qk_rope_head_dim': 64, 'qk_nope_head_dim': 128, 'v_head_dim': 128, 'linear_attn_config': {'full_attn_layers': [4], 'kda_layers': [1, 2, 3]} | 1152
          """)
  void leavesOutLayersThatKeepNothing(String name, String fields, long bytes) {
    KvModel model = read("{" + fields + "}");

    assertThat(model.storedBytesPerToken(1)).as(name).isEqualTo(bytes);
    assertThat(model.notes()).singleElement().asString().contains("are left out");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          'mamba_d_state': 16                             | keep no keys and values (mamba_d_state)
          'linear_attn_config': {'kda_layers': [1]}       | keep no keys and values (linear_attn_config)
          'layer_types': ['full_attention']               | has 1 entries in layer_types for 2 layers
          'layer_types': ['full_attention', 'retention']  | a layer of the type retention
          'layer_types': ['mamba', 'mamba']               | no layer that keeps keys and values
          'num_key_value_heads_per_layer': [4, 2]         | different caches (num_key_value_heads_per_layer)
          'v_head_dim': 32                                | values of another size than keys (v_head_dim)
          'num_kv_heads': [2, 1]                          | has a list as num_kv_heads
          'num_attention_heads': 7                        | has no head_dim
          'num_hidden_layers': null                       | no positive num_hidden_layers
          'hidden_size': 0                                | no positive hidden_size
          'num_experts': 8                                | no positive num_experts_per_tok
          'torch_dtype': 'int3'                           | data type int3 of
          """)
  void namesTheFieldThatItCannotDoWith(String field, String message) {
    // The last of two fields of a name counts.
    assertRefused(
        "{'hidden_size': 64, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'intermediate_size':"
            + " 128, "
            + field
            + "}",
        message);
  }

  /** 44 x (4 x 6144 x 6144 + 2 x 6144 x 24576): two matrices in the feed-forward part, not three. */
  @Test
  void countsTheMatricesOfAModelWithoutGates() {
    KvModel model =
        read(
            "{'model_type': 'gpt_neox', 'hidden_size': 6144, 'num_hidden_layers': 44,"
                + " 'num_attention_heads': 64, 'intermediate_size': 24576}");

    assertThat(model.activeParameters()).isEqualTo(1.99e10, within(1e8));
  }

  @Test
  void saysInWordsWhyAFileCannotBeRead() {
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> KvModels.read(directory.resolve("none"), ""))
        .withMessageEndingWith(
            "none cannot be read: there is no such file or folder; name a model's config.json");
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> KvModels.read(directory, ""))
        .withMessageContaining("cannot be read: Is a directory");
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> KvModels.read(Path.of("/dev/zero"), ""))
        .withMessageContaining("is larger than 16 MiB");
  }
}
