package ucm.server.protocol;

/**
 * STAGE: which layers of a model a worker has, when they are dealt out to stages (pipeline parallelism).
 *
 * @param stages how many there are
 * @param stage which one is the worker's
 */
public record StageMessage(int stages, int stage) {

  /** All layers. */
  public static final StageMessage ONLY = new StageMessage(1, 0);

  private static final int MOST = 1024;

  /** Reads and checks it. */
  public static StageMessage read(FrameReader body) throws ProtocolException {
    StageMessage found = body.record(StageMessage.class);
    if (found.stages < 1 || found.stages > MOST || found.stage >= found.stages) {
      throw ProtocolException.bad(
          "a worker is of one of 1 to %s stages; found stage %s of %s"
              .formatted(MOST, found.stage, found.stages));
    }
    return found;
  }
}
