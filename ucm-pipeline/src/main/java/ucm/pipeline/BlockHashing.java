package ucm.pipeline;

/**
 * A way of naming blocks, chosen by {@code block_hasher} in the configuration. The original's, {@code
 * md5-pickle}, is built in; others are found through {@link java.util.ServiceLoader}, among the modules UCM
 * runs among and in plugins, by {@link StoreCatalog}. A provider is public and has a public constructor
 * without parameters that does nothing.
 *
 * <p>Engines and programs that share blocks must use the same one.
 */
public interface BlockHashing {

  /** What {@code block_hasher} calls it; lower case, stable, unique. */
  String name();

  /**
   * A hasher for the blocks of one model.
   *
   * @param model as the engine was given it, for example {@code Qwen/QwQ-32B}
   * @param tpSize how many tensor-parallel ranks share the model, 1 or more
   * @param dtype as PyTorch prints it, for example {@code torch.bfloat16}
   * @throws IllegalArgumentException when one of them is missing or out of range
   */
  BlockHasher hasher(String model, int tpSize, String dtype);
}
