package ucm.server.protocol;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ReadableByteChannel;
import org.jspecify.annotations.Nullable;

/**
 * A frame that was received.
 *
 * @param type of {@link MessageType}
 * @param sequence which frame of the client this is, or 0 when no answer is wanted
 * @param body its fields, from the first one on
 */
public record Frame(int type, int sequence, ByteBuffer body) {

  /** Most bytes that a frame may announce. */
  public static final int MAX_BYTES = 16 << 20;

  private static final int LENGTH_BYTES = 4;
  private static final int HEADER_BYTES = 8;
  // Memory is taken as the bytes come, so that an announced length alone costs nothing.
  private static final int STEP_BYTES = 256 << 10;

  /**
   * Reads the next frame.
   *
   * @return null at the end of the stream
   * @throws ProtocolException when the announced length is impossible
   * @throws EOFException when the stream ends within a frame
   */
  public static @Nullable Frame read(ReadableByteChannel channel)
      throws IOException, ProtocolException {
    ByteBuffer length = ByteBuffer.allocate(LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    if (!fill(channel, length)) {
      return null;
    }
    int bytes = length.getInt(0);
    if (bytes < HEADER_BYTES || bytes > MAX_BYTES) {
      throw ProtocolException.bad(
          "a frame has %s to %s bytes; announced are %s"
              .formatted(HEADER_BYTES, MAX_BYTES, Integer.toUnsignedString(bytes)));
    }
    ByteBuffer frame = ByteBuffer.allocate(Math.min(bytes, STEP_BYTES));
    while (true) {
      if (!fill(channel, frame) && frame.position() < bytes) {
        throw new EOFException("the stream ends within a frame");
      }
      if (frame.capacity() == bytes) {
        break;
      }
      frame = ByteBuffer.allocate((int) Math.min(bytes, 2L * frame.capacity())).put(frame.flip());
    }
    frame.flip().order(ByteOrder.LITTLE_ENDIAN);
    int type = frame.getShort() & 0xFFFF;
    frame.getShort();
    int sequence = frame.getInt();
    return new Frame(type, sequence, frame.slice().order(ByteOrder.LITTLE_ENDIAN));
  }

  /** Fills a buffer; false when the stream ended before its first byte. */
  private static boolean fill(ReadableByteChannel channel, ByteBuffer buffer) throws IOException {
    int before = buffer.position();
    while (buffer.hasRemaining()) {
      if (channel.read(buffer) < 0) {
        if (buffer.position() == before) {
          return false;
        }
        throw new EOFException("the stream ends within a frame");
      }
    }
    return true;
  }
}
