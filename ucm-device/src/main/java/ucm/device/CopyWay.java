package ucm.device;

/** How copies are handed to the driver. */
public enum CopyWay {
  /** A call for each copy, and one for each set of rows. */
  CALLS,
  /** One call for many copies. */
  BATCH
}
