package ucm.lite.tier;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import tools.jackson.databind.JsonNode;
import ucm.lite.trace.TraceException;

/**
 * The numbers of a configuration, each under any of the names that publishers gave it, and which
 * layers keep keys and values of each token, where not all do.
 */
record ModelConfig(JsonNode json, String where) {
  static final List<String> HEADS = List.of("num_attention_heads", "n_head", "n_heads");
  static final List<String> LAYERS = names("num_hidden_layers n_layer n_layers num_layers");
  static final List<String> HIDDEN = names("hidden_size n_embd n_embed d_model");
  private static final List<String> KV_HEADS =
      names(
          "num_key_value_heads num_kv_heads n_head_kv n_kv_heads num_query_groups"
              + " num_attention_groups attn_config/kv_n_heads");
  private static final List<String> GATED =
      names("intermediate_size ffn_hidden_size feed_forward_length ffn_config/ffn_hidden_size");
  private static final List<String> PLAIN = List.of("n_inner", "ffn_dim");
  private static final List<String> EXPERTS =
      names("num_local_experts num_experts n_routed_experts ffn_config/moe_num_experts");
  private static final List<String> ACTIVE_EXPERTS =
      names(
          "num_experts_per_tok experts_per_token num_experts_per_token moe_topk moe_k"
              + " ffn_config/moe_top_k");

  /** Model types whose feed-forward parts have two matrices and not three. */
  private static final Set<String> UNGATED =
      Set.copyOf(names("gpt_neox phi starcoder2 falcon nemotron persimmon"));

  /** What published configurations leave to the defaults of their type. */
  private static final Map<String, Map<String, Integer>> DEFAULTS =
      Map.of(
          "gemma3_text",
          Map.of("num_attention_heads", 8, "num_key_value_heads", 4, "head_dim", 256));

  private static final Set<String> KEEPING = Set.copyOf(names("full_attention attention * 1"));
  private static final Set<String> WINDOWED = Set.of("sliding_attention", "chunked_attention");
  private static final Set<String> LINEAR =
      Set.copyOf(names("linear_attention mamba mamba2 recurrent conv moe mlp M - E 0"));

  /** Fields with one entry for each layer, or a pattern that repeats. */
  private static final List<String> TYPES =
      names("layer_types layers_block_type attn_type_list hybrid_override_pattern block_types");

  /** Fields with the numbers of the layers of full attention. */
  private static final List<String> NUMBERS =
      List.of("attn_layer_indices", "full_attn_idxs", "linear_attn_config/full_attn_layers");

  /** Fields of layers without keys and values, which do not say which they are. */
  private static final List<String> SIGNS =
      names(
          "mamba_d_state ssm_state_size ssm_cfg linear_attn_config linear_num_value_heads lru_width"
              + " conv_L_cache hybrid_layer_ids");

  /** Fields that make the cache of one layer unlike that of another. */
  private static final List<String> UNLIKE =
      names(
          "block_configs num_key_value_heads_per_layer swa_num_key_value_heads global_head_dim"
              + " cross_attention_layers compress_ratios");

  /** Lists with an entry for each layer that say nothing of what it keeps. */
  private static final Pattern HARMLESS =
      Pattern.compile("mlp|moe|expert|rope|ffn|intermediate|activation|quant|deepstack");

  static List<String> names(String separatedBySpaces) {
    return List.of(separatedBySpaces.split(" ", -1));
  }

  int required(String key) {
    return required(List.of(key));
  }

  int required(List<String> names) {
    int value = optional(names, 0);
    if (value <= 0) {
      throw new TraceException(
          String.format(
              "%s has no positive %s, which is needed to know its KV cache: add the number",
              where, names.getFirst()));
    }
    return value;
  }

  int optional(String key, int otherwise) {
    return optional(List.of(key), otherwise);
  }

  int optional(List<String> names, int otherwise) {
    for (String name : names) {
      JsonNode value = value(name);
      if (value.isIntegralNumber()) {
        return value.asInt();
      }
      if (value.isArray()) {
        throw new TraceException(
            where + " has a list as " + name + ", one value for each layer: not supported");
      }
    }
    Map<String, Integer> defaults =
        DEFAULTS.getOrDefault(json.path("model_type").asString(""), Map.of());
    return names.stream()
        .filter(defaults::containsKey)
        .findFirst()
        .map(defaults::get)
        .orElse(otherwise);
  }

  /** A value; a slash leads into a part. */
  JsonNode value(String name) {
    return json.at("/" + name);
  }

  int headSize(int hidden, int heads) {
    int given = optional(List.of("head_dim", "kv_channels"), 0);
    if (given <= 0 && hidden % heads != 0) {
      throw new TraceException(
          String.format(
              "%s has no head_dim, and its hidden_size of %s does not divide into %s heads: add"
                  + " head_dim",
              where, hidden, heads));
    }
    return given > 0 ? given : hidden / heads;
  }

  /** One head for all where multi-query attention is on and its heads are not counted. */
  int kvHeads(int heads) {
    if (value("multi_query_attention").isBoolean()) {
      return value("multi_query_attention").asBoolean()
          ? optional("multi_query_group_num", 1)
          : heads;
    }
    boolean one =
        value("attn_config/attn_type").asString("").equals("multiquery_attention")
            || (json.path("multi_query").asBoolean(false)
                && !json.path("new_decoder_architecture").asBoolean(false));
    return one ? 1 : optional(KV_HEADS, heads);
  }

