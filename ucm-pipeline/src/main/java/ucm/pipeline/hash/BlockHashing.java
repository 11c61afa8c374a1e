package ucm.pipeline.hash;

/**
 * A way of naming blocks, chosen by {@code block_hasher} in the configuration. The original's, {@code
 * md5-pickle}, is built in; others are found through {@link java.util.ServiceLoader}, among the modules UCM
 * runs among and in plugins, by {@code StoreCatalog}. A provider is public, carries {@link
 * BlockHashingName}, and has a public constructor without parameters that does nothing.
 *
 * <p>Engines and programs that share blocks must use the same one.
 */
public interface BlockHashing {

  /** What {@code block_hasher} calls the original's way; see {@link BlockHasher#of}. */
  String ORIGINAL = "md5-pickle";

  /**
   * What {@code block_hasher} calls it. Asked only of a provider that carries no {@link
   * BlockHashingName}, and only when no other one has the name in question.
   *
   * @return the value of {@link BlockHashingName}
   * @throws IllegalStateException when the class carries no such annotation
   */
  default String name() {
    BlockHashingName name = getClass().getAnnotation(BlockHashingName.class);
    if (name == null) {
      throw new IllegalStateException(
          getClass().getName() + " has no @BlockHashingName: add the annotation");
    }
    return name.value();
  }

  /**
   * A hasher for the blocks of one model.
   *
   * @param model what tells the model from others: its name, for example {@code Qwen/QwQ-32B}, or a
   *     fingerprint of it, and what the bytes of a block are like where that is not plain
   * @param tpSize how many tensor-parallel ranks share the model, 1 or more
   * @param dtype as PyTorch prints it, for example {@code torch.bfloat16}
   * @throws IllegalArgumentException when one of them is missing or out of range
   */
  BlockHasher hasher(String model, int tpSize, String dtype);
}
