package ucm.server.protocol;

/**
 * IDENTIFY: what tells an engine and its model from others; before the engine is opened. A field that does
 * not matter to a side of the engine, or is not known, is empty.
 *
 * @param launch the same in all connections of an engine, and in none of another one
 * @param config tells the model's effective configuration from others; of a worker
 * @param weights tells the model's weights from others; of a worker
 * @param generation of the engine's blocks since it disowned what was stored; of a scheduler side, or of a
 *     worker that names its blocks by itself
 */
public record IdentityMessage(String launch, String config, String weights, String generation) {

  /** Of a client that says nothing. */
  public static final IdentityMessage NONE = new IdentityMessage("", "", "", "");
}
