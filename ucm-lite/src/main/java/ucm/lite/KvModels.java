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
import tools.jackson.databind.node.ObjectNode;

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
          "half",
          2,
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

  private static final List<String> LANGUAGE_PARTS =
      List.of("text_config", "llm_config", "language_config", "thinker_config");
  private static final List<String> LINEAR = List.of("linear_attention", "mamba");
  private static final List<String> DATA_TYPES = List.of("torch_dtype", "dtype");

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
   * @param name its short name or the one it is published under, in any case; of a path such as
   *     {@code /home/models/QwQ-32B} the last part counts
   * @param kvType data type of the cache ({@code bf16}, {@code fp8}, ...) or {@code ""} for the
   *     model's own
   * @return the model; empty when it is not built in
   * @throws TraceException when the data type is not known
   */
  public static Optional<KvModel> named(String name, String kvType) {
    String asked = lastPart(name);
    for (Map.Entry<String, JsonNode> model : builtIn().properties()) {
      JsonNode config = model.getValue();
      if (model.getKey().equals(asked)
          || lastPart(config.path("_name_or_path").asString("")).equals(asked)) {
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
      return of(languagePart(config), file.toString(), kvType);
    } catch (IOException e) {
      throw new TraceException("model configuration " + file + " cannot be read: " + e, e);
    } catch (JacksonException e) {
      throw new TraceException(
          file + " is not valid JSON, expected a model's config.json: " + e.getOriginalMessage(),
          e);
    }
  }

  private static String lastPart(String name) {
    return name.substring(name.lastIndexOf('/') + 1).toLowerCase(Locale.ROOT);
  }

  /**
   * The language part, which models that also see or hear keep further down; it has the data type of
   * the whole where it names none.
   */
  private static JsonNode languagePart(JsonNode config) {
    for (String part : LANGUAGE_PARTS) {
      if (config.path(part).isObject()) {
        ObjectNode inner = (ObjectNode) languagePart(config.path(part));
        for (String key : DATA_TYPES) {
          if (config.hasNonNull(key) && DATA_TYPES.stream().noneMatch(inner::hasNonNull)) {
            inner.set(key, config.get(key));
          }
        }
        return inner;
      }
    }
    return config;
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
    int heads = config.required(Config.HEADS);
    int layers = config.required(Config.LAYERS);
    int hidden = config.required(Config.HIDDEN);
    List<String> notes = new ArrayList<>();
    int kvLayers = layersWithCache(config, layers, notes);
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
    int size = config.headSize(hidden, heads);
    return new KvModel(
        name,
        kvLayers,
        false,
        config.kvHeads(heads),
        size,
        bytes,
        parameters,
        (long) heads * size,
        notes);
  }

  /** Layers of linear attention keep no keys; sliding windows are counted as if they kept all. */
  private static int layersWithCache(Config config, int layers, List<String> notes) {
    int linear = 0;
    int sliding = 0;
    int interval = config.optional("full_attention_interval", 0);
    if (interval > 0 && !config.json().path("layer_types").isArray()) {
      linear = layers - layers / interval;
    }
    for (JsonNode type : config.json().path("layer_types")) {
      linear += LINEAR.contains(type.asString("")) ? 1 : 0;
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

  /** The numbers of a configuration, each under any of the names that publishers gave it. */
  private record Config(JsonNode json, String where) {
    private static final List<String> HEADS = List.of("num_attention_heads", "n_head", "n_heads");
    private static final List<String> LAYERS =
        List.of("num_hidden_layers", "n_layer", "n_layers", "num_layers");
    private static final List<String> HIDDEN =
        List.of("hidden_size", "n_embd", "n_embed", "d_model");
    private static final List<String> KV_HEADS =
        List.of("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num");
    private static final List<String> GATED =
        List.of("intermediate_size", "ffn_hidden_size", "feed_forward_length");
    private static final List<String> PLAIN = List.of("n_inner", "ffn_dim");
    private static final List<String> EXPERTS =
        List.of("num_local_experts", "num_experts", "n_routed_experts");
    private static final List<String> ACTIVE_EXPERTS =
        List.of("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk");

    int required(String key) {
      return required(List.of(key));
    }

    int required(List<String> names) {
      int value = optional(names, 0);
      if (value <= 0) {
        throw new TraceException(
            where + " has no positive " + names.getFirst() + ", which a model's config.json needs");
      }
      return value;
    }

    int optional(String key, int otherwise) {
      return optional(List.of(key), otherwise);
    }

    int optional(List<String> names, int otherwise) {
      for (String name : names) {
        JsonNode value = json.path(name);
        if (value.isIntegralNumber()) {
          return value.asInt();
        }
        if (value.isArray()) {
          throw new TraceException(
              where + " has a list as " + name + ", one value for each layer: not supported");
        }
      }
      return otherwise;
    }

    int headSize(int hidden, int heads) {
      return optional(List.of("head_dim", "kv_channels"), hidden / heads);
    }

    /** One head for all where multi-query attention is on and its heads are not counted. */
    int kvHeads(int heads) {
      boolean one =
          json.path("multi_query").asBoolean(false)
              && !json.path("new_decoder_architecture").asBoolean(false);
      return one ? 1 : optional(KV_HEADS, heads);
    }

    /** Weights of attention and of the (active) feed-forward parts; norms and biases are small. */
    double activeParameters(int hidden, int layers, int heads) {
      int gated = optional(GATED, 0);
      double dense = gated > 0 ? 3.0 * hidden * gated : 2.0 * hidden * optional(PLAIN, 4 * hidden);
      int expert = optional("moe_intermediate_size", optional(EXPERTS, 0) > 1 ? gated : 0);
      if (expert == 0) {
        return layers * (attention(hidden, heads) + dense);
      }
      int denseLayers = optional("first_k_dense_replace", 0);
      double shared =
          3.0
              * hidden
              * optional(
                  "shared_expert_intermediate_size", optional("n_shared_experts", 0) * expert);
      double active = 3.0 * hidden * expert * required(ACTIVE_EXPERTS) + shared;
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
      return 2.0 * hidden * headSize(hidden, heads) * (heads + kvHeads(heads));
    }
  }
}
