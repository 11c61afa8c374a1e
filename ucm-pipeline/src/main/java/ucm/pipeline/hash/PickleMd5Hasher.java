package ucm.pipeline.hash;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;

/**
 * Names the blocks of a prompt as the original UCM does, so that both find each other's blocks.
 *
 * <p>An id is the MD5 of M followed by the Python pickle (protocol 5) of the pair (id of the block
 * before, tuple of the block's tokens). M is the UTF-8 text {@code model:tp_size:dtype:rank}, and
 * after it {@link PromptVariant#text()} and {@link PromptVariant#text(int, int)}; the first block follows the seed, the MD5 of M and the pickle
 * of {@code "UCM_HASH_SEED"}. Rank 0 gives the ids of the prompt; the part of a block that rank r
 * holds is named by the MD5 of M for that rank (without a variant, which is in the id already) and
 * rank 0's id.
 */
final class PickleMd5Hasher implements BlockHasher {

  private static final byte[] SEED = "UCM_HASH_SEED".getBytes(StandardCharsets.US_ASCII);

  // Opcodes of Python's pickle format, protocol 5 (Lib/pickle.py); its numbers are little-endian.
  private static final byte PROTO = (byte) 0x80;
  private static final byte VERSION = 5;
  private static final byte FRAME = (byte) 0x95;
  private static final byte SHORT_BINUNICODE = (byte) 0x8c;
  private static final byte SHORT_BINBYTES = 'C';
  private static final byte MEMOIZE = (byte) 0x94;
  private static final byte MARK = '(';
  private static final byte TUPLE = 't';
  private static final byte TUPLE1 = (byte) 0x85;
  private static final byte TUPLE2 = (byte) 0x86;
  private static final byte BININT1 = 'K';
  private static final byte BININT2 = 'M';
  private static final byte BININT = 'J';
  private static final byte STOP = '.';

  /** PROTO, VERSION, FRAME and the eight bytes of the frame's length. */
  private static final int HEADER_BYTES = 11;

  /** Everything of a pickle but header and tokens: parent with its opcodes, tuples, end. */
  private static final int FIXED_BYTES = 2 + BlockIds.ID_BYTES + 1 + 3 + 3;

  private static final int MAX_TOKEN_BYTES = 5;

  private final String modelAndType;
  private final PromptVariant variant;
  private final byte[] prefix;
  private final BlockIds seed;

  private PickleMd5Hasher(String modelAndType, PromptVariant variant) {
    this.modelAndType = modelAndType;
    this.variant = variant;
    this.prefix = (modelAndType + ":0" + variant.text()).getBytes(StandardCharsets.UTF_8);
    ByteBuffer message = message(SEED.length + 4);
    message.put(SHORT_BINUNICODE).put((byte) SEED.length).put(SEED).put(MEMOIZE).put(STOP);
    ByteBuffer id = digest(md5(), message, "");
    this.seed = BlockIds.of(id.getLong(), id.getLong());
  }

  static PickleMd5Hasher of(String model, int tpSize, String dtype) {
    if (model.isBlank() || dtype.isBlank() || tpSize < 1) {
      throw new IllegalArgumentException(
          ("block ids need a model, a tensor-parallel size of 1 or more and a dtype; found model"
                  + " \"%s\", size %s, dtype \"%s\"")
              .formatted(model, tpSize, dtype));
    }
    return new PickleMd5Hasher(model + ":" + tpSize + ":" + dtype, PromptVariant.NONE);
  }

  @Override
  public BlockHasher forVariant(PromptVariant wanted) {
    return wanted.equals(variant) ? this : new PickleMd5Hasher(modelAndType, wanted);
  }

