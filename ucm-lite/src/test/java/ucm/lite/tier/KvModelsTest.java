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

class KvModelsTest {
  @TempDir Path directory;

  /** Bytes a token by hand; parameters without embeddings as the publishers name them. */
  @ParameterizedTest
  @CsvSource({
    "qwen2.5-0.5b, 12288, 0.36e9",
    "qwen2.5-7b, 57344, 6.53e9",
    "Qwen/Qwen2.5-14B-Instruct, 196608, 13.1e9",
    "QWQ-32B, 262144, 31.0e9",
    "llama-3.1-8b, 131072, 6.98e9",
    "llama-3.1-70b, 327680, 68.5e9",
    "qwen3-235b-a22b, 192512, 20.9e9",
    "deepseek-r1, 70272, 35.7e9",
    "deepseek-ai/DeepSeek-V3, 70272, 35.7e9",
    "DeepSeek-R1-awq, 70272, 35.7e9",
    "/home/models/Qwen2.5-14B-Instruct, 196608, 13.1e9",
    "QwQ-32B, 262144, 31.0e9",
    "meta-llama/Llama-3.1-8B-Instruct, 131072, 6.98e9",
  })
  void knowsAFewModels(String name, long bytesPerToken, double parameters) {
    KvModel model = KvModels.named(name, "").orElseThrow();

    assertThat(model.storedBytesPerToken(1)).isEqualTo(bytesPerToken);
    assertThat(model.activeParameters()).isEqualTo(parameters, within(parameters * 0.03));
    assertThat(KvModels.named(name, "fp8").orElseThrow().storedBytesPerToken(1))
        .isEqualTo(bytesPerToken / 2);
    assertThat(model.notes()).isEmpty();
  }

  @Test
  void dividesHeadsAmongRanksAndRepeatsThemWhereThereAreTooFew() {
    KvModel grouped = KvModels.named("qwen2.5-7b", "").orElseThrow();

    assertThat(grouped.bytesPerTokenAndRank(4)).isEqualTo(57_344 / 4);
    assertThat(grouped.storedBytesPerToken(4)).isEqualTo(57_344);
    assertThat(grouped.bytesPerTokenAndRank(8)).isEqualTo(57_344 / 4);
    assertThat(grouped.storedBytesPerToken(8)).isEqualTo(2 * 57_344);
  }

  @Test
  void keepsALatentOnEveryRankAndStoresItOnce() {
    KvModel latent = KvModels.named("deepseek-r1", "").orElseThrow();

    assertThat(latent.bytesPerTokenAndRank(8)).isEqualTo(70_272);
    assertThat(latent.storedBytesPerToken(8)).isEqualTo(70_272);
  }

  @Test
  void readsTheLanguagePartOfAConfigurationAndSaysWhatItLeavesOut() {
    String file =
        TraceFiles.write(
            directory,
            "config.json",
            """
            {"text_config": {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
             "intermediate_size": 100, "torch_dtype": "float32", "head_dim": 64,
             "layer_types": ["linear_attention", "full_attention", "sliding_attention",
             "full_attention"]}}\
            """);

    KvModel model = KvModels.read(Path.of(file), "");

    assertThat(model.layers()).isEqualTo(3);
    assertThat(model.storedBytesPerToken(1)).isEqualTo(3 * 2 * 8 * 64 * 2);
    assertThat(model.notes()).hasSize(2);
  }

  /** Bytes a token and parameters without embeddings by hand, from the published configurations. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        // GPT-2
        "{'n_embd': 768, 'n_layer': 12, 'n_head': 12, 'torch_dtype': 'float32'} | 36864 | 85e6",
        // Falcon 7B
        "{'hidden_size': 4544, 'num_hidden_layers': 32, 'num_attention_heads': 71,"
            + " 'multi_query': true, 'new_decoder_architecture': false} | 8192 | 6.63e9",
        // ChatGLM 6B of the third generation
        "{'hidden_size': 4096, 'num_layers': 28, 'num_attention_heads': 32, 'kv_channels': 128,"
            + " 'multi_query_attention': true, 'multi_query_group_num': 2,"
            + " 'ffn_hidden_size': 13696, 'torch_dtype': 'float16'} | 28672 | 5.7e9",
        // Mixtral 8x7B
        "{'hidden_size': 4096, 'num_hidden_layers': 32, 'num_attention_heads': 32, 'head_dim':"
            + " null, 'num_key_value_heads': 8, 'intermediate_size': 14336, 'num_local_experts': 8,"
            + " 'num_experts_per_tok': 2} | 131072 | 12.6e9",
        // the language part of a model that sees, with the data type of the whole
        "{'torch_dtype': 'float32', 'llm_config': {'hidden_size': 896, 'num_hidden_layers': 24,"
            + " 'num_attention_heads': 14, 'num_key_value_heads': 2, 'intermediate_size': 4864}}"
            + " | 12288 | 0.36e9",
        // one layer in four with full attention
        "{'hidden_size': 2048, 'num_hidden_layers': 48, 'num_attention_heads': 16, 'head_dim': 256,"
            + " 'num_key_value_heads': 2, 'full_attention_interval': 4, 'num_experts': 512,"
            + " 'intermediate_size': 5120, 'moe_intermediate_size': 512, 'num_experts_per_tok': 10,"
            + " 'shared_expert_intermediate_size': 512} | 24576 | 2.57e9",
      })
  void readsConfigurationsOfOtherFamilies(String json, long bytesPerToken, double parameters) {
    String file = TraceFiles.write(directory, "config.json", json.replace('\'', '"'));

    KvModel model = KvModels.read(Path.of(file), "");

    assertThat(model.storedBytesPerToken(1)).isEqualTo(bytesPerToken);
    assertThat(model.activeParameters()).isEqualTo(parameters, within(parameters * 0.03));
  }

  @Test
  void saysWhatIsWrongWithAConfiguration() {
    String empty = TraceFiles.write(directory, "a.json", "{}");
    String broken = TraceFiles.write(directory, "b.json", "{\"secret\"");
    String list = TraceFiles.write(directory, "c.json", "[]");

    assertFails(empty, "", "a.json has no positive num_attention_heads");
    assertFails(broken, "", "b.json is not valid JSON");
    assertFails(list, "", "c.json is no JSON object");
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> KvModels.named("qwq-32b", "fp7"))
        .withMessageContaining("data type fp7 of the KV cache is not known");
    assertThat(KvModels.named("no-such", "")).isEmpty();
  }

  @Test
  void countsTheOperationsOfAPrefillSoThatPartsAddUp() {
    KvModel model = KvModels.named("llama-3.1-8b", "").orElseThrow();
    double whole = model.prefillOperations(0, 8000);

    assertThat(model.prefillOperations(0, 3000) + model.prefillOperations(3000, 8000))
        .isEqualTo(whole, within(whole * 1e-9));
    // 2 x 6.98e9 x 8000, and 2 x 32 layers x 4096 x 8000 x 8000.
    assertThat(whole).isEqualTo(1.117e14 + 0.168e14, within(0.02e14));
  }

  private static void assertFails(String file, String type, String message) {
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> KvModels.read(Path.of(file), type))
        .withMessageContaining(message);
  }
}
