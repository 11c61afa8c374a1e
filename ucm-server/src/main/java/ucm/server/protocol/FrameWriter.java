package ucm.server.protocol;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import ucm.api.BlockIds;

/** Builds one frame: header first, then the fields in order. Used by one thread. */
public final class FrameWriter {

  /** What comes before the fields. */
  static final int HEADER_BYTES = 12;

  private static final int LENGTH_BYTES = 4;

  private ByteBuffer frame = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);

  /**
   * Begins a frame.
   *
   * @param sequence of the frame that it answers, or 0
   */
  public FrameWriter(int type, int sequence) {
    frame.putInt(0).putShort((short) type).putShort((short) 0).putInt(sequence);
  }

  public FrameWriter u8(int value) {
    reserve(Byte.BYTES).put((byte) value);
    return this;
  }

  public FrameWriter u16(int value) {
    reserve(Short.BYTES).putShort((short) value);
    return this;
  }

  public FrameWriter u32(int value) {
    reserve(Integer.BYTES).putInt(value);
    return this;
  }

  public FrameWriter u64(long value) {
    reserve(Long.BYTES).putLong(value);
    return this;
  }

  public FrameWriter string(String value) {
    return bytes(value.getBytes(StandardCharsets.UTF_8));
  }

  public FrameWriter bytes(byte[] value) {
    u32(value.length);
    reserve(value.length).put(value);
    return this;
  }

  public FrameWriter ints(int[] values) {
    u32(values.length);
    for (int value : values) {
      u32(value);
    }
    return this;
  }

  public FrameWriter longs(long[] values) {
    u32(values.length);
    for (long value : values) {
      u64(value);
    }
    return this;
  }

  public FrameWriter ids(BlockIds ids) {
    u32(ids.size());
    reserve(ids.size() * BlockIds.ID_BYTES).put(ids.toBytes());
    return this;
  }

  /** Adds the components of a record; see {@link RecordCodec}. */
  public FrameWriter record(Record value) {
    RecordCodec.of(value.getClass()).writing().write(this, value);
    return this;
  }

  /** The whole frame, its length filled in. */
  public ByteBuffer end() {
    frame.putInt(0, frame.position() - LENGTH_BYTES);
    return frame.flip();
  }

  /** Ends the frame and writes all of it. */
  public void writeTo(WritableByteChannel channel) throws IOException {
    ByteBuffer bytes = end();
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  private ByteBuffer reserve(int bytes) {
    if (frame.remaining() < bytes) {
      ByteBuffer larger =
          ByteBuffer.allocate(Math.max(2 * frame.capacity(), frame.position() + bytes))
              .order(ByteOrder.LITTLE_ENDIAN);
      frame = larger.put(frame.flip());
    }
    return frame;
  }
}
