package ucm.server;

import java.nio.ByteBuffer;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.ProtocolException;

/** Plans as bytes, for an engine whose ranks are processes of the same version. */
public final class PlanBytes {

  private static final int HEADER_BYTES = 12;

  private PlanBytes() {}

  /** The bytes of a plan. */
  public static byte[] of(StepPlan plan) {
    ByteBuffer frame = new FrameWriter(0, 0).record(plan).end().position(HEADER_BYTES);
    byte[] bytes = new byte[frame.remaining()];
    frame.get(bytes);
    return bytes;
  }

  /**
   * A plan from its bytes.
   *
   * @throws IllegalArgumentException when they are of no plan
   */
  public static StepPlan read(byte[] bytes) {
    try {
      return new FrameReader(ByteBuffer.wrap(bytes)).record(StepPlan.class);
    } catch (ProtocolException e) {
      throw new IllegalArgumentException("these are not the bytes of a plan: " + e.getMessage(), e);
    }
  }
}
