package ucm.lite.tier;

/** How requests are dealt to the data-parallel ranks. */
public enum Routing {
  /** One after the other. */
  ROUND_ROBIN,
  /** All requests of a session to one rank. */
  SESSION,
  /**
   * To the rank that last served the deepest known block when more than half of the prompt is known,
   * otherwise to the rank that has served the fewest blocks.
   */
  PREFIX
}