  /** Weights of attention and of the (active) feed-forward parts; norms and biases are small. */
  double activeParameters(int hidden, int layers, int heads) {
    int gated = optional(GATED, 0);
    double matrices = UNGATED.contains(json.path("model_type").asString("")) ? 2.0 : 3.0;
    double dense =
        gated > 0 ? matrices * hidden * gated : 2.0 * hidden * optional(PLAIN, 4 * hidden);
    int expert = optional("moe_intermediate_size", optional(EXPERTS, 0) > 1 ? gated : 0);
    if (expert == 0) {
      return layers * (attention(hidden, heads) + dense);
    }
    int denseLayers = optional("first_k_dense_replace", 0);
    double shared =
        3.0
            * hidden
            * optional("shared_expert_intermediate_size", optional("n_shared_experts", 0) * expert);
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

  /** How many layers keep all; sliding windows are counted as if they did. */
  int layersWithCache(int layers, List<String> notes) {
    for (String field : UNLIKE) {
      if (isGiven(field)) {
        throw new TraceException(
            where + " has layers of different caches (" + field + "): not supported");
      }
    }
    requireKnownLists(layers);
    List<String> types = types(layers);
    int keeping =
        types.isEmpty() ? counted(layers) : (int) types.stream().filter(this::keeps).count();
    if (keeping < layers) {
      notes.add(
          (layers - keeping)
              + " layers of linear attention keep no keys and values and are left out");
    }
    long windowed = types.stream().filter(WINDOWED::contains).count();
    if (windowed > 0) {
      notes.add(windowed + " layers of sliding-window attention are counted as if they kept all");
    } else if (types.isEmpty()
        && optional("sliding_window", 0) > 0
        && value("use_sliding_window").asBoolean(true)) {
      notes.add("sliding-window attention (sliding_window) is counted as if it kept all");
    }
    int sharing = optional("cla_share_factor", 1);
    if (value("use_cla").asBoolean(false) && sharing > 1) {
      int own = Math.ceilDiv(keeping, sharing);
      notes.add(keeping - own + " layers use keys and values of others (cla_share_factor)");
      keeping = own;
    }
    int shared = optional("num_kv_shared_layers", 0);
    if (shared > 0) {
      notes.add(shared + " layers use keys and values of others and are left out");
    }
    if (keeping <= shared) {
      throw new TraceException(where + " has no layer that keeps keys and values");
    }
    return keeping - shared;
  }

  /** How many attentions with a cache of their own a layer has. */
  int attentionsOfLayer(List<String> notes) {
    if (!json.path("model_type").asString("").equals("longcat_flash")) {
      return 1;
    }
    notes.add("each layer has two attentions");
    return 2;
  }

  /** A list with an entry for each layer may make the cache of one unlike that of another. */
  private void requireKnownLists(int layers) {
    for (Map.Entry<String, JsonNode> field : json.properties()) {
      String name = field.getKey();
      JsonNode list = field.getValue();
      boolean isOfLayers = list.isArray() && list.size() >= layers && list.size() <= layers + 2;
      if (isOfLayers
          && layers > 2
          && !TYPES.contains(name)
          && !NUMBERS.contains(name)
          && !HARMLESS.matcher(name).find()
          && list.valueStream().distinct().count() > 1) {
        throw new TraceException(
            where
                + " has a list with an entry for each layer ("
                + name
                + ") of which it is not known what it does to the KV cache: not supported");
      }
    }
  }

  private boolean isGiven(String field) {
    JsonNode value = value(field);
    return !value.isMissingNode() && !value.isNull() && !(value.isArray() && value.isEmpty());
  }

  private boolean keeps(String type) {
    boolean keeps = KEEPING.contains(type) || WINDOWED.contains(type);
    if (!keeps && !LINEAR.contains(type)) {
      throw new TraceException(
          String.format(
              "%s has a layer of the type %s, of which it is not known whether it "
                  + "keeps keys and values",
              where, type));
    }
    return keeps;
  }

  /** The type of each layer; none when they are not listed. */
  private List<String> types(int layers) {
    for (String field : TYPES) {
      if (!isGiven(field)) {
        continue;
      }
      JsonNode listed = value(field);
      List<String> all = new ArrayList<>();
      if (listed.isArray()) {
        listed.forEach(type -> all.add(type.asString("?")));
      } else {
        listed.asString("").chars().forEach(type -> all.add(Character.toString(type)));
      }
      boolean repeats = field.equals("block_types");
      if (all.isEmpty() || (all.size() < layers && !repeats)) {
        throw new TraceException(
            "%s has %s entries in %s for %s layers".formatted(where, all.size(), field, layers));
      }
      return IntStream.range(0, layers).mapToObj(i -> all.get(i % all.size())).toList();
    }
    return List.of();
  }

  private int counted(int layers) {
    for (String field : NUMBERS) {
      if (value(field).isArray()) {
        return value(field).size();
      }
    }
    int interval = optional(List.of("full_attention_interval", "layer_group_size"), 0);
    if (interval > 0) {
      return layers / interval;
    }
    int period = optional("attn_layer_period", 0);
    if (period > 0) {
      int offset = optional("attn_layer_offset", 0);
      return Math.max(0, Math.ceilDiv(layers - offset, period));
    }
    for (String field : SIGNS) {
      if (isGiven(field)) {
        throw new TraceException(
            String.format(
                "%s has layers that keep no keys and values (%s), and does not say which: add"
                    + " layer_types, with full_attention or mamba for each layer",
                where, field));
      }
    }
    return layers;
  }
}
