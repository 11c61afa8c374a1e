package ucm.pipeline.hash;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.DigestException;
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
 * after it {@link PromptVariant#text}; the first block follows the seed, the MD5 of M and the pickle
 * of {@code "UCM_HASH_SEED"}. Rank 0 gives the ids of the prompt; the part of a block that rank r
 * holds is named by the MD5 of M for that rank (without a variant, which is in the id already) and
 * rank 0's id.
 *
 * <p>A call allocates its result, one buffer and one digest, nothing per block.
 */
final class PickleMd5Hasher implements BlockHasher {

  private static final String SEED = "UCM_HASH_SEED";

  // Opcodes of Python's pickle format, protocol 5 (Lib/pickle.py).
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
    byte[] text = SEED.getBytes(StandardCharsets.US_ASCII);
    byte[] message = new byte[prefix.length + HEADER_BYTES + text.length + 4];
    System.arraycopy(prefix, 0, message, 0, prefix.length);
    int at = prefix.length + HEADER_BYTES;
    message[at++] = SHORT_BINUNICODE;
    message[at++] = (byte) text.length;
    System.arraycopy(text, 0, message, at, text.length);
    at += text.length;
    message[at++] = MEMOIZE;
    message[at++] = STOP;
    header(message, prefix.length, at);
    this.seed = BlockIds.ofBytes(md5().digest(message));
  }

  static PickleMd5Hasher of(String model, int tpSize, String dtype) {
    if (model.isBlank() || dtype.isBlank() || tpSize < 1) {
      throw new IllegalArgumentException(
          "block ids need a model, a tensor-parallel size of 1 or more and a dtype; found model \""
              + model
              + "\", size "
              + tpSize
              + ", dtype \""
              + dtype
              + "\"");
    }
    return new PickleMd5Hasher(model + ":" + tpSize + ":" + dtype, PromptVariant.NONE);
  }

  @Override
  public BlockIds seed() {
    return seed;
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
          "a block has 1 to "
              + MAX_BLOCK_TOKENS
              + " tokens, above which the original's ids change their form; found "
              + blockSize);
    }
    BlockIds before = parent == null || parent.isEmpty() ? seed : parent;
    long high = before.high(before.size() - 1);
    long low = before.low(before.size() - 1);
    int blocks = (to - from) / blockSize;
    long[] words = new long[2 * blocks];
    byte[] message =
        new byte[prefix.length + HEADER_BYTES + FIXED_BYTES + MAX_TOKEN_BYTES * blockSize];
    System.arraycopy(prefix, 0, message, 0, prefix.length);
    ByteBuffer buffer = ByteBuffer.wrap(message);
    MessageDigest md5 = md5();
    byte[] id = new byte[BlockIds.ID_BYTES];
    ByteBuffer idBuffer = ByteBuffer.wrap(id);
    for (int block = 0; block < blocks; block++) {
      buffer.putLong(prefix.length + HEADER_BYTES + 2, high);
      buffer.putLong(prefix.length + HEADER_BYTES + 2 + Long.BYTES, low);
      int length = pickle(message, tokens, from + block * blockSize, blockSize);
      digest(md5, message, length, id);
      high = idBuffer.getLong(0);
      low = idBuffer.getLong(Long.BYTES);
      words[2 * block] = high;
      words[2 * block + 1] = low;
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
    byte[] message = new byte[own.length + BlockIds.ID_BYTES];
    System.arraycopy(own, 0, message, 0, own.length);
    ByteBuffer buffer = ByteBuffer.wrap(message);
    MessageDigest md5 = md5();
    byte[] id = new byte[BlockIds.ID_BYTES];
    ByteBuffer idBuffer = ByteBuffer.wrap(id);
    long[] words = new long[2 * rankZeroIds.size()];
    for (int i = 0; i < rankZeroIds.size(); i++) {
      buffer.putLong(own.length, rankZeroIds.high(i));
      buffer.putLong(own.length + Long.BYTES, rankZeroIds.low(i));
      digest(md5, message, message.length, id);
      words[2 * i] = idBuffer.getLong(0);
      words[2 * i + 1] = idBuffer.getLong(Long.BYTES);
    }
    return BlockIds.wrap(words);
  }

  /** Writes the pickle of (parent, tokens) after the prefix; the parent's bytes are there already. */
  private int pickle(byte[] message, int[] tokens, int first, int count) {
    int at = prefix.length + HEADER_BYTES;
    message[at++] = SHORT_BINBYTES;
    message[at++] = BlockIds.ID_BYTES;
    at += BlockIds.ID_BYTES;
    message[at++] = MEMOIZE;
    // Up to three items have tuple opcodes of their own, which need no mark.
    boolean marked = count > 3;
    if (marked) {
      message[at++] = MARK;
    }
    for (int i = first; i < first + count; i++) {
      at = integer(message, at, tokens[i], i);
    }
    message[at++] = marked ? TUPLE : (byte) (TUPLE1 + count - 1);
    message[at++] = MEMOIZE;
    message[at++] = TUPLE2;
    message[at++] = MEMOIZE;
    message[at++] = STOP;
    header(message, prefix.length, at);
    return at;
  }

  private static int integer(byte[] message, int start, int token, int index) {
    int at = start;
    if (token < 0) {
      throw new IllegalArgumentException(
          "a token id is 0 or more; found " + token + " at index " + index);
    } else if (token < 1 << 8) {
      message[at++] = BININT1;
      message[at++] = (byte) token;
    } else if (token < 1 << 16) {
      message[at++] = BININT2;
      message[at++] = (byte) token;
      message[at++] = (byte) (token >>> 8);
    } else {
      message[at++] = BININT;
      message[at++] = (byte) token;
      message[at++] = (byte) (token >>> 8);
      message[at++] = (byte) (token >>> 16);
      message[at++] = (byte) (token >>> 24);
    }
    return at;
  }

  /** Protocol, and a frame that reaches to {@code end}; its length is little-endian. */
  private static void header(byte[] message, int start, int end) {
    message[start] = PROTO;
    message[start + 1] = VERSION;
    message[start + 2] = FRAME;
    long length = (long) end - start - HEADER_BYTES;
    for (int i = 0; i < Long.BYTES; i++) {
      message[start + 3 + i] = (byte) (length >>> (8 * i));
    }
  }

  private static void digest(MessageDigest md5, byte[] message, int length, byte[] id) {
    md5.update(message, 0, length);
    try {
      md5.digest(id, 0, id.length);
    } catch (DigestException e) {
      throw new IllegalStateException("an MD5 digest has 16 bytes", e);
    }
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
