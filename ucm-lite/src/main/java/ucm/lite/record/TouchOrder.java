package ucm.lite.record;

/**
 * In which order the blocks of a request are touched (made most recent, or inserted) after all of
 * them were looked up.
 */
public enum TouchOrder {
  /** First to last: the deepest block of the prompt ends most recent. */
  LEAF_LAST("leaf_last"),
  /** Last to first: the first block of the prompt ends most recent, so that leaves go first. */
  ROOT_LAST("root_last");

  private final String key;

  TouchOrder(String key) {
    this.key = key;
  }

  /** The name in tables and files: {@code leaf_last} or {@code root_last}. */
  public String key() {
    return key;
  }
}
