package ucm.server.client;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.ProtocolException;

/** Plans as bytes, for an engine whose ranks are processes of the same version. */
public final class PlanBytes {

  private static final int HEADER_BYTES = 12;
  private static final int LEAST_BYTES = 24;

  private PlanBytes() {}

  /** The bytes of a plan. */
  public static byte[] of(StepPlan plan) {
    FrameWriter writer = new FrameWriter(0, 0).u32(plan.requests().size());
    for (RequestPlan one : plan.requests()) {
      writer
          .string(one.requestId())
          .longs(words(one.loadIds()))
          .ints(one.loadBlocks())
          .longs(words(one.saveIds()))
          .ints(one.saveBlocks())
          .ints(one.contextBlocks());
    }
    ByteBuffer frame = writer.end().position(HEADER_BYTES);
    byte[] bytes = new byte[frame.remaining()];
    frame.get(bytes);
    return bytes;
  }

  private static long[] words(BlockIds ids) {
    long[] words = new long[2 * ids.size()];
    for (int i = 0; i < ids.size(); i++) {
      words[2 * i] = ids.high(i);
      words[2 * i + 1] = ids.low(i);
    }
    return words;
  }

  /**
   * A plan from its bytes.
   *
   * @throws IllegalArgumentException when they are of no plan
   */
  public static StepPlan read(byte[] bytes) {
    FrameReader reader = new FrameReader(ByteBuffer.wrap(bytes));
    try {
      int count = reader.count(LEAST_BYTES);
      List<RequestPlan> requests = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        requests.add(
            new RequestPlan(
                reader.string(),
                BlockIds.wrap(reader.longs()),
                reader.ints(),
                BlockIds.wrap(reader.longs()),
                reader.ints(),
                reader.ints()));
      }
      return new StepPlan(requests);
    } catch (ProtocolException e) {
      throw new IllegalArgumentException("these are not the bytes of a plan: " + e.getMessage(), e);
    }
  }
}
