package ucm.pipeline;

/** The original's way of naming blocks: MD5 over Python pickles; see {@link BlockHasher#of}. */
@BlockHashingName(PickleMd5Hashing.NAME)
final class PickleMd5Hashing implements BlockHashing {

  static final String NAME = "md5-pickle";

  @Override
  public BlockHasher hasher(String model, int tpSize, String dtype) {
    return BlockHasher.of(model, tpSize, dtype);
  }
}
