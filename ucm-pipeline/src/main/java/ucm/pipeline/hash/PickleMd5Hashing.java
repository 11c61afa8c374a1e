package ucm.pipeline.hash;

/** The original's way of naming blocks: MD5 over Python pickles; see {@link BlockHasher#of}. */
@BlockHashingName(PickleMd5Hashing.NAME)
public final class PickleMd5Hashing implements BlockHashing {

  /** What the configuration calls it. */
  public static final String NAME = "md5-pickle";

  public PickleMd5Hashing() {}

  @Override
  public BlockHasher hasher(String model, int tpSize, String dtype) {
    return BlockHasher.of(model, tpSize, dtype);
  }
}
