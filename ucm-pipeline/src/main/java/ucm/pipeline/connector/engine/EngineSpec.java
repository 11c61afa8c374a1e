package ucm.pipeline.connector.engine;

import ucm.pipeline.hash.BlockHasher;

/**
 * What the connector must know of an engine: the model, how it is split, and how its KV cache is cut.
 *
 * <p>A block of UCM is a block of the engine, as in the original: {@code blockTokens} is the engine's
 * block size (128 is recommended; small blocks are small files).
 *
 * @param instance names this engine on its node; data-parallel instances have different names, the
 *     ranks of one instance the same
 * @param model as the engine was given it, for example {@code Qwen/QwQ-32B}; part of every block's id
 * @param dtype as PyTorch prints it, for example {@code torch.bfloat16}; part of every block's id
 * @param tpSize tensor-parallel ranks; part of every block's id
 * @param ppSize stages of pipeline parallelism, each of as many ranks; ranks are numbered stage after stage
 * @param mla whether every rank holds the same latent (multi-head latent attention), so that one rank
 *     dumps for all
 * @param blockTokens tokens of a block
 * @param kv bytes of a block on one rank, of the largest stage
 * @param identity what else the bytes depend on; part of every block's id, as far as {@code
 *     model_fingerprint} says
 * @param groups of a hybrid model; {@link KvGroups#ONE} of others
 */
public record EngineSpec(
    String instance,
    String model,
    String dtype,
    int tpSize,
    int ppSize,
    boolean mla,
    int blockTokens,
    KvLayout kv,
    KvIdentity identity,
    KvGroups groups) {

  /** Checks what the hasher does not check. */
  public EngineSpec {
    if (instance.isBlank()) {
      throw new IllegalArgumentException(
          "an engine needs a name of its own on its node; the instance is empty");
    }
    if (blockTokens < 1 || blockTokens > BlockHasher.MAX_BLOCK_TOKENS) {
      throw new IllegalArgumentException(
          "a block of the engine is a block of UCM and has 1 to %s tokens; found %s"
              .formatted(BlockHasher.MAX_BLOCK_TOKENS, blockTokens));
    }
  }

  /** An engine whose model is no hybrid. */
  public EngineSpec(
      String instance,
      String model,
      String dtype,
      int tpSize,
      boolean mla,
      int blockTokens,
      KvLayout kv,
      KvIdentity identity) {
    this(instance, model, dtype, tpSize, 1, mla, blockTokens, kv, identity, KvGroups.ONE);
  }

  /**
   * An engine that says nothing of its model but the name. Whoever changes the model under its name, or
   * starts an engine with another configuration of it, must have the old blocks removed.
   */
  public EngineSpec(
      String instance,
      String model,
      String dtype,
      int tpSize,
      boolean mla,
      int blockTokens,
      KvLayout kv) {
    this(instance, model, dtype, tpSize, mla, blockTokens, kv, KvIdentity.NONE);
  }

  /** How many ranks there are in all stages. */
  public int ranks() {
    return tpSize * ppSize;
  }

  /**
   * How many parts of a block are stored, each under an id of its own: one a rank, with MLA one a
   * stage.
   */
  public int parts() {
    return mla ? ppSize : ranks();
  }
}
