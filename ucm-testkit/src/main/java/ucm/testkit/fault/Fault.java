package ucm.testkit.fault;

/** What {@link FaultyStore} does wrong, always within what {@link ucm.api.Store} allows. */
public enum Fault {

  /** The call throws; nothing was started. An {@code open} leaves the store closed. */
  THROW,

  /** The call throws {@link ucm.api.QueueFullException}; nothing was started. */
  QUEUE_FULL,

  /** Shards end as {@link ucm.api.ShardOutcome#FAILED}; none of their bytes are moved. */
  FAIL,

  /** Shards end as {@link ucm.api.ShardOutcome#MISSING}, or blocks are not found, though there. */
  MISS,

  /** Shards end as {@link ucm.api.ShardOutcome#CORRUPT}; none of their bytes are moved. */
  CORRUPT,

  /**
   * Shards end well and are then lost, as on a disk that is full: the block is never found, and the
   * next flush names it as failed.
   */
  DROP,

  /** Nothing is started until the executor of {@link FaultyStore#delayedBy} runs it. */
  DELAY,

  /** The shards end all at the end, in an order drawn by the seed. */
  REORDER,

  /** The store closes itself in the middle: half of the shards are moved, the others fail. */
  CLOSE;

  /** A method of {@link ucm.api.Store} that a fault can strike. */
  public enum Call {
    /** {@link ucm.api.Store#open}. */
    OPEN,
    /** {@link ucm.api.Store#lookup} and {@link ucm.api.Store#lookupPrefix}. */
    LOOKUP,
    /** {@link ucm.api.Store#load}. */
    LOAD,
    /** {@link ucm.api.Store#dump}. */
    DUMP,
    /** {@link ucm.api.Store#close}. */
    CLOSE
  }

  /** Whether it can strike a call. */
  public boolean strikes(Call call) {
    return switch (this) {
      case THROW -> call != Call.LOOKUP;
      case MISS -> call == Call.LOOKUP || call == Call.LOAD;
      case CORRUPT -> call == Call.LOAD;
      case DROP -> call == Call.DUMP;
      case QUEUE_FULL, FAIL, DELAY, REORDER, CLOSE -> call == Call.LOAD || call == Call.DUMP;
    };
  }
}
