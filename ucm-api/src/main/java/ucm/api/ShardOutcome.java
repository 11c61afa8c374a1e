package ucm.api;

/** How the move of one shard ended. */
public enum ShardOutcome {

  /** Moved; for a dump also: was there already. */
  OK,

  /** Load only: the store does not have it (any more). */
  MISSING,

  /** Load only: what the store has is damaged or of another layout; it was not served. */
  CORRUPT,

  /** Not started, because the store protects itself: over its limits, or its volume is down. */
  REFUSED,

  /** The deadline passed first. */
  EXPIRED,

  /** Anything else; the task's cause says what. */
  FAILED
}
