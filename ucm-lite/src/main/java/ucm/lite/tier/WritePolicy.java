package ucm.lite.tier;

/** When a block gets into the tiers below HBM. */
public enum WritePolicy {
  /** As soon as it is computed, into all of them. */
  WRITE_THROUGH,
  /** When the tier above evicts it. */
  ON_EVICTION
}
