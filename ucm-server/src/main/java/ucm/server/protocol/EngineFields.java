package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.U8;

/**
 * What every connection of an engine says about it.
 *
 * @param engineId the engine's own name, for example a UUID
 * @param dataParallelRank which instance of it
 * @param model as the engine was given it
 * @param dtype as PyTorch prints it
 * @param tpSize tensor-parallel ranks
 * @param mla whether all ranks hold the same latent
 * @param blockTokens tokens of a block
 * @param role 1 producer, 2 consumer, 3 both
 * @param configName names the configuration in messages
 * @param config its YAML text
 */
public record EngineFields(
    String engineId,
    int dataParallelRank,
    String model,
    String dtype,
    int tpSize,
    boolean mla,
    int blockTokens,
    @Wire(U8) int role,
    String configName,
    String config) {

  /** An engine that only saves. */
  public static final int PRODUCER = 1;

  /** An engine that loads and saves. */
  public static final int BOTH = 3;

  /** Reads and checks them. */
  public static EngineFields read(FrameReader body) throws ProtocolException {
    EngineFields fields = body.record(EngineFields.class);
    if (fields.engineId.isBlank() || fields.tpSize < 1) {
      throw ProtocolException.bad(
          "an engine has an id and 1 or more ranks; found the id '%s' and %s ranks"
              .formatted(fields.engineId, fields.tpSize));
    }
    return fields;
  }

  /** These fields under another id. */
  public EngineFields as(String otherId) {
    return new EngineFields(
        otherId,
        dataParallelRank,
        model,
        dtype,
        tpSize,
        mla,
        blockTokens,
        role,
        configName,
        config);
  }

  /** The engine's name at this daemon. */
  public String instance() {
    return dataParallelRank == 0 ? engineId : engineId + "-dp" + dataParallelRank;
  }
}
