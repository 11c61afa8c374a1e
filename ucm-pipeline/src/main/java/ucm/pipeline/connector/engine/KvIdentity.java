package ucm.pipeline.connector.engine;

import ucm.pipeline.config.ModelFingerprint;

/**
 * What the bytes of an engine's KV cache depend on besides the fields of {@link EngineSpec}. Engines that
 * agree in all of this and run the same tokens must compute the same KV cache, and where they may not,
 * they must differ in it: a block of another model that is taken for one's own is a wrong answer. All
 * texts are compared, never read; a digest of 32 digits is a good size.
 *
 * @param config tells the effective configuration of the model from any other, after what the launch
 *     line overrides: rope scaling, quantisation, revision, adapters merged at start, draft models whose
 *     layers are in the KV cache. Nothing that differs between two starts of the same engine. Empty when
 *     the engine does not say, and then models are told apart by their names alone
 * @param weights tells the weights from any other, by what is in them: a hash of their files, or of a
 *     part of each tensor with names and sizes; of a registry, name and commit. No times and no paths, so
 *     that nodes agree. Taken when the weights are loaded, not later. Empty when the engine cannot say
 * @param layout what the bytes of a block are like, and their data type, unless K and V are apart, tokens
 *     come before heads, and all is of the engine's data type; then empty
 */
public record KvIdentity(String config, String weights, String layout) {

  /** An engine that says nothing of this. */
  public static final KvIdentity NONE = new KvIdentity("", "", "");

  /**
   * The name of a model and its layout among the names of blocks; the original's when there is nothing to
   * add.
   *
   * @param model as the engine was given it
   * @param by what is to count; what is missing does not
   */
  public String modelName(String model, ModelFingerprint by) {
    String name = fingerprint(model, by);
    return layout.isEmpty() ? name : name + ";layout:" + layout;
  }

  private String fingerprint(String model, ModelFingerprint by) {
    return switch (by) {
      case PATH -> model;
      case CONFIG -> config.isEmpty() ? model : model + ";config:" + config;
      case WEIGHTS ->
          weights.isEmpty()
              ? fingerprint(model, ModelFingerprint.CONFIG)
              : "weights:" + weights + ";config:" + config;
    };
  }

  /** What is in force of what is wanted: {@link #modelName} leaves out what is missing. */
  public ModelFingerprint inForce(ModelFingerprint wanted) {
    if (wanted == ModelFingerprint.PATH || (config.isEmpty() && weights.isEmpty())) {
      return ModelFingerprint.PATH;
    }
    return weights.isEmpty() ? ModelFingerprint.CONFIG : wanted;
  }
}
