package ucm.lite.tier;

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
import ucm.lite.trace.FileFault;
import ucm.lite.trace.TraceException;

/**
 * Reads models from their published {@code config.json}, or from the excerpts of a few that are
 * built in.
 */
public final class KvModels {
  private static final JsonMapper MAPPER = JsonMapper.builder().build();

  private static final List<String> LANGUAGE_PARTS =
      List.of("text_config", "llm_config", "language_config", "thinker_config");
  private static final List<String> DATA_TYPES = List.of("torch_dtype", "dtype");
  private static final String QUANTIZATION = "quantization_config";
  private static final int MOST_BYTES = 16 << 20;

  private KvModels() {}

  /** The short names of the models built in, in alphabetical order. */
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

  /** Reads a model's {@code config.json}; the data type is as in {@link #named}. */
  public static KvModel read(Path file, String kvType) {
    try (InputStream in = Files.newInputStream(file)) {
      byte[] bytes = in.readNBytes(MOST_BYTES + 1);
      if (bytes.length > MOST_BYTES) {
        throw new TraceException(
            file + " is larger than 16 MiB, which no model's config.json is: name that file");
      }
      JsonNode config = MAPPER.readTree(bytes);
      if (config == null || !config.isObject()) {
        throw new TraceException(file + " is no JSON object, expected a model's config.json");
      }
      return of(languagePart(config), file.toString(), kvType);
    } catch (IOException e) {
      throw new TraceException(
          String.format(
              "the model configuration %s cannot be read: %s; name a model's config.json",
              file, FileFault.of(e)),
          e);
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
   * The language part, which models that also see or hear keep further down; it has the data types
   * of the whole where it names none. One that only says what differs from its type has no layers,
   * and is passed over.
   */
  private static JsonNode languagePart(JsonNode config) {
    for (String part : LANGUAGE_PARTS) {
      if (config.path(part).isObject()
          && languagePart(config.path(part)) instanceof ObjectNode inner
          && ModelConfig.LAYERS.stream().anyMatch(inner::hasNonNull)) {
        for (String key : DATA_TYPES) {
          if (config.hasNonNull(key) && DATA_TYPES.stream().noneMatch(inner::hasNonNull)) {
            inner.set(key, config.get(key));
          }
        }
        if (config.hasNonNull(QUANTIZATION) && !inner.hasNonNull(QUANTIZATION)) {
          inner.set(QUANTIZATION, config.get(QUANTIZATION));
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
    ModelConfig config = new ModelConfig(json, where);
    int heads = config.required(ModelConfig.HEADS);
    int layers = config.required(ModelConfig.LAYERS);
    int hidden = config.required(ModelConfig.HIDDEN);
    List<String> notes = new ArrayList<>();
    int kvLayers = config.layersWithCache(layers, notes) * config.attentionsOfLayer(notes);
    String published = json.path("_name_or_path").asString("");
    String name = published.isBlank() ? where : published;
    int bytes = valueBytes(json, where, kvType, notes);
    double parameters = config.activeParameters(hidden, layers, heads);
    int latent = config.optional("kv_lora_rank", 0);
    if (latent > 0) {
      int rotary = config.required("qk_rope_head_dim");
      long width =
          (long) heads
              * (config.required("qk_nope_head_dim") + rotary + config.required("v_head_dim"));
      if (config.optional("index_head_dim", 0) > 0) {
        notes.add(
            "the keys of the indexer (index_head_dim), which engines keep apart, are left out");
      }
      return new KvModel(
          name, kvLayers, true, 1, latent + rotary, bytes, parameters, width / 2, notes);
    }
    int size = config.headSize(hidden, heads);
    if (config.optional("v_head_dim", size) != size) {
      throw new TraceException(
          where + " has values of another size than keys (v_head_dim): not supported");
    }
    int kvHeads = config.kvHeads(heads);
    long width = (long) heads * size;
    return new KvModel(name, kvLayers, false, kvHeads, size, bytes, parameters, width, notes);
  }

  /** Weights of 8 bits or fewer are computed with as 16 bits, and so are keys and values. */
  private static int valueBytes(JsonNode json, String where, String kvType, List<String> notes) {
    if (kvType.isEmpty()) {
      JsonNode quantization = json.path(QUANTIZATION);
      if (quantization.path("kv_cache_scheme").path("num_bits").asInt(16) == 8
          || quantization.path("kv_cache_quant_algo").asString("").equalsIgnoreCase("fp8")) {
        notes.add("its keys and values have 8 bits, as quantization_config says");
        return 1;
      }
      // Must be known; also of weights of 32 bits engines compute with 16, unless they are told
      // otherwise.
      int _ =
          valueBytes(json.path("torch_dtype").asString(json.path("dtype").asString("bf16")), where);
      return 2;
    }
    return valueBytes(kvType, "the KV cache");
  }

  private static int valueBytes(String type, String of) {
    return switch (type.toLowerCase(Locale.ROOT).replaceFirst("^torch\\.", "")) {
      case "float32" -> 4;
      case "bf16", "bfloat16", "float16", "fp16", "half" -> 2;
      case "float8_e4m3fn", "float8_e5m2", "fp8", "int8" -> 1;
      default ->
          throw new TraceException(
              String.format(
                  "data type %s of %s is not known; known are [bf16, bfloat16, float16, float32,"
                      + " float8_e4m3fn, float8_e5m2, fp16, fp8, half, int8]",
                  type, of));
    };
  }
}
