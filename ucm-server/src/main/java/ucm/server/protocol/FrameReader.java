package ucm.server.protocol;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import ucm.api.BlockIds;

/** Reads the fields of a frame's body in order. A count is checked against the bytes that are left. */
public final class FrameReader {

  private final ByteBuffer body;

  public FrameReader(ByteBuffer body) {
    this.body = body.order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Whether there are fields left, which an older client does not send. */
  public boolean hasMore() {
    return body.hasRemaining();
  }

  public int u8() throws ProtocolException {
    require(Byte.BYTES);
    return body.get() & 0xFF;
  }

  public int u16() throws ProtocolException {
    require(Short.BYTES);
    return body.getShort() & 0xFFFF;
  }

  /** A {@code u32} of which no value over 2^31 - 1 makes sense. */
  public int u32() throws ProtocolException {
    int value = handle();
    if (value < 0) {
      throw ProtocolException.bad(
          "a number is " + Integer.toUnsignedString(value) + ", and at most 2^31 - 1 makes sense");
    }
    return value;
  }

  /** A {@code u32} that only names something, so that its sign does not matter. */
  public int handle() throws ProtocolException {
    require(Integer.BYTES);
    return body.getInt();
  }

  public long u64() throws ProtocolException {
    require(Long.BYTES);
    return body.getLong();
  }

  public String string() throws ProtocolException {
    byte[] bytes = bytes();
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      throw ProtocolException.bad("a string is not UTF-8");
    }
  }

  public byte[] bytes() throws ProtocolException {
    byte[] bytes = new byte[count(1)];
    body.get(bytes);
    return bytes;
  }

  public int[] ints() throws ProtocolException {
    int[] ints = new int[count(Integer.BYTES)];
    body.asIntBuffer().get(ints);
    body.position(body.position() + ints.length * Integer.BYTES);
    return ints;
  }

  public long[] longs() throws ProtocolException {
    long[] longs = new long[count(Long.BYTES)];
    body.asLongBuffer().get(longs);
    body.position(body.position() + longs.length * Long.BYTES);
    return longs;
  }

  public BlockIds ids() throws ProtocolException {
    byte[] ids = new byte[count(BlockIds.ID_BYTES) * BlockIds.ID_BYTES];
    body.get(ids);
    return BlockIds.ofBytes(ids);
  }

  /** A record; see {@link RecordCodec}. */
  public <T extends Record> T record(Class<T> type) throws ProtocolException {
    return type.cast(RecordCodec.of(type).reading().read(this));
  }

  /**
   * How many elements follow.
   *
   * @param bytes the least that one takes
   */
  public int count(int bytes) throws ProtocolException {
    int count = handle();
    if (count < 0 || (long) count * bytes > body.remaining()) {
      throw ProtocolException.bad(
          "%s elements are announced, and %s bytes are left in the frame"
              .formatted(Integer.toUnsignedString(count), body.remaining()));
    }
    return count;
  }

  private void require(int bytes) throws ProtocolException {
    if (body.remaining() < bytes) {
      throw ProtocolException.bad("the frame ends in the middle of a field");
    }
  }
}