  @Override
  public BlockIds hash(int[] tokens, int from, int to, int blockSize, @Nullable BlockIds parent) {
    Objects.checkFromToIndex(from, to, tokens.length);
    if (blockSize < 1 || blockSize > MAX_BLOCK_TOKENS) {
      throw new IllegalArgumentException(
          "a block has 1 to %s tokens, above which the original's ids change their form; found %s"
              .formatted(MAX_BLOCK_TOKENS, blockSize));
    }
    BlockIds before = parent == null || parent.isEmpty() ? seed : parent;
    long high = before.high(before.size() - 1);
    long low = before.low(before.size() - 1);
    long[] words = new long[2 * ((to - from) / blockSize)];
    ByteBuffer message = message(FIXED_BYTES + MAX_TOKEN_BYTES * blockSize);
    int start = message.position();
    MessageDigest md5 = md5();
    for (int i = 0; i < words.length; i += 2) {
      message.clear().position(start);
      message.put(SHORT_BINBYTES).put((byte) BlockIds.ID_BYTES);
      message.putLong(Long.reverseBytes(high)).putLong(Long.reverseBytes(low)).put(MEMOIZE);
      int first = from + i / 2 * blockSize;
      putTokens(message, tokens, first, blockSize);
      message.put(MEMOIZE).put(TUPLE2).put(MEMOIZE).put(STOP);
      ByteBuffer id = digest(md5, message, variant.text(first, first + blockSize));
      high = id.getLong();
      low = id.getLong();
      words[i] = high;
      words[i + 1] = low;
    }
    return BlockIds.wrap(words);
  }

  @Override
  public BlockIds ofRank(int rank, BlockIds rankZeroIds) {
    if (rank < 0) {
      throw new IllegalArgumentException("a rank is 0 or more; found " + rank);
    }
    if (rank == 0) {
      return rankZeroIds;
    }
    byte[] own = (modelAndType + ":" + rank).getBytes(StandardCharsets.UTF_8);
    ByteBuffer message = ByteBuffer.allocate(own.length + BlockIds.ID_BYTES).put(own);
    MessageDigest md5 = md5();
    long[] words = new long[2 * rankZeroIds.size()];
    for (int i = 0; i < rankZeroIds.size(); i++) {
      message.clear().position(own.length);
      message.putLong(rankZeroIds.high(i)).putLong(rankZeroIds.low(i));
      md5.update(message.flip());
      ByteBuffer.wrap(md5.digest()).asLongBuffer().get(words, 2 * i, 2);
    }
    return BlockIds.wrap(words);
  }

  /** A buffer with the prefix, at the position where a pickle's content begins. */
  private ByteBuffer message(int contentBytes) {
    ByteBuffer message = ByteBuffer.allocate(prefix.length + HEADER_BYTES + contentBytes);
    message.order(ByteOrder.LITTLE_ENDIAN).put(prefix).put(PROTO).put(VERSION).put(FRAME);
    return message.putLong(0);
  }

  /**
   * Writes the frame's length into a message that is complete, and hashes it.
   *
   * @param inputs what is hashed between prefix and pickle
   */
  private ByteBuffer digest(MessageDigest md5, ByteBuffer message, String inputs) {
    int header = prefix.length + HEADER_BYTES;
    message.putLong(header - Long.BYTES, message.position() - header);
    message.flip();
    if (!inputs.isEmpty()) {
      md5.update(prefix);
      md5.update(inputs.getBytes(StandardCharsets.UTF_8));
      message.position(prefix.length);
    }
    md5.update(message);
    return ByteBuffer.wrap(md5.digest());
  }

  /** Up to three items have tuple opcodes of their own, which need no mark. */
  private static void putTokens(ByteBuffer message, int[] tokens, int first, int count) {
    if (count > 3) {
      message.put(MARK);
    }
    for (int i = first; i < first + count; i++) {
      int token = tokens[i];
      if (token < 0) {
        throw new IllegalArgumentException(
            "a token id is 0 or more; found " + token + " at index " + i);
      } else if (token < 1 << 8) {
        message.put(BININT1).put((byte) token);
      } else if (token < 1 << 16) {
        message.put(BININT2).putShort((short) token);
      } else {
        message.put(BININT).putInt(token);
      }
    }
    message.put(count > 3 ? TUPLE : (byte) (TUPLE1 + count - 1));
  }

  private static MessageDigest md5() {
    try {
      return MessageDigest.getInstance("MD5");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(
          "this Java runtime has no MD5, which names the blocks; use one that has the provider SUN",
          e);
    }
  }

  /** For example {@code BlockHasher[Qwen/QwQ-32B:4:torch.bfloat16]}. */
  @Override
  public String toString() {
    return "BlockHasher[" + modelAndType + variant.text() + "]";
  }
}
