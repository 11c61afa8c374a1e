package ucm.lite.tier;

import java.util.List;
import java.util.Map;
import java.util.Set;
import tools.jackson.databind.JsonNode;
import ucm.lite.trace.TraceException;

/** The numbers of a configuration, each under any of the names that publishers gave it. */
record ModelNumbers(JsonNode json, String where) {
  static final List<String> HEADS = List.of("num_attention_heads", "n_head", "n_heads");
  static final List<String> LAYERS = names("num_hidden_layers n_layer n_layers num_layers");
  static final List<String> HIDDEN = names("hidden_size n_embd n_embed d_model");
  private static final List<String> KV_HEADS =
      names(
          "num_key_value_heads num_kv_heads n_head_kv n_kv_heads num_query_groups"
              + " attn_config/kv_n_heads");
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
}
