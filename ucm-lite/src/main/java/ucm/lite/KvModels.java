package ucm.lite;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Reads models from their published {@code config.json}, or from the excerpts of a few that are
 * built in.
 */
public final class KvModels {
  private static final JsonMapper MAPPER = JsonMapper.builder().build();
  private static final Map<String, Integer> VALUE_BYTES =
      Map.of(
          "float32",
          4,
          "bfloat16",
          2,
          "float16",
          2,
          "bf16",
          2,
          "fp16",
          2,
          "fp8",
          1,
          "int8",
          1,
          "float8_e4m3fn",
          1,
          "float8_e5m2",
          1);

  private KvModels() {}

  /**
   * Returns the short names of the models built in.
   *
   * @return in alphabetical order
   */
  public static List<String> names() {
    return builtIn().propertyNames().stream().sorted().toList();
  }

  /**
   * Finds a model built in.
   *
   * @param name its short name or the one it is published under, in any case
   * @param kvType data type of the cache ({@code bf16}, {@code fp8}, ...) or {@code ""} for the
   *     model's own
   * @return the model; empty when it is not built in
   * @throws TraceException when the data type is not known
   */
  public static Optional<KvModel> named(String name, String kvType) {
    for (Map.Entry<String, JsonNode> model : builtIn().properties()) {
      JsonNode config = model.getValue();
      if (model.getKey().equals(name.toLowerCase(Locale.ROOT))
          || config.path("_name_or_path").asString("").equalsIgnoreCase(name)) {
        return Optional.of(of(config, "the built-in " + name, kvType));
      }
    }
    return Optional.empty();
  }

  /**
   * Reads a model from a file.
   *
   * @param file the model's {@code config.json}
   * @param kvType data type of the cache ({@code bf16}, {@code fp8}, ...) or {@code ""} for the
   *     model's own
   * @return the model
   * @throws TraceException when the file cannot be read, or lacks what is needed
   */
  public static KvModel read(Path file, String kvType) {
    try {
      JsonNode config = MAPPER.readTree(Files.readAllBytes(file));
      if (config == null || !config.isObject()) {
        throw new TraceException(file + " is no JSON object, expected a model's config.json");
      }
      // Models that also see or hear keep the configuration of the language part one level down.
      return of(
          config.path("text_config").isObject() ? config.path("text_config") : config,
          file.toString(),
          kvType);
    } catch (IOException e) {
      throw new TraceException("model configuration " + file + " cannot be read: " + e, e);
    } catch (JacksonException e) {
      throw new TraceException(
          file + " is not valid JSON, expected a model's config.json: " + e.getOriginalMessage(),
          e);
    }
  }

  private static JsonNode builtIn() {
    try (InputStream in = KvModels.class.getResourceAsStream("models.json")) {
      return MAPPER.readTree(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static KvModel of(JsonNode json, String where, String kvType) {
    Config config = new Config(json, where);
    int heads = config.required("num_attention_heads");
    int layers = config.required("num_hidden_layers");
    int hidden = config.required("hidden_size");
    List<String> notes = new ArrayList<>();
    int kvLayers = layersWithCache(json, layers, notes);
    String name = json.path("_name_or_path").asString(where);
    int bytes = valueBytes(json, where, kvType);
    double parameters = config.activeParameters(hidden, layers, heads);
    int latent = config.optional("kv_lora_rank", 0);
    if (latent > 0) {
      int rotary = config.required("qk_rope_head_dim");
      long width =
          (long) heads
              * (config.required("qk_nope_head_dim") + rotary + config.required("v_head_dim"));
      return new KvModel(
          name, kvLayers, true, 1, latent + rotary, bytes, parameters, width / 2, notes);
    }
    int size = config.optional("head_dim", hidden / heads);
    return new KvModel(
        name,
        kvLayers,
        false,
        config.optional("num_key_value_heads", heads),
        size,
        bytes,
        parameters,
        (long) heads * size,
        notes);
  }

  /** Layers of linear attention keep no keys; sliding windows are counted as if they kept all. */
  private static int layersWithCache(JsonNode json, int layers, List<String> notes) {
    int linear = 0;
    int sliding = 0;
    for (JsonNode type : json.path("layer_types")) {
      linear += type.asString("").equals("linear_attention") ? 1 : 0;
      sliding += type.asString("").equals("sliding_attention") ? 1 : 0;
    }
    if (linear > 0) {
      notes.add(linear + " layers of linear attention keep no keys and values and are left out");
    }
    if (sliding > 0) {
      notes.add(sliding + " layers of sliding-window attention are counted as if they kept all");
    }
    return layers - linear;
  }

  private static int valueBytes(JsonNode json, String where, String kvType) {
    String own = json.path("torch_dtype").asString(json.path("dtype").asString("bfloat16"));
    String type = kvType.isEmpty() ? own : kvType;
    Integer bytes = VALUE_BYTES.get(type.toLowerCase(Locale.ROOT));
    if (bytes == null) {
      throw new TraceException(
          "data type "
              + type
              + " of "
              + (kvType.isEmpty() ? where : "the KV cache")
              + " is not known; known are "
              + VALUE_BYTES.keySet().stream().sorted().toList());
    }
    return bytes;
  }

  /** The numbers of a configuration. */
  private record Config(JsonNode json, String where) {
    int required(String key) {
      int value = optional(key, 0);
      if (value <= 0) {
        throw new TraceException(
            where + " has no positive " + key + ", which a model's config.json needs");
      }
      return value;
    }

    int optional(String key, int otherwise) {
      JsonNode value = json.path(key);
      return value.isIntegralNumber() ? value.asInt() : otherwise;
    }

    /** Weights of attention and of the (active) feed-forward parts; norms and biases are small. */
    double activeParameters(int hidden, int layers, int heads) {
      double dense = 3.0 * hidden * required("intermediate_size");
      int expert = optional("moe_intermediate_size", 0);
      if (expert == 0) {
        return layers * (attention(hidden, heads) + dense);
      }
      int denseLayers = optional("first_k_dense_replace", 0);
      double shared =
          3.0
              * hidden
              * optional(
                  "shared_expert_intermediate_size", optional("n_shared_experts", 0) * expert);
      double active = 3.0 * hidden * expert * required("num_experts_per_tok") + shared;
      return layers * attention(hidden, heads)
          + denseLayers * dense
          + (layers - denseLayers) * active;
    }

    private double attention(int hidden, int heads) {
      int latent = optional("kv_lora_rank", 0);
      if (latent > 0) {
        int rotary = required("qk_rope_head_dim");
        int key = required("qk_nope_head_dim");
        int value = required("v_head_dim");
        int queries = optional("q_lora_rank", 0);
        double query = (double) heads * (key + rotary);
        return (queries == 0 ? hidden * query : queries * (hidden + query))
            + (double) hidden * (latent + rotary)
            + (double) latent * heads * (key + value)
            + (double) hidden * heads * value;
      }
      int size = optional("head_dim", hidden / heads);
      return 2.0 * hidden * size * (heads + optional("num_key_value_heads", heads));
    }
  }
}
