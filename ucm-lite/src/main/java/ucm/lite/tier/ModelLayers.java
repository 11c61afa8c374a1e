package ucm.lite.tier;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import tools.jackson.databind.JsonNode;
import ucm.lite.trace.TraceException;

/** Which layers of a model keep keys and values of each token, where not all do. */
record ModelLayers(ModelNumbers config, int layers) {

  private static final Set<String> KEEPING =
      Set.copyOf(ModelNumbers.names("full_attention attention * 1"));
  private static final Set<String> WINDOWED = Set.of("sliding_attention", "chunked_attention");
  private static final Set<String> LINEAR =
      Set.copyOf(
          ModelNumbers.names("linear_attention mamba mamba2 recurrent conv moe mlp M - E 0"));

  /** Fields with one entry for each layer, or a pattern that repeats. */
  private static final List<String> TYPES =
      ModelNumbers.names(
          "layer_types layers_block_type attn_type_list hybrid_override_pattern block_types");

  /** Fields with the numbers of the layers of full attention. */
  private static final List<String> NUMBERS =
      List.of("attn_layer_indices", "full_attn_idxs", "linear_attn_config/full_attn_layers");

  /** Fields of layers without keys and values, which do not say which they are. */
  private static final List<String> SIGNS =
      ModelNumbers.names(
          "mamba_d_state ssm_state_size ssm_cfg linear_attn_config linear_num_value_heads lru_width"
              + " conv_L_cache hybrid_layer_ids");

  /** Fields that make the cache of one layer unlike that of another. */
  private static final List<String> UNLIKE =
      ModelNumbers.names(
          "block_configs num_key_value_heads_per_layer swa_num_key_value_heads global_head_dim"
              + " cross_attention_layers");

  /** The layers that keep all; sliding windows are counted as if they did. */
  int withCache(List<String> notes) {
    for (String field : UNLIKE) {
      if (isGiven(field)) {
        throw new TraceException(
            config.where() + " has layers of different caches (" + field + "): not supported");
      }
    }
    List<String> types = types();
    int keeping = types.isEmpty() ? counted() : (int) types.stream().filter(this::keeps).count();
    if (keeping < layers) {
      notes.add(
          (layers - keeping)
              + " layers of linear attention keep no keys and values and are left out");
    }
    long windowed = types.stream().filter(WINDOWED::contains).count();
    if (windowed > 0) {
      notes.add(windowed + " layers of sliding-window attention are counted as if they kept all");
    } else if (types.isEmpty()
        && config.optional("sliding_window", 0) > 0
        && config.value("use_sliding_window").asBoolean(true)) {
      notes.add("sliding-window attention (sliding_window) is counted as if it kept all");
    }
    int shared = config.optional("num_kv_shared_layers", 0);
    if (shared > 0) {
      notes.add(shared + " layers use keys and values of others and are left out");
    }
    if (keeping <= shared) {
      throw new TraceException(config.where() + " has no layer that keeps keys and values");
    }
    return keeping - shared;
  }

  private boolean isGiven(String field) {
    JsonNode value = config.value(field);
    return !value.isMissingNode() && !value.isNull() && !(value.isArray() && value.isEmpty());
  }

  private boolean keeps(String type) {
    boolean keeps = KEEPING.contains(type) || WINDOWED.contains(type);
    if (!keeps && !LINEAR.contains(type)) {
      throw new TraceException(
          String.format(
              "%s has a layer of the type %s, of which it is not known whether it "
                  + "keeps keys and values",
              config.where(), type));
    }
    return keeps;
  }

  /** The type of each layer; none when they are not listed. */
  private List<String> types() {
    for (String field : TYPES) {
      if (!isGiven(field)) {
        continue;
      }
      JsonNode listed = config.value(field);
      List<String> all = new ArrayList<>();
      if (listed.isArray()) {
        listed.forEach(type -> all.add(type.asString("?")));
      } else {
        listed.asString("").chars().forEach(type -> all.add(Character.toString(type)));
      }
      boolean repeats = field.equals("block_types");
      if (all.isEmpty() || (all.size() < layers && !repeats)) {
        throw new TraceException(
            "%s has %s entries in %s for %s layers"
                .formatted(config.where(), all.size(), field, layers));
      }
      return IntStream.range(0, layers).mapToObj(i -> all.get(i % all.size())).toList();
    }
    return List.of();
  }

  private int counted() {
    for (String field : NUMBERS) {
      if (config.value(field).isArray()) {
        return config.value(field).size();
      }
    }
    int interval = config.optional("full_attention_interval", 0);
    if (interval > 0) {
      return layers / interval;
    }
    int period = config.optional("attn_layer_period", 0);
    if (period > 0) {
      int offset = config.optional("attn_layer_offset", 0);
      return Math.max(0, Math.ceilDiv(layers - offset, period));
    }
    for (String field : SIGNS) {
      if (isGiven(field)) {
        throw new TraceException(
            String.format(
                "%s has layers that keep no keys and values (%s), and does not say which: add"
                    + " layer_types, with full_attention or mamba for each layer",
                config.where(), field));
      }
    }
    return layers;
  }
}
