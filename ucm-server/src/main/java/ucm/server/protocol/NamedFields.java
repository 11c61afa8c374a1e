package ucm.server.protocol;

import ucm.pipeline.connector.engine.KvLayout;

/**
 * OPEN_NAMED, after the engine: a worker that names its blocks by itself.
 *
 * @param layout one tensor, which is the block
 * @param mostSlots so many slots are enough, at least 1
 */
public record NamedFields(KvLayout layout, int mostSlots) {

  /** Reads them. */
  public static NamedFields read(FrameReader body) throws ProtocolException {
    KvLayout layout = WorkerFields.layout(new long[][] {{body.u64()}});
    int mostSlots = body.u32();
    if (mostSlots < 1) {
      throw ProtocolException.bad("a worker needs 1 slot or more; it asks for " + mostSlots);
    }
    return new NamedFields(layout, mostSlots);
  }

  /** The worker as one of an engine with one layer. */
  public WorkerFields worker() {
    return new WorkerFields(0, layout, "", null);
  }

  /** Writes them. */
  public FrameWriter write(FrameWriter to) {
    return to.u64(layout.tensorBytes(0, 0)).u32(mostSlots);
  }
}
